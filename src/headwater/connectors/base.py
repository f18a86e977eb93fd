"""What a connector is to the catalog and the planner: options, metadata columns, and the changes it emits and accepts.

How rows are read and written is not here: `runtime` asks the connector's own modules for that.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, ClassVar

from headwater.options.base import Option
from headwater.options.problems import Problem
from headwater.options.types import STRING
from headwater.sql.types import SqlType

if TYPE_CHECKING:
    from headwater.catalog.tables import Table

__all__ = ["CONNECTOR", "Accepts", "Connector", "Emits", "MetadataKey"]


class Emits(Enum):
    """What a source gives: rows only; for each key its newest row and its deletion; every change with its old row."""

    APPEND = "append"
    UPSERT = "upsert"
    CHANGES = "changes"


class Accepts(Enum):
    """What a sink takes: rows only; also upserts, if the table has a PRIMARY KEY; or every change as it is."""

    APPEND = "append"
    UPSERT = "upsert"
    ALL = "all"


@dataclass(frozen=True)
class MetadataKey:
    """A key of `METADATA FROM '…'`. Writing may take NULL where reading never gives one."""

    key: str
    type: SqlType
    meaning: str
    readable: bool = True
    writable: bool = False


CONNECTOR = Option("connector", STRING, "Which connector the table uses.", required=True)


class Connector:
    """One value of 'connector'. `emits` is None if it cannot be read, `accepts` is None if it cannot be written."""

    identifier: str
    summary: str
    options: tuple[Option, ...]
    emits: Emits | None = None
    accepts: Accepts | None = None
    metadata: tuple[MetadataKey, ...] = ()
    # Options of other connectors that people bring along, and why there is no such thing here.
    not_here: ClassVar[Mapping[str, str]] = {}

    def gives(self, table: Table) -> Emits | None:
        """What this very table gives when it is read: a format may know about changes."""
        del table
        return self.emits

    def metadata_of(self, given: Mapping[str, str]) -> tuple[MetadataKey, ...]:
        """All keys a table with these options has: those of the connector, and those of its format."""
        del given
        return self.metadata

    def takes(self, table: Table) -> Accepts | None:
        """What this very table takes when it is written: a connector may have an option for it."""
        del table
        return self.accepts

    def more_options(self, given: Mapping[str, str]) -> tuple[Option, ...]:
        """Options that exist because of what is given, such as those of a format."""
        del given
        return ()

    def validate(self, table: Table) -> list[Problem]:
        """Everything wrong with the table, however it is used."""
        del table
        return []

    def validate_source(self, table: Table) -> list[Problem]:
        """What is wrong only if the table is read."""
        return (
            [] if self.can_read else [Problem(f"Table '{table.name}' cannot be read: '{self.identifier}' is a sink.")]
        )

    def validate_sink(self, table: Table) -> list[Problem]:
        """What is wrong only if the table is written."""
        if self.can_write:
            return []
        return [Problem(f"Table '{table.name}' cannot be written: '{self.identifier}' is a source.")]

    @property
    def can_read(self) -> bool:
        return self.emits is not None

    @property
    def can_write(self) -> bool:
        return self.accepts is not None

    @property
    def reads_upserts(self) -> bool:
        return self.emits is Emits.UPSERT
