"""What a script says, statement by statement, as plain values. Nothing here is resolved against a catalog.

Queries and expressions stay sqlglot trees; `plan.build` turns them into plan nodes. Every sqlglot node that came from
the script carries its position in `meta` (`start`, `end`), which `Script.position` turns into a caret.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from sqlglot import exp

from headwater.errors import Position, SqlError
from headwater.sql.script import Script, position_of
from headwater.sql.types import SqlType

__all__ = [
    "AlterSchema",
    "AlterTable",
    "AlterView",
    "Column",
    "ComputedColumn",
    "CreateDatabase",
    "CreateFunction",
    "CreateTable",
    "CreateView",
    "Describe",
    "Drop",
    "DropDatabase",
    "DropFromSchema",
    "DropFunction",
    "Explain",
    "Insert",
    "LikeClause",
    "LikePattern",
    "MetadataColumn",
    "NoEffect",
    "PhysicalColumn",
    "Query",
    "Quit",
    "RenameColumn",
    "Reset",
    "SchemaChange",
    "SetOption",
    "Show",
    "Statement",
    "StatementSet",
    "StopJob",
    "Use",
    "WatermarkDeclaration",
]


@dataclass(frozen=True, kw_only=True)
class Statement:
    """`text` is the statement as written, without its `;`. `position` is its first token, in `script`. `subject` is the
    name or key that it is about, if any: errors without a place of their own are shown there."""

    text: str
    position: Position
    script: Script | None = field(default=None, repr=False, compare=False)
    subject: Position | None = field(default=None, repr=False, compare=False)

    def __init_subclass__(cls) -> None:
        """The options of a statement, and those in hints of its query, hold passwords: no kind of statement gets the
        repr of a dataclass."""
        cls.__repr__ = Statement.__repr__  # type: ignore[method-assign]

    def __repr__(self) -> str:
        return f"{type(self).__name__}(line={self.position.line})"

    @property
    def place(self) -> Position:
        """Where an error about the statement is shown."""
        return self.subject or self.position

    def position_of(self, node: exp.Expr | None) -> Position:
        """The position of a part of this statement, or that of the statement."""
        found = position_of(node, self.script) if self.script is not None else None
        return found or self.place

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
    expression: exp.Expr
    comment: str = ""


Column = PhysicalColumn | MetadataColumn | ComputedColumn


@dataclass(frozen=True)
class WatermarkDeclaration:
    column: str
    expression: exp.Expr


@dataclass(frozen=True)
class LikeClause:
    """`LIKE table (INCLUDING ALL, EXCLUDING OPTIONS, …)`: `rules` maps the feature (ALL, OPTIONS, GENERATED, METADATA,
    CONSTRAINTS, WATERMARKS, PARTITIONS) to INCLUDING, EXCLUDING or OVERWRITING."""

    table: str
    rules: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class CreateTable(Statement):
    """Positions: of each column's name, and of each option from its key to its value. `query` is that of CREATE TABLE …
    AS, and `query_columns` the order of its columns if that is given; `or_replace` replaces a table of that name."""

    name: str
    columns: tuple[Column, ...]
    options: Mapping[str, str]
    option_positions: Mapping[str, Position] = field(default_factory=dict)
    column_positions: Mapping[str, Position] = field(default_factory=dict)
    primary_key: tuple[str, ...] | None = None
    watermark: WatermarkDeclaration | None = None
    partitioned_by: tuple[str, ...] = ()
    like: LikeClause | None = None
    comment: str = ""
    temporary: bool = False
    if_not_exists: bool = False
    or_replace: bool = False
    query: exp.Expr | None = None
    query_columns: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class CreateView(Statement):
    name: str
    query: exp.Expr
    columns: tuple[str, ...] = ()
    comment: str = ""
    temporary: bool = False
    if_not_exists: bool = False
    or_replace: bool = False


@dataclass(frozen=True, kw_only=True)
class AlterTable(Statement):
    """One of three: `options` to set, keys to `reset`, or the name to `rename` the table to."""

    name: str
    options: Mapping[str, str] = field(default_factory=dict)
    option_positions: Mapping[str, Position] = field(default_factory=dict)
    reset: tuple[str, ...] = ()
    rename: str = ""
    if_exists: bool = False


@dataclass(frozen=True, kw_only=True)
class AlterSchema(Statement):
    """ALTER TABLE … ADD or MODIFY: what is new, or is replaced, of what stands between the parentheses of CREATE TABLE.
    `places` has the column behind which a column goes, None for FIRST; others are added at the end, or stay."""

    name: str
    action: Literal["ADD", "MODIFY"]
    columns: tuple[Column, ...] = ()
    places: Mapping[str, str | None] = field(default_factory=dict)
    column_positions: Mapping[str, Position] = field(default_factory=dict)
    primary_key: tuple[str, ...] | None = None
    watermark: WatermarkDeclaration | None = None
    if_exists: bool = False


@dataclass(frozen=True, kw_only=True)
class DropFromSchema(Statement):
    """ALTER TABLE … DROP: columns, or the primary key, or the watermark."""

    name: str
    columns: tuple[str, ...] = ()
    column_positions: Mapping[str, Position] = field(default_factory=dict)
    what: Literal["COLUMNS", "PRIMARY KEY", "WATERMARK"] = "COLUMNS"
    if_exists: bool = False


@dataclass(frozen=True, kw_only=True)
class RenameColumn(Statement):
    """ALTER TABLE … RENAME old TO new."""

    name: str
    old: str
    new: str
    column_positions: Mapping[str, Position] = field(default_factory=dict)
    if_exists: bool = False


SchemaChange = AlterSchema | DropFromSchema | RenameColumn


@dataclass(frozen=True, kw_only=True)
class AlterView(Statement):
    """Another `query`, or another name."""

    name: str
    query: exp.Expr | None = None
    rename: str = ""


@dataclass(frozen=True, kw_only=True)
class Drop(Statement):
    kind: str  # TABLE or VIEW
    name: str
    if_exists: bool = False
    temporary: bool = False


@dataclass(frozen=True, kw_only=True)
class CreateFunction(Statement):
    """`path` is 'module.attribute' of Python. A `system` function belongs to no database."""

    name: str
    path: str
    temporary: bool = False
    system: bool = False
    if_not_exists: bool = False


@dataclass(frozen=True, kw_only=True)
class DropFunction(Statement):
    name: str
    system: bool = False
    if_exists: bool = False


@dataclass(frozen=True, kw_only=True)
class Insert(Statement):
    """`options` are those of an OPTIONS hint on the target; `on_conflict` is NOTHING, ERROR, DEDUPLICATE or empty."""

    target: str
    target_position: Position | None = field(default=None, compare=False)
    query: exp.Expr
    columns: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)
    on_conflict: str = ""


@dataclass(frozen=True, kw_only=True)
class Query(Statement):
    """A query by itself, whose rows are shown."""

    query: exp.Expr


@dataclass(frozen=True, kw_only=True)
class StatementSet(Statement):
    inserts: tuple[Insert, ...]


@dataclass(frozen=True, kw_only=True)
class SetOption(Statement):
    """`SET 'key' = 'value'`; bare `SET` has no key and lists everything."""

    key: str = ""
    value: str = ""
    key_position: Position | None = field(default=None, compare=False)
    value_position: Position | None = field(default=None, compare=False)


@dataclass(frozen=True, kw_only=True)
class Reset(Statement):
    key: str = ""


@dataclass(frozen=True, kw_only=True)
class Explain(Statement):
    """EXPLAIN of an INSERT, a statement set or a query. `details` are words such as CHANGELOG_MODE, upper-case."""

    target: Insert | StatementSet | exp.Expr
    details: tuple[str, ...] = ()


@dataclass(frozen=True)
class LikePattern:
    """`LIKE 'text'`, or `ILIKE 'text'`, which ignores the case of letters."""

    text: str
    ignore_case: bool = False


@dataclass(frozen=True, kw_only=True)
class Show(Statement):
    """`kind` is the words behind SHOW: TABLES, VIEWS, DATABASES, CREATE TABLE, …; `name` the table or database they are
    about. `like` is a pattern of LIKE for the names to show, `unlike` for those not to show."""

    kind: str
    name: str = ""
    like: LikePattern | None = None
    unlike: LikePattern | None = None


@dataclass(frozen=True, kw_only=True)
class Describe(Statement):
    name: str
    extended: bool = False


@dataclass(frozen=True, kw_only=True)
class CreateDatabase(Statement):
    """`options` are the keys of WITH."""

    name: str
    options: tuple[str, ...] = ()
    comment: str = ""
    if_not_exists: bool = False


@dataclass(frozen=True, kw_only=True)
class DropDatabase(Statement):
    name: str
    if_exists: bool = False
    cascade: bool = False


@dataclass(frozen=True, kw_only=True)
class Use(Statement):
    """Names without a database belong to `database` from here on; '' for USE CATALOG, which goes to the default one."""

    database: str = ""


@dataclass(frozen=True, kw_only=True)
class NoEffect(Statement):
    """A statement of Flink that changes nothing here; `note` tells the user why."""

    note: str


@dataclass(frozen=True, kw_only=True)
class StopJob(Statement):
    """The job ends after its current batch. `with_savepoint` changes nothing: a job that stops keeps its state."""

    name: str
    with_savepoint: bool = False


@dataclass(frozen=True, kw_only=True)
class Quit(Statement):
    """The end of a script: nothing behind it is executed."""
