"""Three brokers that hold a copy of everything each: any of them may stop, and the other two lead its partitions."""

from __future__ import annotations

import base64
import os
import signal
import uuid
from pathlib import Path

from headwater.broker import Broker
from headwater.broker.process import collect, free_ports

NODES = (1, 2, 3)
_CONTROLLER = 1  # one of the brokers is the controller, too
_JVM = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx256m"]
_COPIES = {
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    # a broker that was killed is found dead in seconds
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "500",
}


class BrokerCluster:
    """Running from the start of the `with` block to its end."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        *ports, self._controller_port = free_ports(len(NODES) + 1)
        self._ports = dict(zip(NODES, ports, strict=True))
        self._brokers: dict[int, Broker] = {}

    @property
    def bootstrap_servers(self) -> str:
        return ",".join(f"127.0.0.1:{port}" for port in self._ports.values())

    def start(self, node: int) -> None:
        directory = self._directory / f"broker-{node}"
        if node != _CONTROLLER and not directory.exists():
            self._join(directory, node)
        self._brokers[node] = Broker.start(
            directory, self._ports[node], self._properties(node), die_with_parent=True, jvm_options=_JVM
        )

    def stop(self, node: int) -> None:
        """In order: the broker first hands the lead of its partitions over."""
        self._brokers[node].stop()

    def kill(self, node: int) -> None:
        """At once: the others find out when it does not answer."""
        os.kill(self._brokers[node].pid, signal.SIGKILL)
        collect(self._brokers[node].pid)

    def _properties(self, node: int) -> dict[str, str]:
        own = f"PLAINTEXT://127.0.0.1:{self._ports[node]}"
        controller = f",CONTROLLER://127.0.0.1:{self._controller_port}" if node == _CONTROLLER else ""
        return {
            "process.roles": "broker,controller" if node == _CONTROLLER else "broker",
            "node.id": str(node),
            "controller.quorum.voters": f"{_CONTROLLER}@127.0.0.1:{self._controller_port}",
            "listeners": f"{own}{controller}",
            **_COPIES,
        }

    def _join(self, directory: Path, node: int) -> None:
        """Format the data directory of a new broker as one of this cluster."""
        data = directory.resolve() / "data"
        data.mkdir(parents=True)
        identity = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        lines = ("version=1", f"cluster.id={self._brokers[_CONTROLLER].cluster_id}", f"node.id={node}")
        (data / "meta.properties").write_text("\n".join([*lines, f"directory.id={identity}"]) + "\n")

    def __enter__(self) -> BrokerCluster:
        for node in NODES:
            self.start(node)
        return self

    def __exit__(self, *_: object) -> None:
        for broker in self._brokers.values():
            broker.stop()
