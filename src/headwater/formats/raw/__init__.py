"""The `raw` format: one column, its bytes as they are."""
