"""The `avro` format: records without a header. Those of a schema registry are in `confluent`."""
