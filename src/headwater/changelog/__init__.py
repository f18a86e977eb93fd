"""Changes and the operators that need to remember: pure steps over Arrow tables, without Spark, files or Kafka.

kinds      the four kinds of change
columns    null-safe comparison and grouping of Arrow columns
reduce     sums and extremes of groups, as SQL has them
state      a keyed table made of immutable sorted runs
operator   what an operator is
normalize  upserts in, full changelog out
aggregate  GROUP BY under retraction
multiset   how often each value occurs in its group: DISTINCT, MIN and MAX under retraction
"""
