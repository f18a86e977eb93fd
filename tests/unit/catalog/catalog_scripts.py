"""Tables for tests, from the SQL that users write."""

from __future__ import annotations

from collections.abc import Mapping

from headwater.catalog import Catalog, Table
from headwater.sql.parser import parse_script
from headwater.sql.statements import CreateTable, CreateView, Drop

COLUMNS = "id BIGINT, name STRING, ts TIMESTAMP(3)"
KAFKA = {"connector": "kafka", "topic": "t", "properties.bootstrap.servers": "h:1", "format": "json"}
UPSERT = {
    "connector": "upsert-kafka",
    "topic": "t",
    "properties.bootstrap.servers": "h:1",
    "key.format": "json",
    "value.format": "json",
}


def with_clause(options: Mapping[str, str | None]) -> str:
    return ", ".join(f"'{k}' = '{v}'" for k, v in options.items() if v is not None)


def run(catalog: Catalog, script: str) -> None:
    for statement in parse_script(script):
        match statement:
            case CreateTable():
                catalog.create_table(statement)
            case CreateView():
                catalog.create_view(statement)
            case Drop():
                catalog.drop(statement)
            case _:
                raise AssertionError(statement)


def create(columns: str, options: Mapping[str, str | None], name: str = "t") -> Table:
    """A table of a catalog of its own. An option that is None is left out."""
    catalog = Catalog()
    run(catalog, f"CREATE TABLE {name} ({columns}) WITH ({with_clause(options)});")
    return catalog.table(name)
