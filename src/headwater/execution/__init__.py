"""Jobs at work: the Spark session, plans that are lowered once, what runs in Spark's Python workers, the batch loop.

The protocol of batches is in `protocol`, what operators do in `changelog`, how topics are read and written in
`connectors`. Here these meet Spark.
"""
