"""Commands that need no broker: what they print, what they refuse, and how they end."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from run_lab import Invoke

from headwater.plugins import CONNECTORS, FORMATS
from headwater.protocol.checkpoint import Checkpoint
from headwater.protocol.records import Genesis
from headwater.protocol.storage import open_storage
from headwater.session.definitions import Definitions, JobPlan
from headwater.sql.parser import parse_script

LEGACY = {"legacy-kafka", "legacy-upsert-kafka"}
SCRIPT = """\
CREATE TABLE clicks (who STRING, page STRING) WITH (
  'connector' = 'kafka', 'topic' = '${topic}', 'properties.bootstrap.servers' = 'localhost:1', 'format' = 'json'
);
CREATE TABLE totals (who STRING, n BIGINT, PRIMARY KEY (who) NOT ENFORCED) WITH (
  'connector' = 'upsert-kafka', 'topic' = 'totals', 'properties.bootstrap.servers' = 'localhost:1',
  'key.format' = 'json', 'value.format' = 'json'
);
CREATE VIEW shop AS SELECT * FROM clicks WHERE page LIKE '/shop/%';
INSERT INTO totals SELECT who, COUNT(*) FROM shop GROUP BY who;
"""


@pytest.fixture
def script(tmp_path: Path) -> str:
    (tmp_path / "totals.sql").write_text(SCRIPT, encoding="utf-8")
    return "totals.sql"


def test_the_package_is_the_command_line() -> None:
    command = [sys.executable, "-m", "headwater", "options", "debezium-json"]
    said = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "ignore-parse-errors" in said.stdout


def test_check_notes_what_has_no_effect(invoke: Invoke) -> None:
    said = invoke("check", "-", stdin="SET 'state.backend' = 'rocksdb'; " * 2 + "ADD JAR '/x.jar';")
    assert said.code == 0
    assert said.err.splitlines()[0].startswith("Note: 'state.backend' has no effect: ")
    assert said.err.count("Note: ") == 2


def test_check_says_what_it_found(invoke: Invoke, script: str) -> None:
    said = invoke("check", script, "--var", "topic=clicks")
    assert (said.code, said.err) == (0, "")
    assert said.out.splitlines() == [
        "table   clicks  kafka, json, 2 columns",
        "table   totals  upsert-kafka, json/json, 2 columns, key (who)",
        "view    shop    SELECT * FROM clicks WHERE page LIKE '/shop/%'",
        "insert  totals  from clicks, updates, state: one row per group",
        "ok: 2 tables, 1 view, 1 insert",
    ]


def test_run_says_when_there_is_nothing_to_run(invoke: Invoke) -> None:
    said = invoke("run", "-", stdin="CREATE TABLE made (n INT) WITH ('connector' = 'datagen');")
    assert (said.code, said.out) == (0, "")
    assert said.err.startswith("Nothing to run: there is no INSERT and no SELECT.")
    assert invoke("run", "-", stdin="SHOW TABLES;").err == ""


def test_explain_shows_a_plan_per_insert(invoke: Invoke, script: str) -> None:
    said = invoke("explain", script, "--var", "topic=clicks")
    assert said.code == 0
    first, second, *rest = said.out.splitlines()
    assert first == "INSERT INTO totals  (totals.sql:9)"
    assert second.startswith("Write totals (upsert-kafka)")
    assert any("Aggregate" in line and "state: one row per group" in line for line in rest)


@pytest.mark.parametrize("command", ["check", "explain", "run"])
def test_an_error_has_a_place(invoke: Invoke, command: str) -> None:
    said = invoke(
        command, "-", stdin="CREATE TABLE t (a INT)\n  WITH ('connector' = 'print');\nINSERT INTO t SELEC 1;\n"
    )
    assert (said.code, said.out) == (1, "")
    assert "<stdin>:3:15\n  3 | INSERT INTO t SELEC 1;\n    |               ^^^^^" in said.err
    assert "Traceback" not in said.err


def test_an_error_of_a_definition_has_the_place_of_its_statement(invoke: Invoke) -> None:
    said = invoke("check", "-", stdin="\nCREATE TABLE t (a INT) WITH ('connector' = 'kafkaa');")
    assert said.code == 1
    assert "'kafkaa'" in said.err
    assert "<stdin>:2:30\n" in said.err
    assert "Did you mean 'kafka'?" in said.err


def test_scripts_share_a_session(invoke: Invoke, tmp_path: Path) -> None:
    (tmp_path / "a.sql").write_text("CREATE TABLE t (a INT) WITH ('connector' = 'print');", encoding="utf-8")
    (tmp_path / "b.sql").write_text("INSERT INTO t VALUES (1);", encoding="utf-8")
    assert invoke("check", "a.sql", "b.sql").code == 0
    said = invoke("check", "b.sql", "a.sql")
    assert said.code == 1
    assert "b.sql:1:" in said.err


def test_answers_need_no_spark(invoke: Invoke) -> None:
    text = "CREATE TABLE t (a INT NOT NULL COMMENT 'x') WITH ('connector' = 'print'); SHOW TABLES; DESCRIBE t;"
    said = invoke("run", "-", stdin=text)
    assert (said.code, said.err) == (0, "")
    assert "name  type" in said.out
    assert "a     INT" in said.out


def test_a_setting_without_effect_is_noted_once(invoke: Invoke) -> None:
    text = "SET 'table.exec.mini-batch.enabled' = 'true'; SET 'table.exec.mini-batch.enabled' = 'true';"
    said = invoke("run", "-", stdin=text)
    assert said.code == 0
    assert said.err.count("Note: 'table.exec.mini-batch.enabled' has no effect") == 1


@pytest.mark.parametrize("command", ["check", "explain", "run"])
def test_missing_files_are_named(invoke: Invoke, script: str, command: str) -> None:
    said = invoke(command, "total.sql")
    assert said.code == 1
    assert said.err == "Error: There is no file 'total.sql'.\nHint: Did you mean 'totals.sql'?\n"


def test_what_cannot_be_read(invoke: Invoke, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "latin.sql").write_bytes(b"-- caf\xe9\n")
    assert "'folder' is a directory." in invoke("check", "folder").err
    assert "'latin.sql' is not UTF-8 text.\nByte 6 cannot be read." in invoke("check", "latin.sql").err
    assert "Standard input can be read only once." in invoke("check", "-", "-").err


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("--var", "topic"), "'topic' is not KEY=VALUE."),
        (("--var", "=x"), "'=x' is not KEY=VALUE."),
        (("--var", "a=1", "--var", "a=2"), "'a' is given twice."),
        (("--conf", "parallelism.default=2"), "SET 'parallelism.default' = '…';"),
        (("--conf", "spark.ui.enabled"), "'spark.ui.enabled' is not KEY=VALUE."),
    ],
)
def test_wrong_arguments_are_usage_errors(
    invoke: Invoke, script: str, arguments: tuple[str, ...], complaint: str
) -> None:
    said = invoke("run", script, *arguments)
    assert said.code == 2
    assert complaint in " ".join(said.err.split())


def test_an_unknown_variable_has_a_place(invoke: Invoke, script: str) -> None:
    said = invoke("check", script)
    assert said.code == 1
    assert "totals.sql:2:37" in said.err
    assert "--var topic=…" in said.err


@pytest.mark.parametrize(
    "arguments",
    [(), ("run",), ("check",), ("explain",), ("options",), ("modernize",), ("test",), ("demo",), ("topic", "create")],
)
def test_help_has_an_example(invoke: Invoke, arguments: tuple[str, ...]) -> None:
    said = invoke(*arguments, "--help")
    assert said.code == 0
    assert "Example" in said.out or not arguments


@pytest.mark.parametrize("group", [(), ("broker",), ("topic",), ("checkpoint",)])
def test_the_list_of_commands_fits_a_terminal(invoke: Invoke, group: tuple[str, ...]) -> None:
    """80 columns wide: a summary that does not fit is cut off."""
    _, _, commands = invoke(*group, "--help").out.partition("Commands:")
    assert commands
    assert "..." not in commands


def test_a_misspelt_case_is_no_passed_test(invoke: Invoke, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert invoke("test", "nothing.case").code == 1
    assert "There is no case file in 'empty'." in invoke("test", "empty").err


def test_topics_need_a_broker(invoke: Invoke, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HEADWATER_HOME", str(tmp_path))
    said = invoke("topic", "list")
    assert said.code == 1
    assert "No embedded broker is running." in said.err


def test_options_lists_what_there_is(invoke: Invoke) -> None:
    lines = invoke("options").out.splitlines()
    names = [line.split()[0] for line in lines[1:]]
    assert set(names) == {*CONNECTORS, *FORMATS, "session", *LEGACY}


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("upsert-kafka", "value.format  String  required"),
        ("json", "json.ignore-parse-errors  Boolean  false"),
        ("datagen", "fields.<column>.kind  Enum  random"),
        ("session", "headwater.batch.poll-interval  Duration  50 ms"),
        ("kafka", "sink.semantic  Enum  –  Former name of 'sink.delivery-guarantee'."),
    ],
)
def test_options_of_one(invoke: Invoke, name: str, line: str) -> None:
    said = invoke("options", name)
    assert said.code == 0
    assert any(" ".join(shown.split()).startswith(" ".join(line.split())) for shown in said.out.splitlines())


def test_options_of_an_unknown_name(invoke: Invoke) -> None:
    said = invoke("options", "upsert_kafka")
    assert said.code == 1
    assert "Did you mean 'upsert-kafka'?" in said.err


def test_a_renamed_job_is_found_before_anything_starts(invoke: Invoke, script: str, tmp_path: Path) -> None:
    [job] = [job for job in planned(SCRIPT.replace("${topic}", "clicks")) if job.name == "totals"]
    checkpoint = Checkpoint(open_storage(str(tmp_path / "state" / "before")))
    checkpoint.begin(Genesis("id", "", 2, [], [], facts=job.fingerprint.to_json()))
    checkpoint.storage.unlock()
    said = invoke("run", script, "--var", "topic=clicks", "--checkpoint", str(tmp_path / "state"))
    assert said.code == 1
    assert "Job 'totals' would start from scratch, but checkpoint 'before' is of the same query" in said.err


def test_two_inserts_into_one_table_need_names(invoke: Invoke, tmp_path: Path) -> None:
    script = "CREATE TABLE t (a INT) WITH ('connector' = 'print');\n" + "INSERT INTO t VALUES (1);\n" * 2
    said = invoke("run", "-", "--checkpoint", str(tmp_path / "state"), stdin=script)
    assert said.code == 1
    assert "Two INSERTs would be the same job 't'." in said.err
    assert "3 | INSERT INTO t VALUES (1);" in said.err
    assert invoke("check", "-", stdin=script).code == 0


def planned(text: str) -> list[JobPlan]:
    definitions = Definitions()
    return [job for statement in parse_script(text) for job in definitions.apply(statement)]
