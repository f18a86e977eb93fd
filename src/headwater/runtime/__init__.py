"""Plans become Spark jobs here, and nowhere else.

jars        the jars Spark needs, fetched once
spark       the session
lower       plan nodes → DataFrames, one function per node
keyed       the host of stateful operators inside Spark's Python workers
layers      their state on disk, version by version
checkpoint  what a job has promised and what it has done
job         the loop: one micro-batch after the other
failures    Spark's exceptions → ours
"""
