"""CREATE TABLE, CREATE VIEW and DROP."""

from __future__ import annotations

from sqlglot.tokens import Token

from headwater.errors import Position
from headwater.sql.ddl_columns import Elements, read_elements
from headwater.sql.dialect import FlinkParser
from headwater.sql.parse_statement import Reading, tree
from headwater.sql.statements import CreateTable, CreateView, Drop, LikeClause, PhysicalColumn, Statement

__all__ = ["read_create", "read_drop"]

_LIKE_FEATURES = ("ALL", "OPTIONS", "GENERATED", "METADATA", "CONSTRAINTS", "WATERMARKS", "PARTITIONS")
_OVERWRITABLE = frozenset({"OPTIONS", "GENERATED", "METADATA", "WATERMARKS"})
_CLAUSES = "(columns), COMMENT, PARTITIONED BY, WITH, LIKE"


def read_create(r: Reading) -> Statement:
    p = r.parser
    first = p.expect("CREATE")
    if p.ahead("OR"):
        p.fail("CREATE OR REPLACE is not supported", hint="Use DROP … IF EXISTS, then CREATE.")
    temporary = p.accept("TEMPORARY")
    if p.accept("TABLE"):
        return _create_table(r, first, temporary)
    if p.accept("VIEW"):
        return _create_view(r, first, temporary)
    return p.fail(
        f"CREATE {p.here.text.upper()} is not supported" if p.here else "CREATE what?",
        hint="Supported: CREATE [TEMPORARY] TABLE, CREATE [TEMPORARY] VIEW.",
    )


def read_drop(r: Reading) -> Drop:
    p = r.parser
    first = p.expect("DROP")
    temporary = p.accept("TEMPORARY")
    kind = next((word for word in ("TABLE", "VIEW") if p.accept(word)), "")
    if not kind:
        p.fail(
            f"DROP {p.here.text.upper()} is not supported" if p.here else "DROP what?",
            hint="Supported: DROP [TEMPORARY] TABLE, DROP [TEMPORARY] VIEW.",
        )
    if_exists = p.accept("IF")
    if if_exists:
        p.expect("EXISTS")
    name = p.table_name(f"the name of the {kind.lower()}").name
    return Drop(kind=kind, name=name, if_exists=if_exists, temporary=temporary, **r.origin(first))


def _if_not_exists(p: FlinkParser) -> bool:
    found = p.accept("IF")
    if found:
        p.expect("NOT", "EXISTS")
    return found


def _create_view(r: Reading, first: Token, temporary: bool) -> CreateView:
    p = r.parser
    if_not_exists = _if_not_exists(p)
    name = p.table_name("the name of the view").name
    columns: list[str] = []

    def column() -> None:
        token = p.here
        columns.append(p.name("the name of a column").name)
        if columns[-1] in columns[:-1]:
            p.fail(f"The column '{columns[-1]}' appears twice", at=token)

    if p.ahead("("):
        p.comma_separated(column)
    comment = p.text().name if p.accept("COMMENT") else ""
    p.expect("AS")
    return CreateView(
        name=name,
        query=tree(p.query()),
        columns=tuple(columns),
        comment=comment,
        temporary=temporary,
        if_not_exists=if_not_exists,
        **r.origin(first),
    )


def _create_table(r: Reading, first: Token, temporary: bool) -> CreateTable:
    p = r.parser
    if_not_exists = _if_not_exists(p)
    name = p.table_name().name
    elements = read_elements(r) if p.ahead("(") else Elements()
    comment = p.text().name if p.accept("COMMENT") else ""
    if p.ahead("DISTRIBUTED"):
        p.fail("DISTRIBUTED BY is not supported", hint="The topic decides how its rows are spread over partitions.")
    partitions = _partitioned_by(p)
    options, option_positions = _with(r)
    like = _like(p)
    if p.ahead("AS"):
        p.fail("CREATE TABLE … AS SELECT is not supported", hint="Create the table, then INSERT INTO it.")
    if p.here:
        p.fail(f"Unexpected '{p.here.text}'", hint=f"The order is: CREATE TABLE name {_CLAUSES}. Is a ';' missing?")
    if like is None:
        _check_names(p, elements, partitions)
    return CreateTable(
        name=name,
        columns=tuple(elements.columns),
        options=options,
        option_positions=option_positions,
        column_positions=elements.positions,
        primary_key=elements.primary_key,
        watermark=elements.watermark,
        partitioned_by=tuple(t.text for t in partitions),
        like=like,
        comment=comment,
        temporary=temporary,
        if_not_exists=if_not_exists,
        **r.origin(first),
    )


def _check_names(p: FlinkParser, elements: Elements, partitions: list[Token]) -> None:
    """Every name that the key, the watermark and the partitions mention is a column of this table."""
    mentioned = [*elements.key_tokens, *partitions]
    if elements.watermark_token is not None:
        mentioned.append(elements.watermark_token)
    for token in mentioned:
        if elements.kind_of(token.text) is None:
            known = ", ".join(c.name for c in elements.columns)
            p.fail(f"There is no column '{token.text}'", at=token, hint=f"The columns are: {known}." if known else "")
    for token in elements.key_tokens:
        if elements.kind_of(token.text) is not PhysicalColumn:
            p.fail(
                f"The primary key cannot contain '{token.text}'", at=token, detail="A key consists of physical columns."
            )


def _partitioned_by(p: FlinkParser) -> list[Token]:
    tokens: list[Token] = []
    if not p.accept("PARTITIONED"):
        return tokens

    def one() -> None:
        tokens.append(p.here)
        p.name("the name of a column")

    p.expect("BY")
    p.comma_separated(one)
    return tokens


def _with(r: Reading) -> tuple[dict[str, str], dict[str, Position]]:
    """`WITH ('key' = 'value', …)`."""
    p = r.parser
    options: dict[str, str] = {}
    positions: dict[str, Position] = {}
    if not p.accept("WITH"):
        return options, positions
    for key, value in p.comma_separated(p.option_pair):
        if key.text in options:
            p.fail(f"The option '{key.text}' appears twice", at=key)
        options[key.text] = value.text
        positions[key.text] = r.script.span(key.start, value.end + 1)
    return options, positions


def _like(p: FlinkParser) -> LikeClause | None:
    if not p.accept("LIKE"):
        return None
    table = p.table_name("the name of the table to be like").name
    rules: dict[str, str] = {}
    if p.accept("("):
        while not p.accept(")"):
            _like_rule(p, rules)
            p.accept(",")
    return LikeClause(table, rules)


def _like_rule(p: FlinkParser, rules: dict[str, str]) -> None:
    """`INCLUDING ALL`, `OVERWRITING OPTIONS`, …"""
    action = next((word for word in ("INCLUDING", "EXCLUDING", "OVERWRITING") if p.accept(word)), "")
    if not action:
        p.fail_expected("INCLUDING, EXCLUDING or OVERWRITING")
    token = p.here
    feature = next((word for word in _LIKE_FEATURES if p.accept(word)), "")
    if not feature:
        p.fail_expected(", ".join(_LIKE_FEATURES[:-1]) + f" or {_LIKE_FEATURES[-1]}")
    if action == "OVERWRITING" and feature not in _OVERWRITABLE:
        p.fail(f"OVERWRITING is not possible for {feature}", at=token, hint="Use INCLUDING or EXCLUDING.")
    if feature in rules:
        p.fail(f"{feature} appears twice", at=token)
    rules[feature] = action
