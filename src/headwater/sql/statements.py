"""What a script says, statement by statement, as plain values. Nothing here is resolved against a catalog.

Queries and expressions stay sqlglot trees; `plan.build` turns them into plan nodes. Every sqlglot node that came from
the script carries its place in `meta` (`line`, `col`, `start`, `end`), which `Script.position` turns into a caret.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sqlglot import exp

from headwater.errors import Position, SqlError
from headwater.sql.parse_source import Script, position_of
from headwater.sql.types import SqlType

__all__ = [
    "Column",
    "ComputedColumn",
    "CreateTable",
    "CreateView",
    "Describe",
    "Drop",
    "Explain",
    "Insert",
    "LikeClause",
    "MetadataColumn",
    "PhysicalColumn",
    "Query",
    "Reset",
    "SetOption",
    "ShowTables",
    "Statement",
    "StatementSet",
    "Watermark",
]


@dataclass(frozen=True, kw_only=True)
class Statement:
    """`text` is the statement as written, without its `;`. `position` is its first token, in `script`."""

    text: str
    position: Position
    script: Script | None = field(default=None, repr=False, compare=False)

    def position_of(self, node: exp.Expr | None) -> Position:
        """The place of a part of this statement, or that of the statement."""
        found = position_of(node, self.script) if self.script is not None else None
        return found or self.position

    def error(self, fact: str, *, at: exp.Expr | None = None, detail: str = "", hint: str = "") -> SqlError:
        """An error with a caret at a part of this statement."""
        name = self.script.name if self.script is not None else ""
        return SqlError(fact, position=self.position_of(at), script=name, detail=detail, hint=hint)


@dataclass(frozen=True)
class PhysicalColumn:
    name: str
    type: SqlType
    comment: str = ""


@dataclass(frozen=True)
class MetadataColumn:
    """`name TYPE METADATA [FROM 'key'] [VIRTUAL]`; `key` defaults to the column's name."""

    name: str
    type: SqlType
    key: str
    virtual: bool = False
    comment: str = ""


@dataclass(frozen=True)
class ComputedColumn:
    name: str
    expression: exp.Expression
    comment: str = ""


Column = PhysicalColumn | MetadataColumn | ComputedColumn


@dataclass(frozen=True)
class Watermark:
    column: str
    expression: exp.Expression


@dataclass(frozen=True)
class LikeClause:
    """`LIKE table (INCLUDING ALL, EXCLUDING OPTIONS, …)`: `rules` maps the feature (ALL, OPTIONS, GENERATED, METADATA,
    CONSTRAINTS, WATERMARKS, PARTITIONS) to INCLUDING, EXCLUDING or OVERWRITING."""

    table: str
    rules: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class CreateTable(Statement):
    """Positions: of each column's name, and of each option from its key to its value."""

    name: str
    columns: tuple[Column, ...]
    options: Mapping[str, str]
    option_positions: Mapping[str, Position] = field(default_factory=dict)
    column_positions: Mapping[str, Position] = field(default_factory=dict)
    primary_key: tuple[str, ...] | None = None
    watermark: Watermark | None = None
    partitioned_by: tuple[str, ...] = ()
    like: LikeClause | None = None
    comment: str = ""
    temporary: bool = False
    if_not_exists: bool = False


@dataclass(frozen=True, kw_only=True)
class CreateView(Statement):
    name: str
    query: exp.Expression
    columns: tuple[str, ...] = ()
    comment: str = ""
    temporary: bool = False
    if_not_exists: bool = False


@dataclass(frozen=True, kw_only=True)
class Drop(Statement):
    kind: str  # TABLE or VIEW
    name: str
    if_exists: bool = False
    temporary: bool = False


@dataclass(frozen=True, kw_only=True)
class Insert(Statement):
    """`options` are those of an OPTIONS hint on the target."""

    target: str
    query: exp.Expression
    columns: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Query(Statement):
    """A query by itself, whose rows are shown."""

    query: exp.Expression


@dataclass(frozen=True, kw_only=True)
class StatementSet(Statement):
    inserts: tuple[Insert, ...]


@dataclass(frozen=True, kw_only=True)
class SetOption(Statement):
    """`SET 'key' = 'value'`; bare `SET` has no key and lists everything."""

    key: str = ""
    value: str = ""


@dataclass(frozen=True, kw_only=True)
class Reset(Statement):
    key: str = ""


@dataclass(frozen=True, kw_only=True)
class Explain(Statement):
    """EXPLAIN of an INSERT, a statement set or a query. `details` are words such as CHANGELOG_MODE, upper-case."""

    target: Insert | StatementSet | exp.Expression
    details: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ShowTables(Statement):
    kind: str = "TABLES"  # TABLES, VIEWS, or CREATE TABLE with `name`
    name: str = ""


@dataclass(frozen=True, kw_only=True)
class Describe(Statement):
    name: str
