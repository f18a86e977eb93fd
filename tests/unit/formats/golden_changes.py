"""Golden files of changelog formats: rows come with the kind of their change, and may bring metadata along."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from column_reading import arrow_types
from golden_rows import expected, literal, shown
from pyspark.sql import SparkSession

from headwater.changelog.kinds import SHORT_NAMES
from headwater.formats.base import (
    ChangelogFormat,
    Decoder,
    DecodeRequest,
    FormatField,
    RowChange,
    all_formats,
    change_name,
)
from headwater.options.parsing import parse_options
from headwater.sql.parser import parse_type
from headwater.sql.types import Field, SqlType


@dataclass(frozen=True)
class Changes:
    """One table in a changelog format. `encode`, `decode` and Flink's answers to both are as in the golden file."""

    format: str
    name: str
    fields: tuple[FormatField, ...]
    options: dict[str, Any]
    metadata: tuple[str, ...] = ()
    encode: tuple[Any, ...] = ()
    encoded: tuple[Any, ...] = ()
    decode: tuple[str, ...] = ()
    decoded: tuple[Any, ...] = ()

    @property
    def reader(self) -> ChangelogFormat:
        found = all_formats()[self.format]
        assert isinstance(found, ChangelogFormat)
        return found

    @property
    def row(self) -> SqlType:
        """The type of a row that is read: the columns, then the metadata."""
        types = {m.key: m.type for m in self.reader.metadata}
        columns = [Field(f.name, f.type) for f in self.fields]
        return SqlType("ROW", fields=(*columns, *(Field(key, types[key]) for key in self.metadata)))


def table(format_name: str, columns: str, metadata: Sequence[str] = (), **options: str) -> Changes:
    """A table of our own; '.' and '-' in options are written as '__' and '_'."""
    given = {key.replace("__", ".").replace("_", "-"): value for key, value in options.items()}
    return _changes(format_name, {"name": "own", "type": f"ROW<{columns}>", "options": given, "metadata": metadata})


def golden_changes(format_name: str) -> list[Changes]:
    path = Path(__file__).parent / "golden" / f"{format_name}.json"
    return [_changes(format_name, raw) for raw in json.loads(path.read_text())]


def _changes(format_name: str, raw: dict[str, Any]) -> Changes:
    declared = all_formats()[format_name].options
    return Changes(
        format_name,
        raw["name"],
        tuple(FormatField(f.name, f.type) for f in parse_type(raw["type"]).fields),
        dict(parse_options(declared, raw.get("options", {}), format_name).values),
        *(tuple(raw.get(key, ())) for key in ("metadata", "encode", "encoded", "decode", "decoded")),
    )


def written(spark: SparkSession, case: Changes, rows: Sequence[Any]) -> list[str]:
    """The messages for rows given as [kind, row], and for updates as [old row, new row]."""
    return [bytes(spark.sql(f"SELECT {_encoder(case, *pair)} AS m").first().m).decode() for pair in rows]


def _encoder(case: Changes, first: Any, second: Any) -> str:
    if isinstance(first, list):
        return case.reader.change_encoder(
            RowChange(case.fields, _literals(case, first), _literals(case, second)), case.options
        )
    gone = first in {"-U", "-D"}
    row = _literals(case, second)
    return case.reader.change_encoder(
        RowChange(case.fields, row if gone else None, None if gone else row), case.options
    )


def _literals(case: Changes, row: list[Any]) -> list[str]:
    return [literal(value, f.type) for value, f in zip(row, case.fields, strict=True)]


def read(spark: SparkSession, case: Changes, messages: Sequence[bytes], wanted: Sequence[str] = ()) -> list[Any]:
    """Per message: its changes as [kind, row], or its error."""
    names = list(wanted) or [f.name for f in case.fields]
    decoder = case.reader.decoder(DecodeRequest("value", "p", case.fields, tuple(names), case.options, case.metadata))
    values = ", ".join(f"({i}, X'{m.hex()}')" for i, m in enumerate(messages))
    return _answers(spark, case, decoder, f"VALUES {values} AS t(i, value)", names, len(messages))


def read_in_columns(spark: SparkSession, case: Changes, messages: Sequence[bytes]) -> dict[bytes, Any]:
    """As `read`, of messages that the reader of columns takes, each on its own."""
    names = [f.name for f in case.fields]
    decoder = case.reader.decoder(DecodeRequest("value", "p", case.fields, tuple(names), case.options, case.metadata))
    reader = decoder.reader
    if reader is None:
        return {}
    assert decoder.over is not None
    labels = [f"r{i}" for i in range(len(reader.types))]
    types = arrow_types(reader)
    taken = [(m, columns) for m in messages if (columns := reader.read(pa.array([m], pa.binary()), types)) is not None]
    if not taken:
        return {}
    parts = [
        pa.table([pa.array([i], pa.int32()), pa.array([m], pa.binary()), *columns], names=["i", "value", *labels])
        for i, (m, columns) in enumerate(taken)
    ]
    schema = ", ".join(["i INT", "value BINARY", *(f"{n} {t}" for n, t in zip(labels, reader.types, strict=True))])
    spark.createDataFrame(pa.concat_tables(parts), schema).createOrReplaceTempView("taken")
    answers = _answers(spark, case, decoder.over(labels), "taken", names, len(taken))
    return {message: answer for (message, _), answer in zip(taken, answers, strict=True)}


def _answers(
    spark: SparkSession, case: Changes, decoder: Decoder, source: str, names: Sequence[str], count: int
) -> list[Any]:
    """`source` has the messages as `value`, numbered by `i`."""
    for alias, sql in decoder.steps("p"):
        source = f"(SELECT *, {sql} AS {alias} FROM {source})"
    error = f"IF({decoder.skip or False}, NULL, {decoder.error or 'CAST(NULL AS STRING)'})"
    source = f"(SELECT *, {error} AS error, {decoder.skip or False} AS skip FROM {source})"
    one, good = change_name("p"), "error IS NULL AND NOT skip"
    columns = ", ".join(f"{sql} AS c{i}" for i, sql in enumerate((*decoder.columns, *decoder.metadata)))
    query = (
        f"SELECT i, error, {one}.kind AS kind, {columns} FROM {source} "
        f"LATERAL VIEW OUTER posexplode(IF({good}, {decoder.changes}, NULL)) x AS position, {one} ORDER BY i, position"
    )
    answers: list[Any] = [[] for _ in range(count)]
    kinds = [f.type for f in case.row.fields if f.name in names or f.name in case.metadata]
    for row in spark.sql(query).collect():
        if row.error is not None:
            answers[row.i] = {"error": row.error}
        elif row.kind is not None:
            values = [shown(row[f"c{i}"], kind) for i, kind in enumerate(kinds)]
            answers[row.i].append([SHORT_NAMES[row.kind], values])
    return answers


def flinks(case: Changes) -> list[Any]:
    """Flink's answers, in the types of `read`."""
    return [
        answer if isinstance(answer, dict) else [[kind, expected(row, case.row)] for kind, row in answer]
        for answer in case.decoded
    ]
