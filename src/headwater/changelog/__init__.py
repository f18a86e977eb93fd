"""Changes and the operators that need to remember: pure steps over Arrow tables, without Spark, files or Kafka. Their
state tables are in `headwater.state`.

Changes           kinds, emission, consolidate, arrival
Operators         operator: what one is; state_ttl: what is removed when it has not been used
  upserts         normalize, normalize_each
  aggregation     aggregate, accumulate, reduce, results, list_results, variance, user_aggregate; multiset and
                  ordered_values: the values of a group; exact_sums, exact_sums_sql: DOUBLE
  before a shuffle  preaggregate, local_windows
  windows         window, session, window_assigners, combined_groups, at_window_end
  joins           join, interval_join, temporal_join, versions, pairing
  Top-N           rank, deduplicate, sorted_groups
  OVER            over, over_time, frames
  others          set_operation, materialize
Tools             conditions: predicates; columns, grouping, identity, ordering: Arrow columns; counted_rows, timers,
                  waiting_rows: shapes of state tables
"""
