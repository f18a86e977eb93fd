"""The state of operators: keyed tables made of sorted runs, and the files they are stored in.

Pure: numpy and pyarrow, no Spark, no storage backend; where files lie is known to the `Storage` that is passed in.

columns     Arrow columns as one piece, compared null-safe
manifest    what a commit says about state: `RunFile`; what state needs of a checkpoint's storage: `Storage`
runs        a sorted run: immutable rows in record batches, searched by hash, in memory or mapped from a file
merge       several runs into one, in chunks of bounded size
compaction  which runs are merged, by a step or beside the batches
table       a keyed table over runs: lookup, scans, writes, tombstones
files       runs as files: open what a commit names, store what a step wrote, compact, release what is not named
partitions  which state partition a hash belongs to
rescale     the state of P partitions rewritten for N
"""
