"""Avro with schemas kept in a registry that speaks Confluent's protocol.

options    what a table says, and what that makes of a client
client     the protocol, over HTTP
schemas    what is known of a registry, shared by all jobs of the process
types      an Avro schema as a tree
reading    a writer's schema → the table's columns
writing    the table's columns → the schema that is written
format     avro-confluent
debezium   debezium-avro-confluent
"""
