"""A `kafka` or `upsert-kafka` table as declared: its options and what they require, its metadata columns, and which
columns are in the key and in the value of a message. Nothing here needs Spark or a broker."""
