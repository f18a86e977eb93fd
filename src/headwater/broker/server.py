"""Starting, finding and stopping the embedded broker of a directory.

A directory holds one broker: its data, its log (broker.log), its settings (server.properties, written again at each
start) and its last pid and port (broker.json). A pid counts only if that process runs Kafka with these very settings.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType

from headwater.broker import process
from headwater.broker.files import BrokerFiles, BrokerState
from headwater.broker.launch import BrokerLaunch, launch, wait_until_serving
from headwater.errors import SetupError
from headwater.install.home import exclusive, headwater_home

__all__ = ["Broker"]

_STOP_SECONDS = 30.0


class Broker:
    """A running embedded broker. As a context manager it stops at the end of the block, if the block started it."""

    def __init__(self, directory: Path, state: BrokerState, *, started_here: bool) -> None:
        self.directory = directory
        self._state = state
        self._started_here = started_here

    @property
    def bootstrap_servers(self) -> str:
        """What Kafka clients are given: 127.0.0.1:PORT."""
        return f"127.0.0.1:{self._state.port}"

    @property
    def port(self) -> int:
        return self._state.port

    @property
    def pid(self) -> int:
        return self._state.pid

    @property
    def cluster_id(self) -> str:
        """Kafka's own name for the cluster; stays with the directory."""
        return self._state.cluster_id

    @property
    def started_here(self) -> bool:
        """False for a broker that was already running when it was asked for."""
        return self._started_here

    @property
    def log_file(self) -> Path:
        return BrokerFiles(self.directory).log

    @staticmethod
    def default_directory() -> Path:
        return headwater_home() / "broker"

    @classmethod
    def start(
        cls,
        directory: Path | None = None,
        port: int | None = None,
        extra_properties: Mapping[str, str] | None = None,
        *,
        partitions: int = 1,
        die_with_parent: bool = False,
        jvm_options: Sequence[str] = (),
    ) -> Broker:
        """The broker of `directory`, started if it is not running, and serving requests when this returns.

        `port` None means the port it had before, else 9092, else any free one; 0 means any free one; another number
        means exactly that one. `extra_properties` go into server.properties, for this start only. `partitions` is the
        count for topics created without one. With `die_with_parent` the broker ends with this process, however that
        ends; without, it runs until it is stopped.
        """
        files = BrokerFiles.created(directory or cls.default_directory())
        plan = BrokerLaunch(files, port, partitions, die_with_parent, tuple(jvm_options), extra_properties or {})
        with exclusive(files.lock):
            running = cls.find(files.directory)
            if running is None:
                return cls(files.directory, launch(plan), started_here=True)
            _check_port(running, port)
            wait_until_serving(files, running._state)
            return running

    @classmethod
    def find(cls, directory: Path | None = None) -> Broker | None:
        """The broker of `directory` if its process is alive, else None. Starts nothing and creates nothing."""
        files = BrokerFiles.at(directory or cls.default_directory())
        state = files.read_state()
        if state is None or not files.is_broker(state.pid):
            return None
        return cls(files.directory, state, started_here=False)

    def stop(self) -> None:
        """Shut the broker down in order, by force after half a minute. Does nothing if it is no longer running."""
        files = BrokerFiles(self.directory)
        if files.is_broker(self.pid):
            process.end(self.pid, patience=_STOP_SECONDS)
        process.collect(self.pid)

    def __enter__(self) -> Broker:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._started_here:
            self.stop()

    def __repr__(self) -> str:
        return f"Broker({self.bootstrap_servers!r}, pid={self.pid}, directory={str(self.directory)!r})"


def _check_port(running: Broker, port: int | None) -> None:
    if port and port != running.port:
        raise SetupError(
            f"The broker of '{running.directory}' already runs on port {running.port}.",
            detail=f"Port {port} was asked for.",
            hint="Stop it first, or use another directory.",
        )
