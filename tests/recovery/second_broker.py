"""A broker of one test alone, which can be stopped and comes back where it was."""

from __future__ import annotations

from pathlib import Path

from headwater.broker import Broker

_QUICK = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]


class SecondBroker:
    """Running from the start of the `with` block to its end."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._port = 0

    def start(self) -> None:
        broker = Broker.start(self._directory, self._port, die_with_parent=True, jvm_options=_QUICK)
        self._port = broker.port

    def stop(self) -> None:
        broker = Broker.find(self._directory)
        if broker is not None:
            broker.stop()

    @property
    def bootstrap_servers(self) -> str:
        return f"127.0.0.1:{self._port}"

    def __enter__(self) -> SecondBroker:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
