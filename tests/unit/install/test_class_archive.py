"""The archive of Spark's classes is used where there is one, and nothing depends on it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from headwater.install import class_archive as archive
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
