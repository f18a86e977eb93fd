"""Statements that Flink or its SQL client has and Headwater has not, by their first words: what to do instead."""

from __future__ import annotations

from typing import NoReturn

from headwater.sql.parser.cursor import Cursor

__all__ = ["REFUSED_WORDS", "SUPPORTED", "refuse"]

SUPPORTED = (
    "Supported statements: CREATE, ALTER and DROP of TABLE, VIEW and DATABASE, CREATE and DROP FUNCTION, INSERT INTO, "
    "EXECUTE STATEMENT SET, SELECT, EXPLAIN, SET, RESET, USE, SHOW, DESCRIBE, STOP JOB, QUIT."
)
_APPEND = "A topic is only ever appended to; an upsert-kafka table takes changes by its key from INSERT INTO."
_MODULES = "All functions are there from the start: SHOW FUNCTIONS lists them. Remove the statement."
_PLANS = "A job continues from its checkpoint as long as its query is the same. Run the INSERT itself."
_RIGHTS = "Rights are given by the broker: see its ACLs."

# The longest match counts.
_REFUSED: dict[tuple[str, ...], str] = {
    ("ANALYZE",): "The planner keeps no statistics: a topic has no end. Remove the statement.",
    ("CALL",): "There are no procedures.",
    ("CLEAR",): "It is a command of Flink's SQL client. Remove the statement.",
    ("COMPILE",): _PLANS,
    ("EXECUTE", "PLAN"): _PLANS,
    ("DELETE",): _APPEND,
    ("GRANT",): _RIGHTS,
    ("HELP",): SUPPORTED,
    ("LIST",): "Write SHOW: SHOW TABLES, SHOW JARS, SHOW JOBS, …",
    ("LOAD",): _MODULES,
    ("MERGE",): _APPEND,
    ("REPLACE",): "Write CREATE OR REPLACE TABLE.",
    ("REVOKE",): _RIGHTS,
    ("SOURCE",): "Name the scripts one behind the other: headwater run first.sql second.sql",
    ("TRUNCATE",): "A topic is emptied by its retention, or deleted and created again.",
    ("UNLOAD",): _MODULES,
    ("UPDATE",): _APPEND,
    ("UPSERT",): "Write INSERT INTO: in a table with a primary key, a row replaces the one with its key.",
    ("USE", "MODULES"): _MODULES,
}
REFUSED_WORDS = frozenset(words[0] for words in _REFUSED if len(words) == 1)


def refuse(cursor: Cursor) -> NoReturn:
    """Fail at the statement that begins here, which is one of those above."""
    words = (cursor.here.word, cursor.peek().word)
    found = words if words in _REFUSED else words[:1]
    cursor.fail(f"{' '.join(found)} is not supported", hint=_REFUSED.get(found, SUPPORTED))
