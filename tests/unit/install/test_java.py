"""Finding Java: where it is looked for, which versions are accepted, and what is said when there is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from headwater.errors import SetupError
from headwater.install.java import Java, check_java, java_command


def install(home: Path, *, release: str | None = None, says: str = "", exit_code: int = 0) -> Path:
    """A Java installation of which only the launcher and, if given, the release file exist."""
    launcher = home / "bin" / "java"
    launcher.parent.mkdir(parents=True)
    launcher.write_text(f"#!/bin/sh\ncat >&2 <<'EOF'\n{says}\nEOF\nexit {exit_code}\n")
    launcher.chmod(0o755)
    if release is not None:
        (home / "release").write_text(f'IMPLEMENTOR="Somebody"\nJAVA_VERSION="{release}"\n')
    return launcher


@pytest.mark.parametrize(
    ("version", "major"),
    [("17.0.15", 17), ("21", 21), ("1.8.0_402", 8), ("11.0.22+7", 11), ("22-ea", 22), ("25.0.1", 25)],
)
def test_major_version(version: str, major: int) -> None:
    assert Java(Path("java"), "on the PATH", version).major == major


@pytest.mark.parametrize("version", ["17", "17.0.15", "21.0.3", "24", "25-ea"])
def test_accepts(version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    launcher = install(tmp_path, release=version)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert check_java() == Java(launcher, "by JAVA_HOME", version)


@pytest.mark.parametrize("version", ["1.8.0_402", "11.0.22", "16", "18.0.2", "20.0.1"])
def test_refuses_and_names_the_version(version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    launcher = install(tmp_path, release=version)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(SetupError) as caught:
        check_java()
    assert caught.value.fact == f"Java {version} is not supported."
    assert f"by JAVA_HOME: '{launcher}'" in caught.value.detail
    assert "Install Java 17 or 21" in caught.value.hint


def test_java_home_wins_over_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = install(tmp_path / "chosen", release="17")
    other = install(tmp_path / "other", release="21")
    monkeypatch.setenv("PATH", str(other.parent))
    monkeypatch.setenv("JAVA_HOME", str(chosen.parent.parent))
    assert java_command() == chosen
    monkeypatch.delenv("JAVA_HOME")
    assert java_command() == other


def test_links_on_the_path_are_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    launcher = install(tmp_path / "jvm", release="21.0.3", exit_code=1)
    links = tmp_path / "links"
    links.mkdir()
    (links / "java").symlink_to(launcher)
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", f"{links}:/usr/bin:/bin")
    assert java_command().resolve() == launcher
    assert check_java().version == "21.0.3"


def test_without_a_release_file_java_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, says='openjdk version "17.0.9" 2023-10-17')
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert check_java().version == "17.0.9"


def test_a_launcher_that_launches_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, says="The operation couldn't be completed. Unable to locate a Java Runtime.", exit_code=1)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(SetupError, match="does not work as Java") as caught:
        check_java()
    assert "Unable to locate a Java Runtime" in caught.value.detail


def test_none_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SetupError, match=r"Java was not found\."):
        check_java()


def test_java_home_that_names_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "gone"))
    with pytest.raises(SetupError, match="JAVA_HOME does not name a Java installation"):
        check_java()
