"""A table and a view as the rest of Headwater sees them: resolved and valid."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sqlglot import exp

from headwater.errors import Position
from headwater.options.resolved import ResolvedOptions
from headwater.options.spelling import Spelling, as_written
from headwater.sql.paths import DEFAULT_DATABASE
from headwater.sql.statements import (
    Column,
    ComputedColumn,
    MetadataColumn,
    PhysicalColumn,
    Statement,
    WatermarkDeclaration,
)

if TYPE_CHECKING:
    from headwater.catalog.connector import Connector

__all__ = ["Table", "View"]


@dataclass(frozen=True)
class Table:
    """`columns` are in declared order; `primary_key` is () without one, and its columns are NOT NULL.
    `options` are typed, `raw_options` as written, `spelling` how the script says them, `notes` which of them have no
    effect. Expressions of computed columns
    and watermarks are sqlglot trees."""

    name: str
    columns: tuple[Column, ...]
    connector: Connector
    options: ResolvedOptions
    primary_key: tuple[str, ...] = ()
    watermark: WatermarkDeclaration | None = None
    partitioned_by: tuple[str, ...] = ()
    comment: str = ""
    temporary: bool = False
    position: Position | None = None
    option_positions: Mapping[str, Position] = field(default_factory=dict, compare=False)
    spelling: Spelling = field(default=as_written({}), compare=False)
    notes: tuple[str, ...] = field(default=(), compare=False)

    def __hash__(self) -> int:
        return hash((self.name, self.options))

    @property
    def raw_options(self) -> Mapping[str, str]:
        return self.options.given

    @property
    def physical_columns(self) -> tuple[PhysicalColumn, ...]:
        return tuple(c for c in self.columns if isinstance(c, PhysicalColumn))

    @property
    def metadata_columns(self) -> tuple[MetadataColumn, ...]:
        return tuple(c for c in self.columns if isinstance(c, MetadataColumn))

    @property
    def computed_columns(self) -> tuple[ComputedColumn, ...]:
        return tuple(c for c in self.columns if isinstance(c, ComputedColumn))

    @property
    def written_columns(self) -> tuple[PhysicalColumn | MetadataColumn, ...]:
        """What an INSERT gives values for: physical columns, and metadata columns that are not VIRTUAL."""
        return tuple(
            c
            for c in self.columns
            if isinstance(c, PhysicalColumn) or (isinstance(c, MetadataColumn) and not c.virtual)
        )

    def column(self, name: str) -> Column | None:
        return next((c for c in self.columns if c.name == name), None)


@dataclass(frozen=True)
class View:
    """`columns` rename those of `query`; () keeps their names. `database` was the current one when the view was
    created: names in its query belong to it."""

    name: str
    query: exp.Expr = field(repr=False)  # whose hints may hold a password
    columns: tuple[str, ...] = ()
    comment: str = ""
    temporary: bool = False
    text: str = field(default="", compare=False, repr=False)
    position: Position | None = None
    database: str = DEFAULT_DATABASE
    origin: Statement | None = field(default=None, compare=False, repr=False)

    def locate(self, node: exp.Expr) -> Position | None:
        """Where a part of the query is written."""
        return self.position if self.origin is None else self.origin.position_of(node)
