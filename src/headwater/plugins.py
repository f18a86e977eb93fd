"""Connectors, formats and functions by name: those that come with Headwater, and those that other packages add.

A package adds one by an entry point in its metadata, of the group `headwater.connectors`, `headwater.formats` or
`headwater.functions`; docs/plugins.md shows how. Everything is named by text here and imported when it is first asked
for: the catalog can find a connector without depending on it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from headwater.errors import SetupError

if TYPE_CHECKING:
    from headwater.catalog.connector import Connector
    from headwater.formats.base import Format

__all__ = ["CONNECTORS", "FORMATS", "Registry", "added"]

T = TypeVar("T")


def added(group: str) -> Iterator[tuple[str, Any]]:
    """What other packages have under a group: the name of each entry point, and what it stands for."""
    return ((point.name, _load(point)) for point in entry_points(group=group))


def _load(point: EntryPoint) -> Any:
    try:
        return point.load()
    except (ImportError, AttributeError) as error:
        raise SetupError(
            f"'{point.value}', which a package has among its {point.group}, cannot be loaded.", detail=str(error)
        ) from error


class Registry(Mapping[str, T], Generic[T]):
    """All of one kind, by identifier. Loaded once, all together: an unknown name is answered with the known ones."""

    def __init__(self, group: str, built_in: tuple[str, ...]) -> None:
        self._group = group
        self._built_in = built_in

    @cached_property
    def _loaded(self) -> dict[str, T]:
        own = [EntryPoint("", path, self._group) for path in self._built_in]
        found: dict[str, T] = {}
        for point in (*own, *entry_points(group=self._group)):
            loaded = _load(point)
            # A class is as good as an object: it is made without arguments.
            value: T = loaded() if isinstance(loaded, type) else loaded
            identifier: str = value.identifier  # type: ignore[attr-defined]
            # An error and not a matter of order: which package is found first depends on the installation.
            if identifier in found:
                raise SetupError(
                    f"Two packages have '{identifier}' among their {self._group}.",
                    detail=f"The second is {point.value}.",
                    hint="Uninstall one of them.",
                )
            found[identifier] = value
        return found

    def __getitem__(self, identifier: str) -> T:
        return self._loaded[identifier]

    def __iter__(self) -> Iterator[str]:
        return iter(self._loaded)

    def __len__(self) -> int:
        return len(self._loaded)


CONNECTORS: Registry[Connector] = Registry(
    "headwater.connectors",
    (
        "headwater.connectors.kafka.table.connector:KAFKA",
        "headwater.connectors.kafka.table.connector:UPSERT_KAFKA",
        "headwater.connectors.datagen:DATAGEN",
        "headwater.connectors.print_:PRINT",
        "headwater.connectors.blackhole:BLACKHOLE",
    ),
)

FORMATS: Registry[Format] = Registry(
    "headwater.formats",
    (
        "headwater.formats.json.format:JsonFormat",
        "headwater.formats.csv.format:CsvFormat",
        "headwater.formats.avro.format:AvroFormat",
        "headwater.formats.confluent.format:AvroConfluentFormat",
        "headwater.formats.raw.format:RawFormat",
        "headwater.formats.cdc.debezium:DebeziumJsonFormat",
        "headwater.formats.confluent.debezium:DebeziumAvroFormat",
        "headwater.formats.cdc.canal:CanalJsonFormat",
        "headwater.formats.cdc.maxwell:MaxwellJsonFormat",
        "headwater.formats.cdc.ogg:OggJsonFormat",
    ),
)
