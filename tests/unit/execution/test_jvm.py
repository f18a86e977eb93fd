"""The JVM of Spark is started as Spark's launcher would, and ends when nobody wants it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pyspark
import pytest

from headwater.execution import jvm
from headwater.execution.spark_settings import spark_settings
from headwater.install.class_path import other_jars
from headwater.install.jars import spark_jars
from headwater.install.java import java_command

HOME = Path(pyspark.__file__).parent
LAUNCHER = ("org.apache.spark.launcher.Main", "org.apache.spark.deploy.SparkSubmit")
SECRET = {"spark.hadoop.fs.s3a.secret.key": " a\\b\nü"}


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in os.environ:
        if name.startswith("SPARK_") or name in jvm._LAUNCHER_VARIABLES:
            monkeypatch.delenv(name)


@pytest.fixture
def sleeping(monkeypatch: pytest.MonkeyPatch) -> None:
    """Instead of the JVM, a process that never listens and does not end with its standard input."""
    monkeypatch.setattr(jvm, "_own_command", lambda settings, others: ["sh", "-c", "exec sleep 600"])


def launcher_command(settings: Mapping[str, str]) -> list[str]:
    """What Spark's script would start."""
    given = [word for key, value in settings.items() for word in ("--conf", f"{key}={value}")]
    done = subprocess.run(
        [java_command(), "-cp", f"{HOME}/jars/*", *LAUNCHER, *given, "pyspark-shell"],
        env={**os.environ, "SPARK_HOME": str(HOME), "SPARK_SCALA_VERSION": "2.13"},
        capture_output=True,
        check=True,
    )
    return [word for word in done.stdout.decode().split("\0")[1:] if word.strip()]


def split_class_path(command: list[str]) -> tuple[list[str], list[str]]:
    """The command without its class path, and the names of the files on that."""
    place = command.index("-cp") + 1
    first, *entries = map(Path, command[place].split(":"))
    assert first == HOME / "conf"
    names = [path.name for entry in entries for path in (entry.parent.glob("*") if entry.name == "*" else [entry])]
    return command[1:place] + command[place + 1 :], names


def test_the_command_is_that_of_the_launcher() -> None:
    settings = spark_settings("local[2]", {"spark.driver.extraJavaOptions": "-Da='b c'"})
    expected, jars = split_class_path(launcher_command(settings))
    expected.remove("--add-modules=jdk.incubator.vector")

    own, on_class_path = split_class_path(jvm._own_command(settings, other_jars()))

    assert own == expected[: len(own)]
    assert expected[len(own)] == "--conf"
    assert on_class_path[0] == jars[0]
    assert set(on_class_path) == {name for name in jars if name.endswith(".jar")} | {jar.name for jar in spark_jars()}


def test_a_jvm_for_sql_alone_has_the_same_class_path_without_its_end() -> None:
    settings = spark_settings(None, {})
    whole, short = (jvm._own_command(settings, others)[2] for others in (other_jars(), ()))

    assert whole.startswith(f"{short}:")
    assert "spark-mllib_" in whole.removeprefix(short)
    assert "spark-mllib_" not in short


@pytest.mark.parametrize(
    ("variables", "master", "conf"),
    [
        ({"SPARK_CONF_DIR": "/etc/spark"}, None, {}),
        ({"SPARK_DRIVER_MEMORY": "3g"}, None, {}),
        ({"HADOOP_CONF_DIR": "/etc/hadoop"}, None, {}),
        ({"PYSPARK_SUBMIT_ARGS": "--jars x.jar pyspark-shell"}, None, {}),
        ({}, "spark://host:7077", {}),
        ({}, "local-cluster[1,1,1024]", {}),
        ({}, None, {"spark.driver.extraClassPath": "/opt/x.jar"}),
        ({}, None, {"spark.driver.extraJavaOptions": "-Xmx1g"}),
    ],
)
def test_what_only_the_launcher_understands_is_left_to_it(
    variables: dict[str, str],
    master: str | None,
    conf: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    said = tmp_path / "said"
    script = f'printf "%s\\n" "$@" > {said}.new; mv {said}.new {said}'
    monkeypatch.setattr(jvm, "_script", lambda: ["sh", "-c", script, "spark-submit"])
    for name, value in variables.items():
        monkeypatch.setenv(name, value)

    jvm.launch(spark_settings(master, conf)).process.communicate(timeout=60)

    assert all(str(jar) in said.read_text() for jar in spark_jars())  # which the launcher does not know


def test_the_script_is_that_of_the_installation() -> None:
    assert jvm._script() == [f"{HOME}/bin/spark-submit"]


def test_secret_settings_are_in_a_file_and_not_on_the_command_line(tmp_path: Path) -> None:
    arguments = jvm._arguments({"spark.app.name": "x", **SECRET}, tmp_path)

    assert arguments[:2] == ["--conf", "spark.app.name=x"]
    option, path, defaults, shell = arguments[2:]
    assert (option, defaults, shell) == ("--properties-file", "--load-spark-defaults", "pyspark-shell")
    assert Path(path).read_text() == "spark.hadoop.fs.s3a.secret.key=\\ a\\\\b\\n\\u00fc\n"


@pytest.mark.usefixtures("sleeping")
def test_one_that_nobody_wants_is_killed() -> None:
    started = jvm.launch(spark_settings(None, SECRET))
    assert started.directory.stat().st_mode & 0o77 == 0

    started.abandon()

    assert started.process.returncode == -9
    assert not started.directory.exists()


@pytest.mark.usefixtures("sleeping")
def test_one_that_was_asked_for_is_left_to_whoever_has_asked() -> None:
    started = jvm.launch(spark_settings(None, {}))
    started.process.kill()
    started.process.communicate()
    assert started.connection() is None
    assert not started.directory.exists()

    started.abandon()


def test_the_connection_is_what_the_gateway_says(monkeypatch: pytest.MonkeyPatch) -> None:
    say = 'F="$_PYSPARK_DRIVER_CONN_INFO_PATH"; printf "\\0\\0\\1\\2\\0\\0\\0\\3abc" > "$F.new"; mv "$F.new" "$F"; cat'
    monkeypatch.setattr(jvm, "_own_command", lambda settings, others: ["sh", "-c", say])
    started = jvm.launch(spark_settings(None, {}))

    assert started.connection() == jvm.Connection(258, "abc")
    started.abandon()
    assert started.process.poll() is None

    assert started.process.stdin is not None
    started.process.stdin.close()
    assert started.process.wait(30) == 0
