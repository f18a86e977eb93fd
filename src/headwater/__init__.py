"""Flink-style SQL over Kafka topics, run as Spark Structured Streaming jobs."""
