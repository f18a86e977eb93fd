"""The places inside a broker's directory, and what is remembered there between starts."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from headwater.broker import process
from headwater.errors import SetupError
from headwater.install.home import writable_directory

__all__ = ["BrokerFiles", "BrokerState"]

_LAST_LINES = 12


@dataclass(frozen=True)
class BrokerState:
    """What broker.json remembers of the last start."""

    pid: int
    port: int
    cluster_id: str


@dataclass(frozen=True)
class BrokerFiles:
    """One broker's directory, an absolute path with symbolic links followed."""

    directory: Path

    @classmethod
    def at(cls, directory: Path) -> BrokerFiles:
        """For looking only: nothing is created."""
        return cls(directory.expanduser().resolve())

    @classmethod
    def created(cls, directory: Path) -> BrokerFiles:
        """For starting: the directory exists afterwards and can be written to. If it is new, only its owner may read
        what is in it: data and logs."""
        files = cls.at(directory)
        if "," in str(files.directory):
            raise SetupError(
                f"'{files.directory}' cannot hold a broker.",
                detail="Kafka reads a comma in the path of its data as the end of the path.",
                hint="Choose a directory without a comma.",
            )
        writable_directory(files.directory, 0o700)
        return files

    @property
    def lock(self) -> Path:
        return self.directory / ".lock"

    @property
    def log(self) -> Path:
        return self.directory / "broker.log"

    @property
    def properties(self) -> Path:
        return self.directory / "server.properties"

    @property
    def data(self) -> Path:
        return self.directory / "data"

    def is_broker(self, pid: int) -> bool:
        """Whether this process is alive and runs Kafka with this directory's settings: a reused pid does not."""
        return process.command_line(pid).endswith(f" kafka.Kafka {self.properties}")

    def cluster_id(self) -> str | None:
        """The id Kafka wrote when it formatted the data directory; None before that."""
        try:
            lines = (self.data / "meta.properties").read_text(encoding="utf-8").splitlines()
        except OSError:
            return None
        return next((line.removeprefix("cluster.id=") for line in lines if line.startswith("cluster.id=")), None)

    def read_state(self) -> BrokerState | None:
        try:
            return BrokerState(**json.loads((self.directory / "broker.json").read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError):
            return None

    def write_state(self, state: BrokerState) -> None:
        fresh = self.directory / "broker.json.new"
        fresh.write_text(json.dumps(asdict(state)) + "\n", encoding="utf-8")
        fresh.replace(self.directory / "broker.json")

    def last_words(self) -> str:
        """The end of the log as a person wants it: without the frames of stack traces."""
        try:
            text = self.log.read_text(encoding="utf-8", errors="replace")
        except OSError:
            return ""
        telling = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith(("at ", "... "))]
        return "\n".join(telling[-_LAST_LINES:])
