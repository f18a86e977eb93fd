"""What the embedded broker's server.properties says, and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["BrokerLayout", "render", "server_properties"]


@dataclass(frozen=True)
class BrokerLayout:
    """What differs between two embedded brokers."""

    data: Path
    port: int
    controller_port: int
    partitions: int = 1
    extra: Mapping[str, str] = field(default_factory=dict)


def server_properties(layout: BrokerLayout) -> dict[str, str]:
    """All settings; the layout's `extra` come last and win."""
    listener = f"PLAINTEXT://127.0.0.1:{layout.port}"
    return {
        # one process is broker and controller, reachable from this machine only
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.voters": f"1@127.0.0.1:{layout.controller_port}",
        "controller.listener.names": "CONTROLLER",
        "listeners": f"{listener},CONTROLLER://127.0.0.1:{layout.controller_port}",
        "advertised.listeners": listener,
        "log.dirs": str(layout.data),
        "num.partitions": str(layout.partitions),
        # a misspelt topic name is an error, not a new empty topic
        "auto.create.topics.enable": "false",
        # what was written stays until its topic is deleted, consumer positions included
        "log.retention.ms": "-1",
        "offsets.retention.minutes": str(2**31 - 1),
        # a single node: one copy of everything, few internal partitions, no waiting for group members
        "default.replication.factor": "1",
        "min.insync.replicas": "1",
        "offsets.topic.num.partitions": "4",
        "offsets.topic.replication.factor": "1",
        "transaction.state.log.num.partitions": "4",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "share.coordinator.state.topic.num.partitions": "1",
        "share.coordinator.state.topic.replication.factor": "1",
        "share.coordinator.state.topic.min.isr": "1",
        "group.initial.rebalance.delay.ms": "0",
        # the default of 128 MiB would take a quarter of the heap
        "log.cleaner.dedupe.buffer.size": str(16 << 20),
        **layout.extra,
    }


def render(properties: Mapping[str, str]) -> str:
    """The text of a Java properties file, which is read as ISO 8859-1 with backslash escapes."""
    return "".join(f"{key}={_escape(value)}\n" for key, value in properties.items())


def _escape(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace("\n", "\\n")
    if escaped.startswith(" "):
        escaped = "\\" + escaped
    if escaped.isascii():
        return escaped
    units = escaped.encode("utf-16-be")
    codes = [int.from_bytes(units[at : at + 2], "big") for at in range(0, len(units), 2)]
    return "".join(chr(code) if code < 0x80 else f"\\u{code:04x}" for code in codes)
