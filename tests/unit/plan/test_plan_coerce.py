"""Which types may meet."""

from __future__ import annotations

import pytest

from headwater.plan.coerce import fits, wider
from headwater.plan.names import unique_names
from headwater.sql import types as t
from headwater.sql.types import Field, SqlType


def array(of: SqlType) -> SqlType:
    return SqlType("ARRAY", element=of)


def row(*fields: SqlType) -> SqlType:
    return SqlType("ROW", fields=tuple(Field(f"f{i}", kind) for i, kind in enumerate(fields)))


@pytest.mark.parametrize(
    ("source", "target", "answer"),
    [
        (t.INT, t.BIGINT, True),
        (t.BIGINT, t.INT, False),
        (t.INT, t.DOUBLE, True),
        (t.INT, t.decimal(10, 0), True),
        (t.decimal(10, 2), t.decimal(12, 2), True),
        (t.decimal(10, 2), t.decimal(10, 4), True),
        (t.decimal(10, 2), t.DOUBLE, True),
        (t.DOUBLE, t.decimal(10, 2), True),
        (t.BIGINT, t.decimal(3, 2), True),
        (t.FLOAT, t.DOUBLE, True),
        (t.DOUBLE, t.FLOAT, False),
        (t.STRING, SqlType("VARCHAR", length=5), True),
        (t.STRING, t.INT, False),
        (t.INT, t.STRING, False),
        (t.BYTES, SqlType("BINARY", length=2), True),
        (t.NULL, t.INT, True),
        (t.INT.not_null(), t.INT, True),
        (t.INT, t.INT.not_null(), True),
        (t.DATE, t.timestamp(3), True),
        (t.timestamp(3), t.DATE, True),
        (t.timestamp(3), t.TIME, True),
        (t.timestamp_ltz(3), t.DATE, False),
        (t.DOUBLE, t.BIGINT, False),
        (array(t.DOUBLE), array(t.decimal(10, 2)), True),
        (t.timestamp(3), t.timestamp_ltz(3), True),
        (t.TIME, SqlType("TIME", precision=3), True),
        (array(t.INT), array(t.BIGINT), True),
        (array(t.BIGINT), array(t.INT), False),
        (array(t.INT), t.INT, False),
        (row(t.INT, t.STRING), row(t.BIGINT, t.STRING), True),
        (row(t.INT), row(t.INT, t.INT), False),
        (SqlType("MAP", key=t.STRING, element=t.INT), SqlType("MAP", key=t.STRING, element=t.BIGINT), True),
        (SqlType("MAP", key=t.STRING, element=t.INT), SqlType("MAP", key=t.INT, element=t.INT), False),
        (t.BOOLEAN, t.INT, False),
    ],
)
def test_what_may_be_stored_unasked(source: SqlType, target: SqlType, answer: bool) -> None:
    assert fits(source, target) is answer


@pytest.mark.parametrize(
    ("a", "b", "both"),
    [
        (t.INT, t.BIGINT, t.BIGINT),
        (t.BIGINT, t.INT, t.BIGINT),
        (t.INT.not_null(), t.INT.not_null(), t.INT.not_null()),
        (t.INT.not_null(), t.INT, t.INT),
        (t.decimal(10, 2), t.decimal(5, 4), t.decimal(12, 4)),
        (t.NULL, t.STRING, t.STRING),
        (t.STRING, t.INT, None),
        (t.DOUBLE, t.decimal(10, 2), t.DOUBLE),
        (t.decimal(10, 2), t.DOUBLE, t.DOUBLE),
        (t.timestamp(3), t.DATE, t.timestamp(3)),
        # as Flink has it: no value of either becomes NULL or loses digits
        (t.INT, t.decimal(2, 1), t.decimal(11, 1)),
        (t.decimal(2, 1), t.BIGINT, t.decimal(20, 1)),
        (t.FLOAT, t.decimal(10, 2), t.DOUBLE),
        (t.timestamp(3), t.timestamp(0), t.timestamp(3)),
        (array(t.INT), array(t.decimal(2, 1)), array(t.decimal(11, 1))),
    ],
)
def test_what_holds_both(a: SqlType, b: SqlType, both: SqlType | None) -> None:
    assert wider(a, b) == both


def test_names_are_made_unique_as_flink_does() -> None:
    assert unique_names(["a", "b", "a", "a", "a0"]) == ["a", "b", "a0", "a1", "a00"]
