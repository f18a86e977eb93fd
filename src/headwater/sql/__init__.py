"""The SQL front end: text to statements. It knows Flink's grammar and types, and nothing of catalogs, plans or Spark."""
