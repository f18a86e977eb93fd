"""Reading topics: the one way in for Kafka messages.

source             the driver's side: positions, what is available, splits, bad messages, schemas
splits             positions, and which task reads what of a batch
fetch              in the workers: splits → messages in Arrow columns, by librdkafka
columns            in the workers: messages → columns of rows, by the formats' column readers, in chunks
superseded         in the workers: of an upsert table, only the last message of a key counts
local_aggregation  in the workers: pre-aggregation
reader             in the workers: all of it for one task
payloads           what a query wants of keys and values
expressions        Spark SQL for what a column reader refuses, for conversions, and for errors
scan               a table and the columns that are wanted → `ScanPlan`
bad_records        messages that cannot be decoded, counted and diverted
data_loss          messages that are gone before they are read
discovery          topics and partitions; startup: where reading starts and ends
"""
