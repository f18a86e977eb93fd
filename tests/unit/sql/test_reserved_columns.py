"""Names that Headwater gives to columns of its own are not for columns of users; all others are."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import headwater
from headwater.errors import HeadwaterError
from headwater.sql.parser import parse_script
from headwater.sql.reserved_columns import is_reserved

SOURCES = Path(headwater.__file__).parent


def own_names() -> Iterator[str]:
    """Whatever in the sources looks like the name of a column with two underscores, also if it is put together."""
    for path in SOURCES.rglob("*.py"):
        if path.stem == "reserved_columns":
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield from re.findall(r"(?<![\w$])__[a-z]\w*\b", node.value)
            elif isinstance(node, ast.JoinedStr):
                constants = [part.value for part in node.values if isinstance(part, ast.Constant)]
                yield from ("__{}" for constant in constants if re.search(r"(?<!\w)__$", str(constant)))


def test_all_names_of_the_sources_are_reserved() -> None:
    found = {name for name in own_names() if not name.endswith("__")}
    assert {"__hw_kind", "__hw_watermark", "__hw_message", "__hw_branch"} <= found
    assert [name for name in sorted(found) if not is_reserved(name)] == []


@pytest.mark.parametrize("name", ["__op", "__deleted", "__ts_ms", "__kind", "__hw", "_hw_kind", "hw_kind"])
def test_other_names_are_free(name: str) -> None:
    assert not is_reserved(name)


@pytest.mark.parametrize(
    "script",
    [
        "CREATE TABLE t (id INT, `__hw_kind` STRING) WITH ('connector' = 'print')",
        "CREATE TABLE t (id INT, __hw_ts AS id + 1) WITH ('connector' = 'print')",
        "CREATE VIEW v (__hw_place) AS SELECT 1",
        "CREATE TABLE t (r ROW<`__hw_kind` INT>) WITH ('connector' = 'print')",
        "SELECT id AS __hw_value_0 FROM t",
        "SELECT id __hw_kind FROM t",
        "WITH q (__hw_row) AS (SELECT 1) SELECT * FROM q",
        "SELECT * FROM (VALUES (1)) AS q (__hw_offset)",
    ],
)
def test_they_are_refused_where_a_column_is_named(script: str) -> None:
    with pytest.raises(HeadwaterError, match=r"Headwater has a column '__hw_[a-z_0-9]+' itself") as caught:
        parse_script(script)
    assert "Give the column another name." in str(caught.value)
