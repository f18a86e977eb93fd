"""A job over several generated topics, as SQL that both engines run, and the recount that its results must equal.

A script is text with `${kafka}`, `${sink}` and the names of its topics to be replaced; its last table is `result`. What
the sink's topic holds at the end (a log: all of it; an upsert topic: the last value of every key) is read into DuckDB
and compared with the answer that DuckDB computes from the same generated rows.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from string import Template

import duckdb
import pyarrow as pa
import pyarrow.json as pa_json
from generate import Messages
from outputs import messages

__all__ = ["Recount", "Script", "Topic", "Wrong"]

_RESULT = re.compile(r"CREATE TABLE result \((.*?)\n\) WITH", re.DOTALL)
_COLUMN = re.compile(r"`?(\w+)`? ((?:BIGINT|STRING|TIMESTAMP|DECIMAL)(?:\([\d, ]+\))?)")
_READ_AS = {"BIGINT": pa.int64(), "DECIMAL": pa.float64(), "STRING": pa.string(), "TIMESTAMP": pa.string()}
"""How a value stands in JSON; DuckDB casts it to the column's type."""

BLOCK_BYTES = 8 << 20


class Wrong(RuntimeError):
    """Results that differ from the recount."""


@dataclass(frozen=True)
class Topic:
    """`share` of the rows of a workload are this topic's messages; `load` makes the tables of the recount."""

    generated: Messages
    share: float
    load: Callable[[duckdb.DuckDBPyConnection, int], None]

    def rows(self, rows: int) -> int:
        return int(rows * self.share)


@dataclass(frozen=True)
class Script:
    """`goal` is what Flink's time divided by ours should at least be. `flink` is another text for Flink, where it does
    not take ours. `compared` selects from the rows of `result` what is the same in every run, if that is not all.
    `wrong_in_flink` finds wrong rows of that, where Flink's need not be all rows of the answer."""

    name: str
    title: str
    goal: float
    topics: tuple[str, ...]
    sql: str
    answer: str
    flink: str = ""
    compared: str = ""
    wrong_in_flink: str = ""

    @property
    def keyed(self) -> bool:
        return "PRIMARY KEY" in self._result

    @property
    def columns(self) -> Mapping[str, str]:
        """The columns of `result` and their types, as SQL."""
        return dict(_COLUMN.findall(self._result.partition("PRIMARY KEY")[0]))

    @property
    def _result(self) -> str:
        found = _RESULT.search(self.sql)
        if found is None:
            raise ValueError(f"Script '{self.name}' has no table 'result'.")
        return found[1]

    def statements(self, engine: str, places: Mapping[str, str]) -> list[str]:
        """The job for an engine, statement by statement; no string in a script has a semicolon at a line's end."""
        text = self.flink if engine == "flink" and self.flink else self.sql
        text = "\n".join(line for line in text.splitlines() if not line.startswith("--"))
        text = re.sub(r"\b(TABLE|INTO) result\b", r"\1 results", text)  # RESULT is a reserved word of Flink's
        return [part.strip() for part in (Template(text).substitute(places) + "\n").split(";\n") if part.strip()]


class Recount:
    """The generated rows of some topics in DuckDB, and the answers to scripts over them."""

    def __init__(self, topics: Mapping[str, Topic], rows: int) -> None:
        self._database = duckdb.connect(config={"threads": 2})
        for topic in topics.values():
            topic.load(self._database, topic.rows(rows))

    def close(self) -> None:
        self._database.close()

    def check(self, engine: str, script: Script, servers: str, sink: str) -> int:
        """Compare the topic with the answer, row by row; how many messages it has."""
        columns = script.columns
        values, count = _final_values(servers, sink, script.keyed)
        self._database.register("written", _table(values, columns))
        casts = ", ".join(f'CAST("{name}" AS {_cast(kind)}) AS "{name}"' for name, kind in columns.items())
        self._database.execute(f"CREATE OR REPLACE TABLE result AS SELECT {casts} FROM written")
        self._database.unregister("written")
        if script.compared:
            self._database.execute(f"CREATE OR REPLACE TABLE result AS {script.compared}")
        if engine == "flink" and script.wrong_in_flink:
            wrong = ", ".join(map(str, self._rows(f"{script.wrong_in_flink} LIMIT 2")))
        else:
            wrong = self._compared_with(script.answer)
        if wrong:
            raise Wrong(f"{engine}'s results of '{script.name}' are wrong: {wrong}")
        return count

    def _compared_with(self, query: str) -> str:
        """How the rows of `result` differ from the answer; empty if they do not."""
        # The answer takes the result's names and types; too wide a type would compare as unequal.
        self._database.execute("CREATE OR REPLACE TABLE answer AS FROM result LIMIT 0")
        self._database.execute(f"INSERT INTO answer {query}")
        same = self._fingerprint("result") == self._fingerprint("answer")
        return "" if same else self._difference()

    def _fingerprint(self, table: str) -> tuple[object, ...]:
        """Of the rows in whatever order: how many there are, and the sum of their 64-bit hashes."""
        names = ", ".join(f'"{name}"' for (name, *_) in self._rows(f"DESCRIBE {table}"))
        return self._rows(f"SELECT COUNT(*), SUM(hash({names})) FROM {table}")[0]

    def _difference(self) -> str:
        extra, missing = (
            self._rows(f"SELECT *, COUNT(*) OVER () FROM (FROM {one} EXCEPT ALL FROM {other}) ORDER BY ALL LIMIT 2")
            for one, other in (("result", "answer"), ("answer", "result"))
        )
        return f"too many (the last number says how many in all): {extra}; missing: {missing}"

    def _rows(self, query: str) -> list[tuple[object, ...]]:
        """All rows: DuckDB takes no other query before."""
        found: list[tuple[object, ...]] = self._database.execute(query).fetchall()
        return found


def _final_values(servers: str, sink: str, keyed: bool) -> tuple[list[bytes], int]:
    """The values that count, and how many messages there are; in an upsert topic a null value deletes its key."""
    count = 0
    last: dict[bytes | int, bytes] = {}
    for key, value in messages(servers, sink):
        count += 1
        name = key if keyed else count
        if value is None:
            last.pop(name, None)
        else:
            last[name] = value
    return list(last.values()), count


def _table(values: Sequence[bytes], columns: Mapping[str, str]) -> pa.Table:
    schema = pa.schema([(name, _READ_AS[kind.partition("(")[0]]) for name, kind in columns.items()])
    if not values:
        return schema.empty_table()
    options = pa_json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="error")
    source = pa.BufferReader(b"\n".join(values))
    return pa_json.read_json(source, pa_json.ReadOptions(block_size=BLOCK_BYTES), options)


def _cast(kind: str) -> str:
    return "TIMESTAMP" if kind.startswith("TIMESTAMP") else kind
