"""From a parsed INSERT to a plan that says, for every operator, which changes it emits, its key and its state.

expression  a compiled scalar or aggregate expression
nodes       immutable plan nodes
traits      changelog mode, unique key and boundedness of a node
build       sqlglot trees → nodes, names and types resolved
merge       projections that only rename disappear
prune       every node carries only the columns somebody above needs
changelog   Normalize inserted where before-images are needed, the sink's key proved
chance      nothing that changes by itself decides what is taken back
planner     the passes in order
explain     the plan as text
signature   what a checkpoint must agree with
"""
