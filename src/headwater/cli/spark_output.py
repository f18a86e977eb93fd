"""Starting Spark early, and without the lines that its JVM writes to standard error, which nobody can act on and which
would run through the live view. HEADWATER_DEBUG=1 or HEADWATER_SPARK_LOG shows them."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from headwater.errors import HeadwaterError, SetupError, SqlError

if TYPE_CHECKING:
    from headwater.cli.launch import Launch
    from headwater.cli.scripts import ScriptFile
    from headwater.execution.jvm import Jvm
    from headwater.session import Session
    from headwater.sql.statements import Statement

__all__ = ["end_session", "launch_spark", "launched", "start_spark"]

_LAST_LINES = 15


@contextmanager
def launched(launch: Launch, files: Sequence[ScriptFile]) -> Iterator[Jvm | None]:
    """The JVM of Spark, which starts while the body plans and checks the scripts; None where that would be in vain. If
    nothing has used it in the end, because something was wrong, it is killed."""
    statements = [statement for statement in _parsed(files, launch.variables) if _needs_spark(statement)]
    # Nobody looks at Spark's web page for the length of a query, and every query would wait for it.
    page = {} if any(map(_is_job, statements)) else {"spark.ui.enabled": "false"}
    jvm = _launch_ahead(launch.master, {**page, **launch.spark}) if statements else None
    try:
        yield jvm
    finally:
        if jvm is not None:
            jvm.abandon()


def start_spark(session: Session) -> None:
    """Start the session's Spark. Its JVM writes to a file that nobody sees, unless it does not start."""
    session.jvm = session.jvm or launch_spark(session.master, session.conf)
    errors = session.jvm.errors if session.jvm is not None else None
    try:
        _ = session.spark
    except HeadwaterError:
        raise
    except Exception as error:
        if errors is None:
            raise
        errors.seek(0)
        lines = errors.read().decode(errors="replace").strip().splitlines()
        raise SetupError(
            "Spark did not start.",
            detail="\n".join(filter(None, [str(error).strip().split("\n", 1)[0], *lines[-_LAST_LINES:]])),
            hint="Check --master and --conf; HEADWATER_DEBUG=1 shows the whole trace.",
        ) from error
    finally:
        if errors is not None:
            errors.close()


def end_session(session: Session) -> None:
    """Stop all that runs. A JVM that is all of Spark, and that this process has launched, is not waited for: it ends by
    itself when this process has."""
    from headwater.execution.spark_settings import is_local

    if session.jvm is not None and is_local(session.jvm.settings["spark.master"]):
        session.end()
    else:
        session.close()


def _launch_ahead(master: str | None, conf: Mapping[str, str]) -> Jvm | None:
    """What is wrong with this machine is said where Spark is needed: an error of the script goes before it."""
    from headwater.install.jars import is_fetched

    try:
        return launch_spark(master, conf) if is_fetched("spark") else None
    except (HeadwaterError, OSError):
        return None


def launch_spark(master: str | None, conf: Mapping[str, str]) -> Jvm | None:
    """The JVM of Spark; None if this process has one."""
    from headwater.execution.jvm import launch
    from headwater.execution.spark_settings import spark_settings
    from headwater.spark_internals import has_jvm

    if has_jvm():
        return None
    hidden = os.environ.get("HEADWATER_DEBUG") != "1" and not os.environ.get("HEADWATER_SPARK_LOG")
    errors = tempfile.TemporaryFile() if hidden else None  # noqa: SIM115 - closed when Spark has started
    # Nothing but SQL runs in it.
    return launch(spark_settings(master, conf), errors, others=())


def _parsed(files: Sequence[ScriptFile], variables: Mapping[str, str]) -> list[Statement]:
    """All statements; none if one of them cannot be parsed."""
    from headwater.sql.parser import FaultyStatement, parse_all
    from headwater.sql.script import Script

    try:
        found = [part for file in files for part in parse_all(Script(file.text, file.name, variables))]
    except SqlError:
        return []
    statements = [part for part in found if not isinstance(part, FaultyStatement)]
    return statements if len(statements) == len(found) else []


def _needs_spark(statement: Statement) -> bool:
    from headwater.sql import statements as s

    return isinstance(statement, s.Query) or _is_job(statement)


def _is_job(statement: Statement) -> bool:
    from headwater.sql import statements as s

    return isinstance(statement, s.Insert | s.StatementSet) or (
        isinstance(statement, s.CreateTable) and statement.query is not None
    )
