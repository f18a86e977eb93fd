"""Finding Java and judging its version; nothing here starts a JVM unless the installation does not say what it is."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from headwater.errors import SetupError

__all__ = ["Java", "check_java", "java_command"]

_HINT = "Install Java 17 or 21 (a headless runtime is enough) and set JAVA_HOME to it, or put its 'java' on the PATH."


@dataclass(frozen=True)
class Java:
    """One Java installation: its launcher, where it was found, and the full version such as '17.0.15'."""

    command: Path
    found_by: str
    version: str

    @property
    def major(self) -> int:
        """17 for '17.0.15', 8 for '1.8.0_402', 22 for '22-ea'."""
        numbers = [int(number) for number in re.findall(r"\d+", self.version)]
        return numbers[1] if numbers[0] == 1 and len(numbers) > 1 else numbers[0]


def java_command() -> Path:
    """The launcher that every JVM of Headwater is started with: JAVA_HOME's, else the first on the PATH."""
    return _find_launcher()[0]


def check_java() -> Java:
    """The Java in use; a `SetupError` when there is none, or one that Spark and Kafka do not run on."""
    command, found_by = _find_launcher()
    java = Java(command, found_by, _version_in_release_file(command) or _version_reported(command))
    # Spark 4.1 and Kafka 4 support 17 and 21; releases in between have ended.
    if java.major != 17 and java.major < 21:
        raise SetupError(
            f"Java {java.version} is not supported.",
            detail=f"Found {found_by}: '{command}'. Headwater runs on Java 17, and on 21 or later.",
            hint=_HINT,
        )
    return java


def _find_launcher() -> tuple[Path, str]:
    """The launcher and the words for where it was found."""
    home = os.environ.get("JAVA_HOME", "")
    if home:
        launcher = Path(home) / "bin" / "java"
        if not os.access(launcher, os.X_OK):
            raise SetupError(
                "JAVA_HOME does not name a Java installation.",
                detail=f"There is no '{launcher}'.",
                hint="Correct JAVA_HOME, or unset it to use the 'java' on the PATH.",
            )
        return launcher, "by JAVA_HOME"
    on_path = shutil.which("java")
    if on_path is None:
        raise SetupError(
            "Java was not found.", detail="JAVA_HOME is not set, and no 'java' is on the PATH.", hint=_HINT
        )
    return Path(on_path), "on the PATH"


def _version_in_release_file(command: Path) -> str | None:
    """What the installation says of itself; every OpenJDK build carries this file."""
    try:
        text = (command.resolve().parent.parent / "release").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    match = re.search(r'^JAVA_VERSION="(\d[^"]*)"', text, re.MULTILINE)
    return match.group(1) if match else None


def _version_reported(command: Path) -> str:
    """What `java -version` prints, for launchers that are not inside their installation."""
    try:
        done = subprocess.run([command, "-version"], capture_output=True, text=True, timeout=60, check=False)
        said = (done.stderr + done.stdout).strip()
    except (OSError, subprocess.TimeoutExpired) as error:
        said = str(error)
    match = re.search(r'version "(\d[^"]*)"', said)
    if match is None:
        raise SetupError(
            f"'{command}' does not work as Java.", detail=f"'java -version' printed: {said[:500]}", hint=_HINT
        )
    return match.group(1)
