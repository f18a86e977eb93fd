"""Where a run of a job begins or continues, as a sentence."""

from __future__ import annotations

from headwater.protocol.checkpoint import Recovered

__all__ = ["beginning"]

_SHOWN = 6


def beginning(recovered: Recovered) -> str:
    """'Begins at orders:0 offset 0' or 'Continues after batch 41 at orders:0 offset 1,234; …'; nothing of a job that
    begins and reads no topic."""
    committed, pending = recovered.committed, recovered.pending
    places = [
        f"{key} offset {offset:,}"
        for position in committed.positions
        for key, offset in sorted(position.items(), key=lambda item: _order(item[0]))
        if ":" in key  # other sources than topics count in ways of their own
    ]
    where = ", ".join(places[:_SHOWN])
    if len(places) > _SHOWN:
        where += f" and {len(places) - _SHOWN} more"
    at = f" at {where}" if where else ""
    again = f"; batch {pending.batch}, which was not committed, is repeated first" if pending is not None else ""
    if committed.batch == 0:
        return f"Begins{at}{again}." if at or again else ""
    return f"Continues after batch {committed.batch:,}{at}{again}."


def _order(key: str) -> tuple[str, int]:
    name, _, number = key.rpartition(":")
    return (name, int(number)) if number.isdigit() else (key, 0)
