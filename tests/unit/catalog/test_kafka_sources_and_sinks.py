"""What a valid `kafka` or `upsert-kafka` table may be used for: which can be read, which written; and its metadata."""

from __future__ import annotations

from pathlib import Path

import pytest
from catalog_scripts import COLUMNS, KAFKA, UPSERT, create

from headwater.catalog.connector import MetadataKey
from headwater.catalog.validation import check_sink, check_source
from headwater.errors import ValidationError
from headwater.plugins import CONNECTORS
from headwater.sql.functions.casts import convert
from headwater.sql.typed import Expr

KEYED = f"{COLUMNS}, PRIMARY KEY (id) NOT ENFORCED"
SIDES = {"format": None, "key.format": "json", "value.format": "json", "key.fields": "id"}


@pytest.mark.parametrize("metadata", CONNECTORS["kafka"].metadata, ids=lambda metadata: metadata.key)
def test_every_type_that_metadata_may_be_declared_with_can_be_read(metadata: MetadataKey) -> None:
    targets = (
        "STRING VARCHAR(3) BOOLEAN TINYINT INT BIGINT DECIMAL(10,2) DOUBLE DATE TIMESTAMP(3) TIMESTAMP_LTZ(3) BYTES"
    )
    nested = ["MAP<STRING, STRING>", "MAP<STRING, BYTES>", "ARRAY<ROW<k STRING, v STRING>>", "TIME(0)"]
    taken = 0
    for target in [*targets.split(), *nested]:
        declared = f"{COLUMNS}, m {target} METADATA FROM '{metadata.key}' VIRTUAL"
        try:
            [column] = create(declared, KAFKA).metadata_columns
        except ValidationError:
            continue
        taken += 1
        convert(Expr("x", metadata.type, frozenset(), "x"), column.type)
    assert taken


def test_a_log_with_a_primary_key_can_be_written_but_not_read() -> None:
    table = create(KEYED, {**KAFKA, "format": "csv"})
    check_sink(table)
    with pytest.raises(ValidationError) as raised:
        check_source(table)
    text = str(raised.value)
    assert "Unable to create a source for reading table 't'." in text
    assert "The Kafka table 't' with 'csv' format doesn't support defining PRIMARY KEY constraint on the table" in text
    check_source(create(COLUMNS, KAFKA))
    check_source(create(KEYED, UPSERT))


@pytest.mark.parametrize(
    ("column", "problem"),
    [
        ("o BIGINT METADATA FROM 'offset'", "Invalid metadata key 'offset': it can be read but not written"),
        ("tp STRING METADATA FROM 'topic'", "Metadata key 'topic' can be written only if the table has several topics"),
        (
            "h MAP<STRING, BYTES> METADATA FROM 'headers', l ARRAY<ROW<k STRING, v BYTES>> METADATA FROM 'header-list'",
            "The writable metadata is ambiguous. Please use either metadata key 'headers' or 'header-list'.",
        ),
    ],
)
def test_metadata_that_cannot_be_written(column: str, problem: str) -> None:
    table = create(f"{COLUMNS}, {column}", KAFKA)
    check_source(table)
    with pytest.raises(ValidationError) as raised:
        check_sink(table)
    assert problem in str(raised.value)


@pytest.mark.parametrize(
    ("columns", "change", "problem"),
    [
        ("", {"topic": "a;b"}, "A table with several topics is written only if each row names one of them"),
        (
            "",
            {"sink.partitioner": "abc"},
            "Could not find and instantiate partitioner class 'abc': it is neither one of",
        ),
        (
            "",
            {"sink.partitioner": "my class.X"},
            "class 'my class.X': it is neither one of default, fixed, round-robin",
        ),
        (
            "",
            {"sink.delivery-guarantee": "exactly-once", "properties.interceptor.classes": "a.B"},
            "'properties.interceptor.classes' cannot be used where 'exactly-once' is asked for: it names Java classes.",
        ),
        (
            ", ts2 TIMESTAMP_LTZ(3) METADATA FROM 'timestamp'",
            {"properties.no.such.thing": "1"},
            "'properties.no.such.thing' cannot be used where 'timestamp' is written: it has no counterpart",
        ),
    ],
)
def test_tables_that_cannot_be_written(columns: str, change: dict[str, str | None], problem: str) -> None:
    table = create(f"{COLUMNS}{columns}", {**KAFKA, **change})
    with pytest.raises(ValidationError) as raised:
        check_sink(table)
    assert problem in str(raised.value)


def test_tables_whose_rows_name_their_topic() -> None:
    column = "tp STRING METADATA FROM 'topic', ts2 TIMESTAMP_LTZ(3) METADATA FROM 'timestamp'"
    check_sink(create(f"{COLUMNS}, {column}", {**KAFKA, "topic": "a;b"}))
    check_sink(create(f"{COLUMNS}, {column}", {**KAFKA, "topic": None, "topic-pattern": "a.*"}))


def test_a_partitioner_class_is_not_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A script that is checked may come from anywhere, and its classes may be elsewhere."""
    (tmp_path / "booby_trap.py").write_text("raise SystemExit('imported')")
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in ("booby_trap.Partitioner", "no.such.Class", "org.mycompany.MyPartitioner"):
        check_sink(create(COLUMNS, {**KAFKA, "sink.partitioner": name}))


def test_metadata_that_can_be_written_or_only_read() -> None:
    virtual = "o BIGINT METADATA FROM 'offset' VIRTUAL, w TIMESTAMP(3) METADATA FROM 'timestamp' VIRTUAL"
    check_sink(create(f"{COLUMNS}, {virtual}, h MAP<STRING, BYTES> METADATA FROM 'headers'", KAFKA))
    table = create(f"{COLUMNS}, e INT METADATA FROM 'leader-epoch' VIRTUAL", KAFKA)
    check_sink(table)
    check_source(table)


def test_sinks_cannot_be_read_and_sources_not_be_written() -> None:
    for connector in ("print", "blackhole"):
        with pytest.raises(ValidationError, match=f"cannot be read: '{connector}' is a sink"):
            check_source(create("a INT", {"connector": connector}))
    with pytest.raises(ValidationError, match="cannot be written: 'datagen' is a source"):
        check_sink(create("a INT", {"connector": "datagen"}))
