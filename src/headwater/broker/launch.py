"""The steps of a start: choose a port, write the settings, format new data, run Kafka, wait until it serves."""

from __future__ import annotations

import base64
import socket
import subprocess
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field

from headwater.broker import process
from headwater.broker.archive import archive_options
from headwater.broker.files import BrokerFiles, BrokerState
from headwater.broker.properties import BrokerLayout, render, server_properties
from headwater.errors import SetupError
from headwater.install.jars import broker_jars
from headwater.install.java import check_java

__all__ = ["BrokerLaunch", "launch", "wait_until_serving"]

_DEFAULT_PORT = 9092
_START_SECONDS = 120.0
_BIND_RACES = 5
_LOGGER = "-Dorg.slf4j.simpleLogger."
_LOGGING = (
    f"{_LOGGER}logFile=System.out",
    f"{_LOGGER}showDateTime=true",
    f"{_LOGGER}dateTimeFormat=yyyy-MM-dd HH:mm:ss.SSS",
    f"{_LOGGER}showThreadName=false",
    f"{_LOGGER}defaultLogLevel=warn",
    f"{_LOGGER}log.kafka.server.KafkaRaftServer=info",
    f"{_LOGGER}log.org.apache.kafka.controller.QuorumController=error",  # warns at every start
    f"{_LOGGER}log.org.apache.kafka.clients.NetworkClient=error",  # warns at every stop
)
_HEAP = ("-Xms128m", "-Xmx512m")
# for the formatter, which lives for a second: spend no time on compiling well
_SHORT_LIVED = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")


@dataclass(frozen=True)
class BrokerLaunch:
    """How a broker is to be started; `port` as in `Broker.start`."""

    files: BrokerFiles
    port: int | None = None
    partitions: int = 1
    die_with_parent: bool = False
    jvm_options: tuple[str, ...] = ()
    extra_properties: Mapping[str, str] = field(default_factory=dict)


class _PortTaken(Exception):
    """Somebody took the port between our look and Kafka's bind."""


def launch(plan: BrokerLaunch) -> BrokerState:
    """Start Kafka and return when it serves. A port that was not asked for by number may be replaced on the way."""
    for _ in range(_BIND_RACES):
        port = _choose_port(plan)
        try:
            return _launch_on(plan, port)
        except _PortTaken:
            if plan.port:
                break
    raise _busy(port)


def _launch_on(plan: BrokerLaunch, port: int) -> BrokerState:
    """One attempt.

    1. Write server.properties for this port.
    2. Format the data directory, if this is its first start.
    3. Run Kafka and remember its pid before anything can go wrong.
    4. Wait until it serves; whatever happens before that, leave no process behind.
    """
    files = plan.files
    [controller_port] = process.free_ports(1)
    layout = BrokerLayout(files.data, port, controller_port, plan.partitions, plan.extra_properties)
    files.properties.write_text(render(server_properties(layout)), encoding="ascii")  # 1
    if files.log.exists():
        files.log.replace(files.log.with_suffix(".log.old"))
    cluster_id = files.cluster_id() or _format(files)  # 2
    spawn = process.spawn_supervised if plan.die_with_parent else process.spawn_detached
    pid = spawn(_java(*_HEAP, *plan.jvm_options, *_LOGGING, "kafka.Kafka", str(files.properties)), files.log)
    state = BrokerState(pid, port, cluster_id)
    try:
        files.write_state(state)  # 3
        wait_until_serving(files, state)  # 4
    except BaseException:
        process.end(pid, patience=1)
        process.collect(pid)
        raise
    return state


def _java(*arguments: str) -> list[str]:
    """The command line of a JVM with Kafka on its classpath."""
    classpath = broker_jars()[0].parent / "*"
    return [str(check_java().command), *archive_options(), "-cp", str(classpath), *arguments]


def _choose_port(plan: BrokerLaunch) -> int:
    if plan.port:
        if not process.is_free(plan.port):
            raise _busy(plan.port)
        return plan.port
    if plan.port is None:
        last = plan.files.read_state()
        for wanted in ([last.port] if last else []) + [_DEFAULT_PORT]:
            if process.is_free(wanted):
                return wanted
    return process.free_ports(1)[0]


def _busy(port: int) -> SetupError:
    return SetupError(
        f"Port {port} is busy.",
        detail=f"Another program listens on 127.0.0.1:{port}.",
        hint="Stop it, choose another port, or name none to have a free one chosen.",
    )


def _format(files: BrokerFiles) -> str:
    """Prepare an empty data directory for a new cluster; its id."""
    cluster_id = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
    # As one word: an id may begin with a dash.
    arguments = ["kafka.tools.StorageTool", "format", f"--cluster-id={cluster_id}", "--config", str(files.properties)]
    command = _java(*_SHORT_LIVED, *_LOGGING, *arguments)
    with files.log.open("ab") as log:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, check=False)
    if done.returncode != 0 or files.cluster_id() is None:
        raise SetupError(
            "The data directory of the embedded broker could not be prepared.",
            detail=f"{files.last_words()}\nThe whole log: '{files.log}'.",
        )
    return cluster_id


def wait_until_serving(files: BrokerFiles, state: BrokerState) -> None:
    """Return when the broker of `state` answers a metadata request as the cluster it should be."""
    deadline = time.monotonic() + _START_SECONDS
    while not _serves(state):
        if not files.is_broker(state.pid):
            raise _died(files)
        if time.monotonic() > deadline:
            raise SetupError(
                f"The embedded broker did not answer within {_START_SECONDS:.0f} seconds.",
                detail=f"{files.last_words()}\nThe whole log: '{files.log}'.",
                hint="The machine may be overloaded; try again.",
            )
        time.sleep(0.05)


def _died(files: BrokerFiles) -> Exception:
    words = files.last_words()
    if "Address already in use" in words:
        return _PortTaken()
    return SetupError(
        "The embedded broker stopped while starting.",
        detail=f"{words or 'It wrote nothing to its log.'}\nThe whole log: '{files.log}'.",
    )


def _serves(state: BrokerState) -> bool:
    # a plain connection is tried first: librdkafka waits longer after a refused one
    with socket.socket() as probe:
        probe.settimeout(1)
        if probe.connect_ex(("127.0.0.1", state.port)) != 0:
            return False
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import AdminClient

    admin = AdminClient({"bootstrap.servers": f"127.0.0.1:{state.port}", "log_level": 0})
    try:
        return bool(admin.list_topics(timeout=5).cluster_id == state.cluster_id)
    except KafkaException:
        return False
