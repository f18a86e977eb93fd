"""The archive of Spark's classes is used where there is one, and nothing depends on it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from headwater.install import class_archive as archive
from headwater.install.home import headwater_home
from headwater.install.jars import spark_jars
from headwater.install.java import java_command


def test_it_is_used_once_it_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "spark.jsa"
    monkeypatch.setattr(archive, "_archive_file", lambda: file)
    assert archive.archive_options() == []
    with archive.new_archive(file):
        """A training run that fails writes nothing."""
    assert archive.archive_options() == []
    with archive.new_archive(file) as fresh:
        fresh.write_bytes(b"no archive at all")
    assert f"-XX:SharedArchiveFile={file}" in archive.archive_options()


def test_a_jvm_starts_without_a_word_if_it_cannot_use_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "spark.jsa"
    file.write_bytes(b"no archive at all")
    monkeypatch.setattr(archive, "_archive_file", lambda: file)
    done = subprocess.run(
        [java_command(), *archive.archive_options(), "-version"], capture_output=True, text=True, check=True
    )
    assert done.stdout == ""
    assert "archive" not in done.stderr


@pytest.mark.long
def test_the_training_job_leaves_an_archive(tmp_path: Path) -> None:
    """Nobody would notice its failure. In a home of its own, with the same jars: a JVM that uses an archive cannot
    write one."""
    jars = spark_jars()[0].parent
    home = tmp_path / "home" / jars.relative_to(headwater_home())
    home.mkdir(parents=True)
    for file in jars.iterdir():
        if file.suffix != ".jsa":
            (home / file.name).symlink_to(file)
    archive = tmp_path / "spark.jsa"
    said = subprocess.run(
        [sys.executable, "-m", "headwater.cli.train_archive", str(archive)],
        env={**os.environ, "HEADWATER_HOME": str(tmp_path / "home")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert said.returncode == 0, said.stderr
    assert archive.stat().st_size > 10_000_000
