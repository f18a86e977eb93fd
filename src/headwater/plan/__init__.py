"""From a parsed INSERT to a plan that says, for every operator, which changes it emits, its key and its state.

expression  a compiled scalar or aggregate expression
nodes       immutable plan nodes, each with what it derives and requires
build       sqlglot trees → nodes, names and types resolved
rewrite     one rule for all nodes of a plan
merge       projections that only rename disappear
share       equal subplans are one node
push        filters move towards the sources
prune       every node carries only the columns somebody above needs
changelog   Normalize inserted where before-images are needed, the sink's key proved
panes       rows of windows that overlap are added up by the pieces of time that windows share
determinism no non-deterministic expression decides which row is retracted
planner     the passes in order
explain     the plan as text
fingerprint what a checkpoint stands for
"""
