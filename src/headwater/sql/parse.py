"""Every statement but CREATE and DROP, and the table that finds the rule for a statement by its first word."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable
from typing import NoReturn

from sqlglot.tokens import Token, TokenType

from headwater.sql.ddl import read_create, read_drop
from headwater.sql.dialect import FlinkParser
from headwater.sql.parse_statement import Reading, tree
from headwater.sql.parse_tables import table_options
from headwater.sql.statements import (
    Describe,
    Explain,
    Insert,
    Query,
    Reset,
    SetOption,
    ShowTables,
    Statement,
    StatementSet,
)

__all__ = ["SUPPORTED", "read_statement"]

SUPPORTED = (
    "CREATE TABLE, CREATE VIEW, DROP TABLE, DROP VIEW, INSERT INTO, EXECUTE STATEMENT SET, SELECT, EXPLAIN, SET, "
    "RESET, SHOW TABLES, SHOW VIEWS, SHOW CREATE TABLE, DESCRIBE"
)
_REFUSED = frozenset(
    {
        *("ADD", "ALTER", "ANALYZE", "CALL", "CLEAR", "COMPILE", "DELETE", "HELP", "LOAD", "MERGE", "QUIT", "REMOVE"),
        *("STOP", "TRUNCATE", "UNLOAD", "UPDATE", "USE", "ALTER", "GRANT", "REVOKE", "REPLACE", "SOURCE"),
    }
)
_DETAILS = ("ESTIMATED_COST", "CHANGELOG_MODE", "JSON_EXECUTION_PLAN", "PLAN_ADVICE")
_VALUE_STARTS = (TokenType.NUMBER, TokenType.STRING, TokenType.NULL, TokenType.TRUE, TokenType.FALSE, TokenType.DASH)
_PLAIN_VALUE = re.compile(r"[A-Za-z0-9_.,:;/%+\- ]+")
_OPTION_NAME = re.compile(r"[A-Za-z0-9_.\-]+")


def read_statement(r: Reading) -> Statement:
    """The statement that the tokens of `r` are, all of them."""
    token = r.parser.here
    word = token.text.upper() if token.token_type != TokenType.IDENTIFIER else ""
    rule = _RULES.get(word) or _unknown
    statement = rule(r)
    r.parser.expect_end()
    return statement


def _unknown(r: Reading) -> NoReturn:
    token = r.parser.here
    word = token.text.upper()
    if word in _REFUSED:
        r.parser.fail(f"{word} is not supported", hint=f"Supported statements: {SUPPORTED}.")
    close = difflib.get_close_matches(word, _RULES, n=1)
    hint = f"Did you mean {close[0]}?" if close else f"Supported statements: {SUPPORTED}."
    r.parser.fail(f"Unknown statement '{token.text}'", hint=hint)


def _query(r: Reading) -> Query:
    first = r.parser.here
    query = tree(r.parser.query())
    return Query(query=query, **r.origin(first))


def _insert(r: Reading) -> Insert:
    p = r.parser
    first = p.here
    p.expect("INSERT")
    if p.ahead("OVERWRITE"):
        p.fail("INSERT OVERWRITE is not supported", hint="A topic is only ever appended to: use INSERT INTO.")
    p.expect("INTO")
    target = p.here
    table = p.table_with_hints()
    if p.ahead("PARTITION", "("):
        p.fail("INSERT INTO … PARTITION is not supported", hint="Write the partition's columns in the query.")
    if any(p.ahead_type(TokenType.L_PAREN, kind) for kind in _VALUE_STARTS):
        _missing_query(p, target)
    columns = _insert_columns(p)
    if not p.query_ahead() and not p.ahead("("):
        _missing_query(p, target)
    query = tree(p.query())
    return Insert(target=table.name, query=query, columns=columns, options=table_options(table), **r.origin(first))


def _insert_columns(p: FlinkParser) -> tuple[str, ...]:
    """`(a, b)`, which is told from a query in parentheses by its first word."""
    columns: list[str] = []
    after = [TokenType.L_PAREN, TokenType.SELECT, TokenType.WITH, TokenType.VALUES]
    if not p.ahead("(") or any(p.ahead_type(TokenType.L_PAREN, kind) for kind in after):
        return ()

    def one() -> None:
        token = p.here
        columns.append(p.name("the name of a column").name)
        if columns[-1] in columns[:-1]:
            p.fail(f"The column '{columns[-1]}' appears twice", at=token)

    p.comma_separated(one)
    return tuple(columns)


def _missing_query(p: FlinkParser, target: Token) -> NoReturn:
    """`INSERT INTO tSELECT a` is a forgotten space far more often than a table of that name."""
    for word in ("SELECT", "VALUES", "WITH"):
        name = target.text[: -len(word)]
        if name and target.text.upper().endswith(word):
            space = f"Did you mean '{name} {target.text[len(name) :]}'? There is no space before {word}."
            p.fail(f"Expected a query after '{target.text}'", at=target, hint=space)
    p.fail_expected("a query (SELECT, VALUES or WITH)")


def _execute(r: Reading) -> Statement:
    p = r.parser
    first = p.expect("EXECUTE")
    if p.ahead("INSERT"):
        return _insert(r)
    if p.ahead("PLAN"):
        p.fail("EXECUTE PLAN is not supported", hint=f"Supported statements: {SUPPORTED}.")
    return _statement_set(r, first)


def _begin(r: Reading) -> StatementSet:
    """The older spelling: BEGIN STATEMENT SET; …; END"""
    p = r.parser
    first = p.expect("BEGIN")
    p.expect("STATEMENT", "SET", ";", hint="Transactions do not exist; BEGIN opens a STATEMENT SET.")
    return _inserts(r, first)


def _statement_set(r: Reading, first: Token) -> StatementSet:
    p = r.parser
    p.expect("STATEMENT", "SET", "BEGIN")
    return _inserts(r, first)


def _inserts(r: Reading, first: Token) -> StatementSet:
    p = r.parser
    inserts: list[Insert] = []
    while not p.accept("END"):
        if not p.ahead("INSERT"):
            p.fail_expected("'INSERT' or 'END'", hint="A statement set contains INSERT INTO statements only.")
        inserts.append(_insert(r))
        p.expect(";", hint="Every INSERT of a statement set ends with ';'.")
    if not inserts:
        p.fail("A statement set needs at least one INSERT", at=first)
    return StatementSet(inserts=tuple(inserts), **r.origin(first))


def _explain(r: Reading) -> Explain:
    p = r.parser
    first = p.expect("EXPLAIN")
    details: list[str] = []
    if p.accept("PLAN"):
        p.expect("FOR")
    while not details or p.accept(","):
        detail = next((word for word in _DETAILS if p.accept(word)), "")
        if detail:
            details.append(detail)
        elif details:
            p.fail_expected(", ".join(_DETAILS))
        else:
            break
    start = p.here
    if p.ahead("INSERT"):
        target: Insert | StatementSet = _insert(r)
    elif p.ahead("STATEMENT") or p.ahead("EXECUTE", "STATEMENT"):
        p.accept("EXECUTE")
        target = _statement_set(r, start)
    else:
        query = tree(p.query())
        return Explain(target=query, details=tuple(details), **r.origin(first))
    return Explain(target=target, details=tuple(details), **r.origin(first))


def _show(r: Reading) -> ShowTables:
    p = r.parser
    first = p.expect("SHOW")
    for kind in ("TABLES", "VIEWS"):
        if p.accept(kind):
            return ShowTables(kind=kind, **r.origin(first))
    if p.accept("CREATE", "TABLE"):
        name = p.table_name().name
        return ShowTables(kind="CREATE TABLE", name=name, **r.origin(first))
    what = f"SHOW {p.here.text.upper()} is not supported" if p.here else "SHOW what?"
    return p.fail(what, hint="Supported: SHOW TABLES, SHOW VIEWS, SHOW CREATE TABLE name.")


def _describe(r: Reading) -> Describe:
    first = r.parser.skip()
    if r.parser.ahead("EXTENDED"):
        r.parser.fail("DESCRIBE EXTENDED is not supported", hint="Write DESCRIBE name.")
    name = r.parser.table_name().name
    return Describe(name=name, **r.origin(first))


def _set(r: Reading) -> SetOption:
    """`SET`, `SET 'key' = 'value'`, or `SET key = value` with the rest of the statement as the value."""
    p = r.parser
    first = p.expect("SET")
    if not p.here:
        return SetOption(**r.origin(first))
    key = _option_key(r, stop="=")
    p.expect("=", hint="Write SET 'key' = 'value'.")
    start = p.here
    if not start:
        p.fail_expected("a value", hint=f"Write SET '{key}' = 'value', or RESET '{key}'.")
    if p.text_ahead():
        value = p.skip().text
        return SetOption(key=key, value=value, **r.origin(first))
    while p.here:
        p.skip()
    value = p.sql[start.start : p.before.end + 1]
    if not _PLAIN_VALUE.fullmatch(value):
        p.fail("This value needs quotes", at=start, hint=f"Write SET '{key}' = '…'.")
    return SetOption(key=key, value=value, **r.origin(first))


def _option_key(r: Reading, stop: str = "") -> str:
    p = r.parser
    start = p.here
    if p.text_ahead():
        return p.skip().text
    while p.here and p.here.text != stop:
        p.skip()
    key = p.sql[start.start : p.before.end + 1] if p.before.start >= start.start else ""
    if not _OPTION_NAME.fullmatch(key):
        p.fail("Not the key of an option", at=start, hint="Write the key in quotes: 'execution.runtime-mode'.")
    return key


def _reset(r: Reading) -> Reset:
    first = r.parser.expect("RESET")
    key = _option_key(r) if r.parser.here else ""
    return Reset(key=key, **r.origin(first))


_RULES: dict[str, Callable[[Reading], Statement]] = {
    "CREATE": read_create,
    "DROP": read_drop,
    "INSERT": _insert,
    "EXECUTE": _execute,
    "BEGIN": _begin,
    "SELECT": _query,
    "VALUES": _query,
    "WITH": _query,
    "(": _query,
    "EXPLAIN": _explain,
    "SHOW": _show,
    "DESCRIBE": _describe,
    "DESC": _describe,
    "SET": _set,
    "RESET": _reset,
}
