"""How rows become the bytes of a message and back, as Spark SQL text. `base` says what a format is."""
