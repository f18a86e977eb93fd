"""The part of CREATE TABLE between the parentheses: columns, the primary key, the watermark."""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlglot.tokens import Token, TokenType

from headwater.errors import Position
from headwater.sql.dialect import FlinkParser
from headwater.sql.parse_statement import Reading, tree
from headwater.sql.statements import Column, ComputedColumn, MetadataColumn, PhysicalColumn, Watermark
from headwater.sql.types import SqlType

__all__ = ["Elements", "read_elements"]

_NOT_ENFORCED = (
    "Flink does not own the data, so it cannot check a key. Write PRIMARY KEY (…) NOT ENFORCED "
    "to declare a key that the data is known to have."
)


@dataclass
class Elements:
    """What has been read so far; `key_tokens` and `watermark_token` are the places of the names they mention."""

    columns: list[Column] = field(default_factory=list)
    positions: dict[str, Position] = field(default_factory=dict)
    primary_key: tuple[str, ...] | None = None
    key_tokens: tuple[Token, ...] = ()
    watermark: Watermark | None = None
    watermark_token: Token | None = None

    def kind_of(self, name: str) -> type[Column] | None:
        return next((type(c) for c in self.columns if c.name == name), None)


def read_elements(r: Reading) -> Elements:
    """`( element, … )`. Whether the names mentioned exist is checked later: LIKE may bring more columns."""
    elements = Elements()
    r.parser.comma_separated(lambda: _element(r, elements))
    return elements


def _element(r: Reading, elements: Elements) -> None:
    p = r.parser
    if p.ahead("PRIMARY", "KEY") or p.ahead("CONSTRAINT"):
        _named_constraint(p, elements)
    elif p.ahead("UNIQUE", "("):
        p.fail("UNIQUE is not supported", hint="Declare the key of a table with PRIMARY KEY (…) NOT ENFORCED.")
    elif p.ahead("WATERMARK", "FOR"):
        _watermark(p, elements)
    else:
        _column(r, elements)


def _named_constraint(p: FlinkParser, elements: Elements) -> None:
    """`[CONSTRAINT name] PRIMARY KEY (a, b) NOT ENFORCED`."""
    if p.accept("CONSTRAINT"):
        p.name("the name of the constraint")
    if p.ahead("UNIQUE"):
        p.fail("UNIQUE is not supported", hint="Declare the key of a table with PRIMARY KEY (…) NOT ENFORCED.")
    start = p.here
    p.expect("PRIMARY", "KEY")
    tokens: list[Token] = []

    def one() -> None:
        tokens.append(p.here)
        name = p.name("the name of a column").name
        if any(t.text == name for t in tokens[:-1]):
            p.fail(f"The column '{name}' appears twice in the primary key", at=tokens[-1])

    p.comma_separated(one)
    _not_enforced(p)
    _set_key(p, elements, start, tokens)


def _set_key(p: FlinkParser, elements: Elements, start: Token, tokens: list[Token]) -> None:
    if elements.primary_key is not None:
        p.fail("A table has one primary key", at=start)
    elements.primary_key = tuple(t.text for t in tokens)
    elements.key_tokens = tuple(tokens)


def _not_enforced(p: FlinkParser) -> None:
    if p.accept("NOT", "ENFORCED"):
        return
    if p.ahead("ENFORCED"):
        p.fail("A primary key cannot be ENFORCED", hint=_NOT_ENFORCED)
    p.fail_expected("NOT ENFORCED", hint=_NOT_ENFORCED)


def _watermark(p: FlinkParser, elements: Elements) -> None:
    start = p.here
    p.expect("WATERMARK", "FOR")
    token = p.here
    name = p.name("the name of a column").name
    if p.here.token_type == TokenType.DOT:
        p.fail("The time of a watermark must be a column", hint="Declare a computed column for the nested field.")
    p.expect("AS")
    expression = tree(p.expression_here())
    if elements.watermark is not None:
        p.fail("A table has one watermark", at=start)
    elements.watermark = Watermark(name, expression)
    elements.watermark_token = token


def _column(r: Reading, elements: Elements) -> None:
    p = r.parser
    token = p.here
    name = p.name("a column, PRIMARY KEY or WATERMARK").name
    if elements.kind_of(name) is not None:
        p.fail(f"The column '{name}' appears twice", at=token)
    if p.accept("AS"):
        expression = tree(p.expression_here())
        elements.columns.append(ComputedColumn(name, expression, _comment(p)))
    else:
        elements.columns.append(_typed_column(p, elements, token, name))
    elements.positions[name] = r.place(token)


def _typed_column(p: FlinkParser, elements: Elements, token: Token, name: str) -> Column:
    sql_type = p.data_type()
    if p.ahead("METADATA"):
        return _metadata_column(p, name, sql_type)
    if p.ahead("DEFAULT") or p.ahead("GENERATED"):
        p.fail(f"{p.here.text.upper()} is not Flink SQL", hint="A computed column is written: name AS expression.")
    start = p.here
    if p.accept("CONSTRAINT"):
        p.name("the name of the constraint")
    if p.accept("PRIMARY"):
        p.expect("KEY")
        _not_enforced(p)
        _set_key(p, elements, start, [token])
    elif p.before is not start and start.text.upper() == "CONSTRAINT":
        p.fail_expected("PRIMARY KEY NOT ENFORCED")
    return PhysicalColumn(name, sql_type, _comment(p))


def _metadata_column(p: FlinkParser, name: str, sql_type: SqlType) -> MetadataColumn:
    p.expect("METADATA")
    key = p.text().name if p.accept("FROM") else name
    virtual = p.accept("VIRTUAL")
    return MetadataColumn(name, sql_type, key, virtual, _comment(p))


def _comment(p: FlinkParser) -> str:
    return p.text().name if p.accept("COMMENT") else ""
