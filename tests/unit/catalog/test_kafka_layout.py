"""Which columns are in keys and values, under which names."""

from __future__ import annotations

import pytest
from catalog_scripts import KAFKA, UPSERT, create

from headwater.connectors.kafka.table.layout import MessageLayout, PayloadLayout, message_layout

ORDERS = "region STRING, id BIGINT, total DECIMAL(10, 2), PRIMARY KEY (id, region) NOT ENFORCED"


def _names(side: PayloadLayout | None) -> list[tuple[str, str]]:
    return [] if side is None else [(c, f.name) for c, f in zip(side.columns, side.fields, strict=True)]


def _layout(columns: str, options: dict[str, str | None]) -> MessageLayout:
    return message_layout(create(columns, options))


def test_upsert_kafka_has_its_primary_key_in_the_key_in_its_order() -> None:
    layout = _layout(ORDERS, {**UPSERT, "key.format": "csv", "key.csv.field-delimiter": "|"})
    assert layout.key is not None
    assert _names(layout.key) == [("id", "id"), ("region", "region")]
    assert _names(layout.value) == [(c, c) for c in ("region", "id", "total")]
    assert (layout.key.format.identifier, layout.value.format.identifier) == ("csv", "json")
    assert layout.key.options["field-delimiter"] == "|"
    assert layout.value.options["ignore-parse-errors"] is False
    assert layout.upserts
    assert not layout.key.field_of("id").type.nullable


def test_except_key_and_prefix() -> None:
    columns = "k_id BIGINT, id STRING, n INT, PRIMARY KEY (k_id) NOT ENFORCED"
    options = {**UPSERT, "key.fields-prefix": "k_", "value.fields-include": "EXCEPT_KEY"}
    layout = _layout(columns, options)
    assert _names(layout.key) == [("k_id", "id")]
    assert _names(layout.value) == [("id", "id"), ("n", "n")]


def test_kafka_without_a_key() -> None:
    layout = _layout("a INT, b STRING", {**KAFKA, "json.ignore-parse-errors": "true"})
    assert layout.key is None
    assert _names(layout.value) == [("a", "a"), ("b", "b")]
    assert layout.value.options["ignore-parse-errors"] is True
    assert not layout.upserts


def test_kafka_with_key_fields_in_their_order() -> None:
    options = {**KAFKA, "format": None, "value.format": "json", "key.format": "raw", "key.fields": "b"}
    layout = _layout("a INT, b STRING", {**options, "key.raw.charset": "UTF-16"})
    assert layout.key is not None
    assert (_names(layout.key), layout.key.options["charset"]) == ([("b", "b")], "UTF-16")
    assert _names(_layout("a INT, b STRING", {**options, "key.format": "json", "key.fields": "b; a"}).key) == [
        ("b", "b"),
        ("a", "a"),
    ]


@pytest.mark.parametrize("key_format", [None, "json"])
def test_kafka_with_a_primary_key_writes_it_as_its_key(key_format: str | None) -> None:
    """Document 000: a csv table with a primary key and no word about keys."""
    layout = _layout(ORDERS, {**KAFKA, "format": "csv", "csv.field-delimiter": ";", "key.format": key_format})
    assert layout.key is not None
    assert _names(layout.key) == [("id", "id"), ("region", "region")]
    assert layout.upserts
    assert layout.key.format.identifier == (key_format or "csv")
    assert layout.key.options.get("field-delimiter") == (None if key_format else ";")


def test_key_fields_of_a_table_with_a_primary_key_are_the_primary_key() -> None:
    options = {**KAFKA, "key.format": "json", "key.fields": "region;id"}
    assert _names(_layout(ORDERS, options).key) == [("region", "region"), ("id", "id")]
    with pytest.raises(Exception, match="are not the same columns"):
        create(ORDERS, {**options, "key.fields": "total"})
