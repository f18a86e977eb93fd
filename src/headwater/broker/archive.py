"""A class-data archive of Kafka: the JVM maps its classes ready-made instead of parsing them, a second less per start.

It lies beside the broker's jars and is optional. A JVM that cannot use it (another build of Java, jars copied with new
time stamps) says so in one line of its log and starts as without it.
"""

from __future__ import annotations

from pathlib import Path

from headwater.install.class_archive import QUIET, new_archive
from headwater.install.jars import broker_jars
from headwater.install.java import check_java

__all__ = ["archive_options", "has_archive", "make_archive"]


def archive_options() -> list[str]:
    """What to tell the JVM; nothing as long as there is no archive."""
    return [f"-XX:SharedArchiveFile={_archive_file()}"] if has_archive() else []


def has_archive() -> bool:
    return _archive_file().is_file()


def make_archive() -> None:
    """Write the archive of the Java in use by starting and stopping a broker once."""
    from headwater.broker.server import Broker

    with new_archive(_archive_file()) as fresh:
        options = [f"-XX:ArchiveClassesAtExit={fresh}", *QUIET]
        Broker.start(fresh.parent / "broker", port=0, die_with_parent=True, jvm_options=options).stop()


def _archive_file() -> Path:
    return broker_jars()[0].parent / f"kafka-java-{check_java().version}.jsa"
