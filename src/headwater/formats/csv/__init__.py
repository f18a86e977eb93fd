"""The `csv` format: one line of values per message."""
