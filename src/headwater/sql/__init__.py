"""The SQL front end: text to statements, and the types. It knows nothing of catalogs, plans or running jobs."""
