"""What the shell understands of what is typed: when it is complete, its colours, and what could come next."""

from __future__ import annotations

from pathlib import Path

import pytest
from prompt_toolkit.document import Document

from headwater.cli.shell.commands import run_command
from headwater.cli.shell.complete import SqlCompleter, proposals
from headwater.cli.shell.input_text import SqlLexer, is_complete
from headwater.cli.shell.shell import Shell
from headwater.errors import HeadwaterError
from headwater.session import Session
from headwater.sql.parser.show import SHOWN

TABLES = """
CREATE TABLE orders (order_id INT, customer STRING) WITH ('connector' = 'kafka', 'topic' = 'o', 'format' = 'json',
  'properties.bootstrap.servers' = 'k1:9092');
CREATE VIEW big AS SELECT order_id AS big_one FROM orders;
"""


@pytest.mark.parametrize(
    ("text", "complete"),
    [
        ("", True),
        ("SELECT 1", False),
        ("SELECT 1;", True),
        ("SELECT 1; SELECT 2", False),
        ("SELECT ';", False),
        ("SELECT ';';  -- done", True),
        ("SELECT 1 -- ;", False),
        ("SELECT /* ; ", False),
        ("SELECT '${who}';", True),
        ("\\d", True),
        ("help", True),
        ("Quit", True),
        ("EXECUTE STATEMENT SET BEGIN INSERT INTO a SELECT 1;", False),
        ("EXECUTE STATEMENT SET BEGIN INSERT INTO a SELECT 1; END;", True),
        ("SET 'a' = 'b'; EXECUTE STATEMENT SET BEGIN INSERT INTO a SELECT 1;", False),
    ],
)
def test_enter_runs_what_is_complete(text: str, complete: bool) -> None:
    assert is_complete(text) is complete


def test_colours() -> None:
    text = "select a1, 'x' -- why\nFROM `t` WHERE n > 1.5 AND 'open\nstring"
    line = SqlLexer().lex_document(Document(text))
    assert "".join(piece for number in range(3) for _, piece, *_ in line(number)) == text.replace("\n", "")
    styled = {piece: style for number in range(3) for style, piece, *_ in line(number) if style}
    assert styled == {
        "select": "class:keyword", "'x'": "class:string", "-- why": "class:comment", "FROM": "class:keyword",
        "`t`": "class:name", "WHERE": "class:keyword", "1.5": "class:number", "AND": "class:keyword",
        "'open": "class:string", "string": "class:string",
    }  # fmt: skip
    assert line(7) == []


@pytest.fixture(scope="module")
def known() -> SqlCompleter:
    session = Session()
    session.sql(TABLES)
    return SqlCompleter(session.catalog, {"properties.bootstrap.servers": "k2:9092"})


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        ("SEL", ["SELECT"]),
        ("select * from ", ["big", "orders"]),
        ("INSERT INTO o", ["orders"]),
        ("SELECT cus", ["customer"]),  # no table is named yet
        ("SELECT customer FROM orders WHERE ", ["order_id", "customer"]),
        ("SELECT customer FROM orders ", []),
        ("SHOW ", list(SHOWN)),
        ("show cur", ["CURRENT CATALOG", "CURRENT DATABASE"]),
        ("\\timing o", ["on", "off"]),
        ("\\format js", ["json", "jsonl"]),
        ("\\nope ", []),
        ("SELECT customer FROM orders WHERE cus", ["customer"]),
        ("SELECT 1; SELECT * FROM big WHERE big_", ["big_one"]),
        ("\\ti", ["\\timing"]),
        ("\\d or", ["orders"]),
        ("CREATE TABLE t (a INT) WITH ('conn", ["connector"]),
        ("CREATE TABLE t (a INT) WITH ('connector' = 'upsert", ["upsert-kafka"]),
        ("CREATE TABLE t (a INT) WITH ('connector' = 'datagen', 'rows", ["rows-per-second"]),
        ("CREATE TABLE t (a INT) WITH ('connector' = 'kafka', 'format' = 'avro", ["avro-confluent"]),
        ("CREATE TABLE t (a INT) WITH ('connector' = 'kafka', 'scan.bounded.mode' = 'l", ["latest-offset"]),
        (
            "CREATE TABLE t (a INT) WITH ('connector' = 'kafka', 'format' = 'json', 'json.ig",
            ["json.ignore-parse-errors"],
        ),
        (
            "CREATE TABLE t (a INT) WITH ('connector' = 'kafka', 'properties.bootstrap.servers' = '",
            ["k1:9092", "k2:9092"],
        ),
        ("SELECT * FROM orders /*+ OPTIONS('scan.startup.m", ["scan.startup.mode"]),
        ("SET 'execution.runtime", ["execution.runtime-mode"]),
        ("SET 'execution.runtime-mode' = 'b", ["batch"]),
        ("RESET 'table.dml", ["table.dml-sync"]),
        ("SELECT 'cust", []),
    ],
)
def test_completion(before: str, expected: list[str], known: SqlCompleter) -> None:
    assert proposals(before, known)[1] == expected


def test_scripts_are_completed(known: SqlCompleter, tmp_path: Path) -> None:
    for name in ("tables.sql", "totals.sql", "notes.txt", ".hidden.sql", "more/x.sql"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    assert proposals(f"\\i {tmp_path}/t", known)[1] == [f"{tmp_path}/tables.sql", f"{tmp_path}/totals.sql"]
    assert proposals(f"\\i {tmp_path}/", known)[1][0] == f"{tmp_path}/more/"
    assert proposals(f"\\i {tmp_path}/nowhere/", known)[1] == []


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("\\i", "needs a FILE"),
        ("\\i nowhere.sql", "No such file or directory."),
        ("\\stop", "needs a JOB"),
        ("\\timing maybe", "neither on nor off"),
        ("\\format xml", "Formats: table"),
        ("\\jbos", "Did you mean '\\jobs'?"),
        ("\\d ordres", "Did you mean 'orders'?"),
    ],
)
def test_what_is_wrong_with_a_command(command: str, words: str, known: SqlCompleter) -> None:
    session = Session()
    session.sql(TABLES)
    with pytest.raises(HeadwaterError) as failed:
        run_command(Shell(session), command)
    assert words in str(failed.value)
    assert " | " not in str(failed.value), "nobody has typed a statement"


def test_no_jobs_are_no_empty_table(capsys: pytest.CaptureFixture[str], runtime: Path) -> None:
    run_command(Shell(Session()), "\\jobs")
    assert capsys.readouterr().out == "No jobs. INSERT INTO starts one.\n"


@pytest.fixture
def runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HEADWATER_RUNTIME_DIR", str(tmp_path))
    return tmp_path


def test_the_help_fits_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    run_command(Shell(Session()), "\\?")
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 80
