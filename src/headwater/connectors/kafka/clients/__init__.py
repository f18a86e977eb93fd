"""Clients of a Kafka cluster: their settings, questions to the brokers, and what their errors mean.

settings       'properties.*' of a table as settings of librdkafka
admin          questions to the brokers: what a job asks, and who asks it
rdkafka_admin  asked with librdkafka
jvm_admin      asked with the Kafka client inside Spark's JVM, for properties that only that understands
broker_errors  what a failed question means for a person
client_errors  the same for clients that read and write, in the workers
spark_options  'properties.*' as options of Spark's Kafka reader and writer
"""
