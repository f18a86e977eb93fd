"""Rows of several inputs arrive together, and are told apart before the operator sees them."""

from __future__ import annotations

from datetime import datetime, timezone

import pyarrow as pa

from headwater.changelog.kinds import HASH, KIND
from headwater.execution.worker import INPUT, _rows_of_input, input_column


def test_each_input_gets_its_own_columns() -> None:
    at = datetime(2024, 5, 1, 12, tzinfo=timezone.utc)
    first = pa.struct([("k", pa.int32()), ("name", pa.string()), (KIND, pa.int8())])
    second = pa.struct([("at", pa.timestamp("us", "Europe/Berlin"))])
    together = pa.table(
        {
            HASH: pa.array([7, 8, 9], pa.int64()),
            INPUT: pa.array([0, 1, 0], pa.int8()),
            input_column(0): pa.array(
                [{"k": 1, "name": "a", KIND: 0}, None, {"k": None, "name": None, KIND: 3}], first
            ),
            input_column(1): pa.array([None, {"at": at}, None], second),
        }
    )
    left, right = _rows_of_input(together, 0), _rows_of_input(together, 1)
    assert left.to_pylist() == [{HASH: 7, "k": 1, "name": "a", KIND: 0}, {HASH: 9, "k": None, "name": None, KIND: 3}]
    assert right.to_pylist() == [{HASH: 8, "at": at}]
    assert right.schema.field("at").type == pa.timestamp("us", "UTC")
    assert _rows_of_input(together.slice(0, 1), 1).num_rows == 0
