"""EXPLAIN: the plan with what its lowering will do, as far as that is known before a job starts."""

from __future__ import annotations

from collections.abc import Iterator

from headwater.plan import explain as plan_text
from headwater.plan import nodes as n

__all__ = ["explain", "pre_aggregated_scans"]


def explain(root: n.Node, time_zone: str) -> str:
    """`time_zone` is that of the session."""
    return plan_text.explain(root, {id(scan) for scan in pre_aggregated_scans(root, time_zone)})


def pre_aggregated_scans(root: n.Node, time_zone: str) -> Iterator[n.Scan]:
    """The tables, as the plan has them, whose rows the tasks that read them add up to groups before the shuffle."""
    # Imported late: scripts are checked without Spark.
    from headwater.execution.lowering.aggregate import local_aggregation
    from headwater.execution.lowering.local_windows import scans_for_windows
    from headwater.execution.lowering.window import has_plain_ends

    for node in n.walk(root):
        if isinstance(node, n.WindowAggregate):
            yield from scans_for_windows(root, node) if has_plain_ends(node, time_zone) else ()
        elif isinstance(node, n.Aggregate) and (found := local_aggregation(node)) is not None:
            scan, local = found
            if scan.table.connector.pre_aggregates(scan.table, scan.names, dict(scan.fields), local):
                yield scan
