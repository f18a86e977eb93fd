"""headwater.toml, and values from outside of a script: where they come from, and that they are not shown."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from headwater.cli import app
from headwater.errors import HeadwaterError, SqlError, ValidationError
from headwater.options.project import read_project
from headwater.options.secrets import hidden_in, masked
from headwater.options.variables import ScriptVariables
from headwater.session import Session, connect

TOML = """
checkpoint = "state"
master = "local[2]"
[connection]
"properties.bootstrap.servers" = "k1:9092"
"properties.sasl.jaas.config" = "${env:HW_TEST_LOGIN}"
"avro-confluent.url" = "http://registry"
[spark]
"spark.executor.memory" = "4g"
"spark.ui.enabled" = false
[variables]
topic = "orders"
[environments.production]
checkpoint = "s3://bucket/state"
[environments.production.connection]
"properties.bootstrap.servers" = "p1:9092"
[environments.production.variables]
topic = "all-orders"
"""
SCRIPT = """
CREATE TABLE o (a STRING) WITH ('connector' = 'kafka', 'topic' = '${topic}', 'format' = 'json');
CREATE TABLE p (a STRING) WITH ('connector' = 'print');
INSERT INTO p SELECT a FROM o;
SHOW CREATE TABLE o;
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HW_TEST_LOGIN", "module required password=hush-hush;")
    path = tmp_path / "headwater.toml"
    path.write_text(TOML)
    (tmp_path / "o.sql").write_text(SCRIPT)
    return path


def test_what_a_project_says(project: Path) -> None:
    plain = read_project(project)
    assert (plain.checkpoint, plain.master, plain.variables) == ("state", "local[2]", {"topic": "orders"})
    assert plain.spark == {"spark.executor.memory": "4g", "spark.ui.enabled": "false"}
    assert plain.connection["properties.sasl.jaas.config"] == "module required password=hush-hush;"
    production = read_project(project, "production")
    assert (production.checkpoint, production.master) == ("s3://bucket/state", "local[2]")
    assert production.connection["properties.bootstrap.servers"] == "p1:9092"
    assert production.variables == {"topic": "all-orders"}
    assert "hush" not in repr(plain)


def test_connection_defaults_are_for_kafka_tables_that_do_not_set_them(project: Path) -> None:
    session = connect(project=read_project(project, "production"))
    own = "'topic' = 't', 'properties.bootstrap.servers' = 'own:1', 'format' = 'json'"
    session.sql(SCRIPT.split("INSERT", maxsplit=1)[0] + f"CREATE TABLE q (a INT) WITH ('connector' = 'kafka', {own});")
    assert session.catalog.table("o").raw_options["properties.bootstrap.servers"] == "p1:9092"
    assert session.catalog.table("o").raw_options["topic"] == "all-orders"
    assert session.catalog.table("q").raw_options["properties.bootstrap.servers"] == "own:1"
    assert "properties.bootstrap.servers" not in session.catalog.table("p").raw_options
    assert "avro-confluent.url" not in session.catalog.table("o").raw_options
    assert "hush" not in repr(session) + repr(session.catalog.table("o"))


@pytest.mark.parametrize("environment", ["", "production"])
def test_commands_find_the_project_beside_the_script(project: Path, environment: str) -> None:
    arguments = ["check", str(project.parent / "o.sql"), *(["--env", environment] if environment else [])]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    assert "ok: 2 tables, 1 insert" in result.output


@pytest.mark.parametrize(
    ("text", "environment", "message"),
    [
        ("checkpont = 'x'", "", "Did you mean 'checkpoint'?"),
        ("checkpoint = 3", "", "'checkpoint' is not a string"),
        ("[connection]\nproperties.bootstrap.servers = 'k'", "", "with the key in quotes"),
        ("[environments.production]\nx = 1", "", "'x' is not known"),
        ("[environments.production]", "prodution", "Did you mean 'production'?"),
        ("a = ", "", "it is not TOML"),
        ("checkpoint = '${env:HW_NO_SUCH}'", "", "The environment variable 'HW_NO_SUCH' is not set."),
    ],
)
def test_wrong_projects(tmp_path: Path, text: str, environment: str, message: str) -> None:
    path = tmp_path / "headwater.toml"
    path.write_text(text)
    with pytest.raises(ValidationError) as caught:
        read_project(path, environment)
    assert message in str(caught.value)


def test_values_from_outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HW_TEST_TOPIC", "it's-hidden")
    (tmp_path / "password.txt").write_text("word-in-a-file\n")
    session = Session(variables=ScriptVariables({}, tmp_path))
    results = session.sql(
        "CREATE TABLE o (a STRING) WITH ('connector' = 'kafka', 'topic' = '${env:HW_TEST_TOPIC}', 'format' = 'json',"
        "'properties.bootstrap.servers' = 'k', 'properties.client.id' = '${file:password.txt}'); SHOW CREATE TABLE o;"
    )
    options = session.catalog.table("o").raw_options
    assert (options["topic"], options["properties.client.id"]) == ("it's-hidden", "word-in-a-file")
    shown = repr(results) + repr(session) + str(masked(options)) + hidden_in("word-in-a-file it's-hidden", {})
    assert "hidden" not in shown
    assert "word-in-a-file" not in shown


@pytest.mark.parametrize(
    ("name", "fact"),
    [
        ("env:HW_NO_SUCH", "The environment variable 'HW_NO_SUCH' is not set"),
        ("file:no/such", "The file 'no/such' cannot be read"),
        ("nosuch", "Unknown variable 'nosuch'"),
        ("other:x", "Not a variable's name"),
    ],
)
def test_what_is_not_there(name: str, fact: str) -> None:
    with pytest.raises(SqlError) as caught:
        Session().check("SET 'pipeline.name' = '${" + name + "}'")
    assert caught.value.fact == fact
    assert caught.value.position is not None


def test_an_environment_needs_a_file() -> None:
    with pytest.raises(HeadwaterError, match="environment 'x'"):
        read_project(None, "x")
