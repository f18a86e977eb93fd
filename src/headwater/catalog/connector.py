"""What a connector is: its options, its metadata columns, the changes it emits and accepts, and how its tables are read
and written while a job runs (`connectors.runtime` has those two ports)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from headwater.options.base import Option
from headwater.options.problems import Problem
from headwater.options.types import STRING
from headwater.sql.types import SqlType

if TYPE_CHECKING:
    from headwater.catalog.tables import Table

__all__ = ["CONNECTOR", "Accepts", "Connector", "Emits", "JobStart", "MetadataKey"]

JobStart = Literal["new", "continued"]
"""Whether a job begins, or continues from its checkpoint."""


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
    # Options that Flink has and this connector refuses for now, each with a sentence.
    not_yet: ClassVar[Mapping[str, str]] = {}
    # Options of single columns, under 'fields.<column>.'.
    column_options: tuple[Option, ...] = ()

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

    def is_bounded(self, table: Table) -> bool:
        """Whether reading this very table ends by itself."""
        del table
        return True

    def until_now(self, table: Table) -> Mapping[str, str]:
        """Options with which reading this very table ends with what is there now; none if that cannot be."""
        del table
        return {}

    def without_effect(self, given: Mapping[str, str]) -> Mapping[str, str]:
        """Options that are taken and change nothing, with the reason. The table does not have them."""
        del given
        return {}

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

    def fallback(self, table: Table) -> str:
        """Why this very table is not read and written in the usual way, as the end of a sentence; '' if it is."""
        del table
        return ""

    def reading(self, table: Table, columns: Sequence[str], fields: Mapping[str, Sequence[str]]) -> str:
        """How the messages of this very table become these columns, and of those in `fields` only these fields, in
        plain words; '' if there are no messages."""
        del table, columns, fields
        return ""

    def pre_aggregates(
        self, table: Table, columns: Sequence[str], fields: Mapping[str, Sequence[str]], local: Any
    ) -> bool:
        """Whether the tasks that read this very table pre-aggregate its rows: into the groups of a
        `connectors.runtime.LocalAggregation`, or with None into windows of event time, for which they must have all of
        these columns."""
        del table, columns, fields, local
        return False

    def topics(self, table: Table) -> tuple[str, ...]:
        """Names by which a table's data is known outside: two tables of the same name share it."""
        del table
        return ()

    def check_source(self, table: Table, start: JobStart, made: Collection[str]) -> None:
        """Raises what reading would fail with, as far as it can be known without Spark. A new job must find its
        `topics`, except those that are `made` by other jobs."""
        del table, start, made

    def check_sink(self, table: Table) -> None:
        """The same for writing."""
        del table

    def source(self, table: Table, context: Any) -> Any:
        """A `connectors.runtime.Source` that reads the table, for a `RuntimeContext`. Imports what needs Spark here."""
        raise NotImplementedError(f"'{self.identifier}' is a sink")

    def sink(self, table: Table, context: Any) -> Any:
        """A `connectors.runtime.Sink` that writes the table."""
        raise NotImplementedError(f"'{self.identifier}' is a source")

    @property
    def can_read(self) -> bool:
        return self.emits is not None

    @property
    def can_write(self) -> bool:
        return self.accepts is not None

    @property
    def reads_upserts(self) -> bool:
        return self.emits is Emits.UPSERT
