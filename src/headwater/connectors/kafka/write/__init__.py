"""Writing Kafka topics: the one way out.

Driver: `sink` (the port), `messages` (rows → messages, as Spark SQL), `topics`, `committed_batches` (what writers have
committed). Workers: `writer`, `partitions`, `columns` (Arrow → librdkafka), `transactions`, `pool`, `producer` and
`librdkafka` (librdkafka's C interface).
"""
