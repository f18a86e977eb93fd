"""Sources, and what is done with every row on its own."""

from __future__ import annotations

from functools import partial, reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema

from headwater.changelog.consolidate import consolidate, consolidate_in_order, consolidate_last, consolidate_net
from headwater.changelog.kinds import DELETE, HASH, KIND
from headwater.changelog.normalize import ORDER, NormalizeOperator
from headwater.changelog.normalize_each import NormalizeEach
from headwater.changelog.operator import ORIGIN, OWN_WATERMARK
from headwater.connectors.workers import map_in_arrow
from headwater.execution.lowering.base import HIDDEN, ORDERED_BY, Lowering, lowers, pick
from headwater.execution.lowering.reading import filters_above_scan, readable_part, takes_order
from headwater.execution.lowering.time import watermarked
from headwater.execution.worker import stateless
from headwater.plan import nodes as n
from headwater.sql.spark_text import quote_name
from headwater.state.partitions import hash_sql

__all__: list[str] = []


@lowers(n.Scan, n.Values)
def _scan(lowering: Lowering, node: n.Scan | n.Values) -> DataFrame:
    plan = lowering.inputs.scan(node, order="any" if takes_order(lowering.root, node) else "ignored")
    assert plan is not None
    return lowering.scanned(node, plan)


@lowers(n.Project)
def _project(lowering: Lowering, node: n.Project) -> DataFrame:
    frame = lowering.lower(node.input)
    items = [f"{e.sql} AS {quote_name(c.name)}" for c, e in node.items]
    # Kinds, order and watermarks travel beside the columns of the query; no projection may lose them.
    hidden = [quote_name(c) for c in HIDDEN if c in frame.columns]
    return frame.selectExpr(*items, *hidden)


@lowers(n.Filter)
def _filter(lowering: Lowering, node: n.Filter) -> DataFrame:
    """Above a table, or the watermark of its rows, Python workers leave out what they can. The whole filter is
    evaluated behind them, also for messages that they refused."""
    if isinstance(node.input, n.Watermark):
        rows = watermarked(lowering, node.input, readable_part([node.predicate]))
        return rows.where(node.predicate.sql)
    found = filters_above_scan(node)
    where = readable_part(found[1]) if found is not None else None
    if found is None or where is None:
        return lowering.lower(node.input).where(node.predicate.sql)
    scan, predicates = found
    plan = lowering.inputs.scan(scan, where=where, order="any" if takes_order(lowering.root, scan) else "ignored")
    assert plan is not None
    frame = lowering.scanned(scan, plan)
    for predicate in reversed(predicates):
        frame = frame.where(predicate.sql)
    return frame


@lowers(n.FilterToDelete)
def _filter_to_delete(lowering: Lowering, node: n.FilterToDelete) -> DataFrame:
    """A row that fails the predicate is left with nothing but its key and its time, from which on it is gone: what is
    computed from it must not fail on it."""
    frame = lowering.lower(node.input)
    # A predicate that is unknown counts as not passed: CASE takes ELSE for NULL as well.
    kind = F.expr(f"CASE WHEN {node.predicate.sql} THEN {KIND} ELSE CAST({DELETE} AS TINYINT) END")
    judged = frame.withColumn(KIND, kind)
    kept = {*(node.key or ()), *node.times, *HIDDEN}
    rest = {
        c: f"IF({KIND} = {DELETE}, NULL, {quote_name(c)}) AS {quote_name(c)}" for c in frame.columns if c not in kept
    }
    return judged.selectExpr(*(rest.get(c, quote_name(c)) for c in frame.columns))


@lowers(n.Expand)
def _expand(lowering: Lowering, node: n.Expand) -> DataFrame:
    frame = lowering.lower(node.input).drop(*ORDERED_BY)
    rows = []
    for number, kept in zip(node.numbers, node.sets, strict=True):
        groups = [
            # Written as an IF and not as a bare NULL: the copy keeps the type of its group, also where the set leaves
            # it out.
            f"IF({'true' if one else 'false'}, {quote_name(group)}, NULL) AS {quote_name(copy.name)}"
            for copy, group, one in zip(node.copies, node.groups, kept, strict=True)
        ]
        rows.append(f"struct({', '.join(groups)}, {number}L AS {quote_name(node.columns[-1].name)})")
    return frame.selectExpr("*", f"inline(array({', '.join(rows)}))")


@lowers(n.UnionAll)
def _union(lowering: Lowering, node: n.UnionAll) -> DataFrame:
    """Rows of inserts get a kind if any other part has one. The order of changes in one topic says nothing about those
    of another."""
    frames = [lowering.lower(part).drop(*ORDERED_BY) for part in node.parts]
    if any(KIND in frame.columns for frame in frames):
        insert = F.lit(0).cast("tinyint")
        frames = [f if KIND in f.columns else f.withColumn(KIND, insert) for f in frames]
    for hidden, kind in ((OWN_WATERMARK, "TIMESTAMP_NTZ"), (ORIGIN, "STRING")):
        if any(hidden in frame.columns for frame in frames):
            none = F.expr(f"CAST(NULL AS {kind})")
            frames = [f if hidden in f.columns else f.withColumn(hidden, none) for f in frames]
    return reduce(lambda a, b: a.unionByName(b), frames)


@lowers(n.Normalize)
def _normalize(lowering: Lowering, node: n.Normalize) -> DataFrame:
    frame = lowering.lower(node.input)
    values = [name for name in node.names if name not in node.by]
    order = [c for c in HIDDEN if c in frame.columns]
    frame = frame.select(*map(quote_name, [*node.by, *values, *order]))
    keys = [quote_name(k) for k in node.by]
    frame = frame.selectExpr("*", f"{hash_sql(keys)} AS {HASH}").repartition(lowering.partitions, *keys)
    schema = to_arrow_schema(frame.schema)
    operator = NormalizeOperator(pick(schema, node.by), pick(schema, values), node.before)
    # With a watermark every change counts, and not only the net one of a batch: see `normalize_each`.
    each = OWN_WATERMARK in frame.columns and node.before
    return lowering.keyed(node, frame, NormalizeEach(operator) if each else operator)


@lowers(n.Consolidate)
def _consolidate(lowering: Lowering, node: n.Consolidate) -> DataFrame:
    """Operators leave at most one row of a key alive; changes from a topic are in order."""
    frame = lowering.lower(node.input)
    # With a watermark, `NormalizeEach` emits every change of a key and not only the net one of a batch, in order.
    each = OWN_WATERMARK in frame.columns
    frame = frame.drop(OWN_WATERMARK, ORIGIN)
    if ORDER not in frame.columns:
        # Where an operator has put all changes of a key into one task, one pass within the task is enough: no second
        # shuffle.
        together = node.input.distribution
        apart = together is None or not set(together) <= set(node.by)
        if apart:  # one partition may retract what another adds
            frame = frame.repartition(lowering.partitions, *map(quote_name, node.by))
        how = consolidate_net if apart else consolidate_last if each else consolidate
        step = partial(how, key=list(node.by))
        return map_in_arrow(frame, stateless(step, to_arrow_schema(frame.schema)), frame.schema)
    frame = frame.repartition(lowering.partitions, *map(quote_name, node.by))
    output = frame.select(*map(quote_name, [*node.names, KIND])).schema
    step = partial(consolidate_in_order, key=list(node.by), columns=list(node.names))
    return map_in_arrow(frame, stateless(step, to_arrow_schema(output)), output)
