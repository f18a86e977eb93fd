"""The embedded broker, for real: it starts, is found again, keeps its data, and leaves nothing running behind it."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from headwater.broker import Broker, launch, process
from headwater.errors import SetupError

QUICK = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]


def create(broker: Broker, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    admin.create_topics([NewTopic(topic, num_partitions=1)])[topic].result(30)


def produce(broker: Broker, topic: str, *values: str) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    for value in values:
        producer.produce(topic, value)
    assert producer.flush(30) == 0


def read(broker: Broker, topic: str, count: int) -> list[str]:
    consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "reader"})
    consumer.assign([TopicPartition(topic, 0, 0)])
    messages = consumer.consume(count, 30)
    consumer.close()
    return [message.value().decode() for message in messages]


def gone(pid: int, seconds: float = 10) -> bool:
    deadline = time.monotonic() + seconds
    while process.command_line(pid):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


@pytest.fixture
def taken_port() -> Iterator[int]:
    """A port somebody else listens on."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield listener.getsockname()[1]


def test_carries_messages(broker: Broker, unique_topic: Callable[[str], str]) -> None:
    topic = unique_topic("messages")
    create(broker, topic)
    produce(broker, topic, "one", "two")
    assert read(broker, topic, 2) == ["one", "two"]


def test_commits_transactions(broker: Broker, unique_topic: Callable[[str], str]) -> None:
    topic = unique_topic("transactions")
    create(broker, topic)
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": topic})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(topic, "once")
    producer.commit_transaction(30)
    assert read(broker, topic, 1) == ["once"]


def test_a_misspelt_topic_is_not_created(broker: Broker, unique_topic: Callable[[str], str]) -> None:
    topic = unique_topic("misspelt")
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "allow.auto.create.topics": True})
    asked_for = producer.list_topics(topic, timeout=30).topics[topic]
    assert asked_for.error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART
    assert topic not in producer.list_topics(timeout=30).topics


def test_a_life(tmp_path: Path) -> None:
    """Start, find, stop, start again on the same port, then on another because somebody took it: the data stays."""
    first = Broker.start(tmp_path, port=0, jvm_options=QUICK)
    create(first, "kept")
    produce(first, "kept", "still here")
    again = Broker.start(tmp_path)
    assert (first.started_here, again.started_here) == (True, False)
    assert (again.pid, again.bootstrap_servers) == (first.pid, first.bootstrap_servers)
    with pytest.raises(SetupError, match=f"already runs on port {first.port}"):
        Broker.start(tmp_path, port=first.port + 1)

    again.stop()
    assert gone(first.pid, seconds=0)
    assert Broker.find(tmp_path) is None

    second = Broker.start(tmp_path, jvm_options=QUICK, die_with_parent=True)
    assert (second.port, second.cluster_id) == (first.port, first.cluster_id)
    assert read(second, "kept", 1) == ["still here"]
    second.stop()

    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", first.port))
        listener.listen()
        with Broker.start(tmp_path, jvm_options=QUICK, die_with_parent=True) as third:
            assert third.port != first.port
            assert third.cluster_id == first.cluster_id
    assert gone(third.pid, seconds=0)


def test_simultaneous_starts_share_one_broker(tmp_path: Path) -> None:
    with ThreadPoolExecutor(3) as pool:
        starts = [pool.submit(Broker.start, tmp_path, 0, die_with_parent=True, jvm_options=QUICK) for _ in range(3)]
        brokers = [start.result() for start in starts]
    assert len({broker.pid for broker in brokers}) == 1
    assert sorted(broker.started_here for broker in brokers) == [False, False, True]
    brokers[0].stop()


def test_nothing_is_found_where_nothing_was_started(tmp_path: Path) -> None:
    assert Broker.find(tmp_path / "nowhere") is None
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize("remembered", ["dead", "reused", "torn"])
def test_a_stale_pid_is_nobody(remembered: str, tmp_path: Path) -> None:
    ended = subprocess.Popen(["true"])
    ended.wait()
    pid = {"dead": ended.pid, "reused": os.getpid()}.get(remembered)
    text = json.dumps({"pid": pid, "port": 9092, "cluster_id": "x"})
    (tmp_path / "broker.json").write_text(text if pid is not None else text[:10])
    assert Broker.find(tmp_path) is None


def test_a_busy_port_that_was_asked_for(tmp_path: Path, taken_port: int) -> None:
    with pytest.raises(SetupError, match=f"Port {taken_port} is busy"):
        Broker.start(tmp_path, port=taken_port)


def test_a_port_lost_at_the_last_moment(tmp_path: Path, taken_port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    choices = iter([taken_port, *process.free_ports(1)])
    monkeypatch.setattr(launch, "_choose_port", lambda plan: next(choices))
    with Broker.start(tmp_path, die_with_parent=True, jvm_options=QUICK) as broker:
        assert broker.port != taken_port


def test_a_setting_kafka_refuses(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="could not be prepared") as caught:
        Broker.start(tmp_path, port=0, extra_properties={"log.retention.ms": "a while"})
    assert "Invalid value a while for configuration log.retention.ms" in caught.value.detail
    assert "\tat " not in caught.value.detail


def test_a_jvm_that_does_not_start(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="stopped while starting") as caught:
        Broker.start(tmp_path, port=0, jvm_options=["-XX:+NoSuchFlag"])
    assert "Unrecognized VM option 'NoSuchFlag'" in caught.value.detail
    assert str(tmp_path / "broker.log") in caught.value.detail


def test_a_directory_kafka_cannot_name(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="cannot hold a broker"):
        Broker.start(tmp_path / "a,b")


def test_dies_with_a_killed_parent(tmp_path: Path) -> None:
    script = (
        "import sys, time; from pathlib import Path; from headwater.broker import Broker\n"
        f"broker = Broker.start(Path(sys.argv[1]), 0, die_with_parent=True, jvm_options={QUICK})\n"
        "print(broker.pid, flush=True); time.sleep(600)"
    )
    with subprocess.Popen([sys.executable, "-c", script, tmp_path], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        assert not gone(pid, seconds=0)
        parent.send_signal(signal.SIGKILL)
    assert gone(pid)


def headwater(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from headwater.cli import main; main()", "broker", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def test_from_the_command_line(tmp_path: Path) -> None:
    """Started by a program that ends at once, the broker stays until it is stopped."""
    unstarted = headwater("status", "--dir", tmp_path)
    assert (unstarted.returncode, unstarted.stdout) == (3, "No broker is running.\n")

    started = headwater("start", "--dir", tmp_path, "--port", "0")
    broker = Broker.find(tmp_path)
    assert broker is not None, started.stderr
    assert started.returncode == 0
    assert started.stdout.splitlines()[-1] == f"bootstrap.servers={broker.bootstrap_servers}"

    running = headwater("status", "--dir", tmp_path)
    assert (running.returncode, running.stdout.splitlines()[-1]) == (0, started.stdout.splitlines()[-1])

    stopped = headwater("stop", "--dir", tmp_path)
    assert stopped.returncode == 0
    assert gone(broker.pid, seconds=0)
    assert headwater("status", "--dir", tmp_path).returncode == 3


def test_an_error_on_the_command_line(tmp_path: Path, taken_port: int) -> None:
    refused = headwater("start", "--dir", tmp_path, "--port", str(taken_port))
    assert refused.returncode == 1
    assert refused.stdout == ""
    assert refused.stderr.startswith(f"Error: Port {taken_port} is busy.\n")
    assert "Traceback" not in refused.stderr
