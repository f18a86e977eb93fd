"""Every change of upserts, with its watermark, however batches are cut."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa
from changelog_model import empty_state, small_hash, table
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.changelog.kinds import DELETE, HASH, INSERT, KIND, UPDATE_AFTER, UPDATE_BEFORE
from headwater.changelog.normalize import OFFSET, ORDER, PARTITION, NormalizeOperator
from headwater.changelog.normalize_each import NormalizeEach
from headwater.changelog.operator import OWN_WATERMARK, Time

KEYS, VALUES = pa.schema([("id", pa.string())]), pa.schema([("v", pa.int64())])
INPUT = pa.schema(
    [
        *((HASH, pa.int64()), (KIND, pa.int8()), *KEYS, *VALUES),
        *((ORDER, pa.timestamp("us", "UTC")), (PARTITION, pa.int32()), (OFFSET, pa.int64())),
        (OWN_WATERMARK, pa.timestamp("us")),
    ]
)
Upsert = tuple[str, int | None]
Change = tuple[int, str, int | None, datetime]
histories = st.lists(st.tuples(st.sampled_from("abc"), st.none() | st.integers(0, 2)), max_size=20)


def stamp(offset: int) -> datetime:
    return datetime(2024, 1, 1) + timedelta(seconds=offset)  # noqa: DTZ001 - a watermark has no zone


def expected(history: list[Upsert]) -> Counter[Change]:
    now: dict[str, int | None] = {}
    changes: list[Change] = []
    for offset, (key, value) in enumerate(history):
        before = now.get(key)
        if value is None and key in now:
            changes.append((DELETE, key, now.pop(key), stamp(offset)))
        elif value is not None and key not in now:
            changes.append((INSERT, key, value, stamp(offset)))
            now[key] = value
        elif value is not None and before != value:
            changes += [(UPDATE_BEFORE, key, before, stamp(offset)), (UPDATE_AFTER, key, value, stamp(offset))]
            now[key] = value
    return Counter(changes)


@settings(deadline=None, derandomize=True, max_examples=200)
@given(histories, st.lists(st.integers(1, 8), max_size=6), st.sampled_from([1, 3, 1 << 40]))
def test_every_change_is_emitted_once_with_its_watermark(history: list[Upsert], cuts: list[int], spread: int) -> None:
    operator = NormalizeEach(NormalizeOperator(KEYS, VALUES, before=True))
    state, found = empty_state(operator), Counter[Change]()
    rows: list[tuple[Any, ...]] = [
        (small_hash(key, spread), DELETE if v is None else INSERT, key, v, 0, 0, offset, stamp(offset))
        for offset, (key, v) in enumerate(history)
    ]
    for size in [*cuts, len(rows)]:
        batch, rows = rows[:size], rows[size:]
        if batch:
            changes = operator.step(state, (table(INPUT, batch[::-1]),), Time())
            found.update((r[KIND], r["id"], r["v"], r[OWN_WATERMARK]) for r in changes.to_pylist())
    assert found == expected(history)
