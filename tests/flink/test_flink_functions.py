"""What tests/unit/sql/test_functions_rows.txt has as Flink's values and types are those of Flink."""

from __future__ import annotations

import importlib.util
import json
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import ModuleType

import pytest
from flink_process import FlinkProcess, start_flink

from headwater.sql.parser import parse_type
from headwater.testing import CaseRunner
from headwater.testing.kafka import Record

pytestmark = [pytest.mark.flink, pytest.mark.timeout(900)]

PATH = Path(__file__).parents[1] / "unit" / "sql" / "test_functions_evaluated.py"
BATCH = 60
NOT_FLINKS = (
    "Different from Flink",
    "An error here",
    "Wider than Flink",
    "What changes by itself",
    "Only from Spark",
)
"""Sections, by how their headings begin."""

MESSAGE = """{"bo": true, "ti": 7, "si": 300, "i": 17, "bi": 5000000000, "f": 1.5, "d": 2.25, "dc": 123.45,
  "s": "Hello", "vc": "ab", "c": "xyz", "b": "SGVsbG8=", "dt": "2024-02-29", "tm": "12:34:56",
  "ts": "2024-02-29 12:34:56.789", "ltz": "2024-02-29 12:34:56.789Z", "arr": [1, 2, 3], "sarr": ["a", null, "b"],
  "m": {"a": 1, "b": 2}, "r": {"a": 1, "b": "x"}, "k": 42, "ks": "key", "zero": 0, "ni": null, "ns": null,
  "nbo": null, "narr": null}"""
"""The columns of the golden rows as Flink's JSON reads them."""


def golden() -> ModuleType:
    spec = importlib.util.spec_from_file_location("test_functions_evaluated", PATH)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where dataclasses look their module up
    spec.loader.exec_module(module)
    return module


GOLDEN = golden()


def flinks_rows(zone: str) -> list[tuple[int, str, str, str]]:
    """Line, expression, value, type."""
    lines = GOLDEN.ROWS.read_text(encoding="utf-8").splitlines()
    headings = {number: text[2:] for number, text in enumerate(lines, 1) if text.startswith("# ")}
    found = []
    for row in GOLDEN.rows():
        heading = headings[max(number for number in headings if number < row.line)]
        if row.zone == zone and not heading.startswith(NOT_FLINKS):
            found.append((row.line, row.expression, row.value, row.type))
    return found


def message() -> bytes:
    values = {**json.loads(MESSAGE), "js": json.dumps(GOLDEN.JSON)}
    assert set(values) == set(GOLDEN.COLUMNS)
    return json.dumps(values).encode()


@pytest.fixture(scope="module")
def flink(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FlinkProcess]:
    with start_flink(tmp_path_factory.mktemp("flink")) as started:
        yield started


@pytest.fixture(scope="module")
def table(case_runner: CaseRunner, unique_topic: Callable[[str], str]) -> str:
    topic = unique_topic("golden-functions")
    case_runner.kafka().create({topic: 1})
    case_runner.kafka().produce([Record(topic, None, message())])
    columns = ", ".join(f"{name} {kind}" for name, (kind, _) in GOLDEN.COLUMNS.items())
    servers = case_runner.kafka().bootstrap_servers
    return (
        f"CREATE TABLE t ({columns}) WITH ('connector' = 'kafka', 'topic' = '{topic}', 'format' = 'json', "
        f"'properties.bootstrap.servers' = '{servers}', 'scan.startup.mode' = 'earliest-offset', "
        "'scan.bounded.mode' = 'latest-offset')"
    )


def evaluated(expressions: Sequence[str], flink: FlinkProcess) -> list[tuple[str, str]]:
    """Value and type of each, or ERROR and why. A batch that fails is halved until the guilty one is alone."""
    query = "SELECT " + ", ".join(f"{e} AS r{n}" for n, e in enumerate(expressions)) + " FROM t"
    answer = flink.cells(query)
    if not isinstance(answer, str):
        return answer
    if len(expressions) == 1:
        return [("ERROR", answer)]
    half = len(expressions) // 2
    return evaluated(expressions[:half], flink) + evaluated(expressions[half:], flink)


def comparable(text: str) -> str:
    """Entries of maps in one order."""
    return "{" + ", ".join(sorted(text[1:-1].split(", "))) + "}" if text.startswith("{") else text


def plain_type(text: str) -> str:
    """A literal is a STRING or BYTES here, and that something is never NULL is not derived everywhere."""
    written = str(parse_type(text)).replace(" NOT NULL", "")
    return re.sub(r"\bBINARY\(\d+\)", "BYTES", re.sub(r"\b(VAR)?CHAR\(\d+\)", "STRING", written))


def difference(row: tuple[int, str, str, str], found: tuple[str, str]) -> str:
    line, expression, value, kind = row
    got, got_kind = found
    if got == "ERROR":
        return f"line {line}: {expression} fails: {got_kind}"
    if value != "?" and comparable(got) != comparable(value):
        return f"line {line}: {expression} is {got} in Flink, not {value}"
    if plain_type(got_kind) != plain_type(kind):
        return f"line {line}: {expression} has the type {plain_type(got_kind)} in Flink, not {kind}"
    return ""


@pytest.mark.parametrize("zone", ["UTC", "America/Los_Angeles"])
def test_golden_rows(zone: str, table: str, flink: FlinkProcess) -> None:
    flink.open([table], {"table.local-time-zone": zone})
    rows = flinks_rows(zone)
    calm = [row for row in rows if row[2] != "ERROR"]
    problems: list[str] = []
    for start in range(0, len(calm), BATCH):
        batch = calm[start : start + BATCH]
        found = evaluated([expression for _, expression, _, _ in batch], flink)
        problems += filter(None, map(difference, batch, found))
    if problems:
        pytest.fail("\n".join(problems))


def test_golden_errors(table: str, flink: FlinkProcess) -> None:
    flink.open([table])
    failing = [row[1] for row in flinks_rows("UTC") if row[2] == "ERROR"]
    assert failing
    assert [expression for expression in failing if evaluated([expression], flink)[0][0] != "ERROR"] == []
