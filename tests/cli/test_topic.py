"""`headwater topic` on a real broker: what is written is read again, by offset, by time, by table."""

from __future__ import annotations

import json
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from run_lab import Invoke

from headwater.broker import Broker
from headwater.testing.kafka import Kafka, Record
from headwater.testing.registry import SchemaRegistry

DDL = """\
CREATE TABLE users (id BIGINT, name STRING, age INT, PRIMARY KEY (id) NOT ENFORCED) WITH (
  'connector' = 'upsert-kafka', 'topic' = '${users}', 'properties.bootstrap.servers' = '${kafka}',
  'key.format' = 'raw', 'value.format' = 'avro', 'value.fields-include' = 'EXCEPT_KEY');
CREATE TABLE screen (id BIGINT) WITH ('connector' = 'print');
"""


@pytest.fixture
def topic(broker: Broker, unique_topic: Callable[[str], str]) -> str:
    name = unique_topic("messages")
    kafka = Kafka(broker.bootstrap_servers)
    kafka.create({name: 2})
    kafka.produce(
        Record(name, f"k{n}".encode(), None if n == 3 else f"v{n}".encode(), n % 2, 1_700_000_000_000 + n * 60_000)
        for n in range(6)
    )
    return name


def read(invoke: Invoke, broker: Broker, *arguments: str) -> list[str]:
    said = invoke("topic", "read", *arguments, "--broker", broker.bootstrap_servers)
    assert said.code == 0, said.err
    return said.out.splitlines()


def test_what_is_read(invoke: Invoke, broker: Broker, topic: str) -> None:
    everything = read(invoke, broker, topic)
    assert len(everything) == 6
    assert "1:1         2023-11-14 22:16:20  k3 => <tombstone>" in everything
    assert [line[-8:] for line in read(invoke, broker, topic, "--tail", "2")] == ["k4 => v4", "k5 => v5"]
    assert [line[:3] for line in read(invoke, broker, topic, "--partition", "1", "--from", "1")] == ["1:1", "1:2"]
    assert sorted(line[:3] for line in read(invoke, broker, topic, "--to", "1")) == ["0:0", "1:0"]
    by_time = read(invoke, broker, topic, "--from", "2023-11-14T22:16:20Z", "--to", "2023-11-14 22:17:20")
    assert [line[-14:] for line in by_time] == ["=> <tombstone>"]
    assert read(invoke, broker, topic, "--from", "1 h") == []
    (first,) = read(invoke, broker, topic, "--json", "--to", "1", "--partition", "0")
    assert json.loads(first) == {
        "partition": 0,
        "offset": 0,
        "timestamp": 1_700_000_000_000,
        "key": "k0",
        "value": "v0",
    }


def test_what_is_written_is_read_by_the_table(
    invoke: Invoke, broker: Broker, unique_topic: Callable[[str], str], tmp_path: Path
) -> None:
    name = unique_topic("users")
    (tmp_path / "headwater.toml").write_text(
        f'[connection]\n"properties.bootstrap.servers" = "{broker.bootstrap_servers}"\n'
        f'[variables]\nusers = "{name}"\nkafka = "{broker.bootstrap_servers}"\n',
        encoding="utf-8",
    )
    (tmp_path / "tables.sql").write_text(DDL, encoding="utf-8")
    assert invoke("topic", "create", name, "--compacted").out == f"Created {name}.\n"
    by_table = ("users", "--ddl", "tables.sql")
    said = invoke("topic", "write", *by_table, "--separator", ":", stdin='7:{"name": "ann", "age": 30}\n8:{}\n')
    assert (said.code, said.err) == (0, f"Wrote 2 messages to {name}.\n")
    invoke("topic", "write", *by_table, "--key", "8", "--tombstone", "--header", "why=gone")
    lines = invoke("topic", "read", *by_table).out.splitlines()
    assert [line.split("  ")[-1] for line in lines] == [
        '7 => {"name": "ann", "age": 30}',
        '8 => {"name": null, "age": null}',
        "8 => <tombstone>",
    ]
    assert "x'0000000000000007' => " in invoke("topic", "read", name).out  # without the table, bytes
    assert json.loads(invoke("topic", "read", name, "--json").out.splitlines()[-1])["headers"] == {"why": "gone"}
    assert "7.5" in invoke("topic", "write", *by_table, "--key", "7.5", "{}").err
    assert "cleanup.policy  compact" in invoke("topic", "describe", "users", "--ddl", "tables.sql").out
    assert "has no topic" in invoke("topic", "read", "screen", "--ddl", "tables.sql").err


REGISTERED = """\
CREATE TABLE items (id BIGINT NOT NULL, name STRING, price DECIMAL(9, 2)) WITH (
  'connector' = 'kafka', 'topic' = '{topic}', 'properties.bootstrap.servers' = '{broker}', 'key.fields' = 'id',
  'key.format' = '{format}', 'value.format' = '{format}', 'key.{format}.url' = '{url}', 'value.{format}.url' = '{url}',
  'value.fields-include' = 'EXCEPT_KEY');
"""


def test_messages_with_a_registered_schema(
    invoke: Invoke,
    broker: Broker,
    schema_registry: SchemaRegistry,
    unique_topic: Callable[[str], str],
    tmp_path: Path,
) -> None:
    """Written by table, read by the table, by the address of the registry alone, and by Confluent's own client."""
    name, at, url = unique_topic("items"), ("--broker", broker.bootstrap_servers), schema_registry.url
    ddl = REGISTERED.format(topic=name, broker=broker.bootstrap_servers, url=url, format="avro-confluent")
    (tmp_path / "tables.sql").write_text(ddl, encoding="utf-8")
    invoke("topic", "create", name, *at)
    by_table = ("items", "--ddl", "tables.sql")
    said = invoke("topic", "write", *by_table, "--key", '{"id": 7}', '{"name": "axe", "price": "9.50"}')
    assert said.code == 0, said.err
    shown = '{"id": 7} => {"name": "axe", "price": "9.50"}'
    assert invoke("topic", "read", *by_table).out.endswith(f"{shown}\n")
    by_format = ("--registry", url, "--key-format", "avro-confluent", "--format", "avro-confluent")
    assert read(invoke, broker, name, *by_format)[0].endswith(shown)
    assert read(invoke, broker, name, "--registry", url)[0].endswith('0e\' => {"name": "axe", "price": "9.50"}')
    [message] = Kafka(broker.bootstrap_servers).read(name, {}, {0: 1})
    context = SerializationContext(name, MessageField.VALUE)
    value = AvroDeserializer(SchemaRegistryClient({"url": url}))(message.value, context)
    assert value == {"name": "axe", "price": Decimal("9.50")}
    refused = invoke("topic", "write", *by_table, "--key", '{"id": 7}', '{"price": "9.505"}')
    assert (refused.code, "is not a value of decimal(9, 2)" in refused.err) == (1, True), refused.err


def test_changes_of_debezium_with_a_registered_schema(
    invoke: Invoke, broker: Broker, schema_registry: SchemaRegistry, unique_topic: Callable[[str], str]
) -> None:
    name, url = unique_topic("changes"), schema_registry.url
    row = {"type": "record", "name": "Value", "fields": [{"name": "id", "type": "int"}]}
    fields = [{"name": "before", "type": ["null", row]}, {"name": "after", "type": ["null", "Value"]}]
    envelope = {"type": "record", "name": "Envelope", "fields": [*fields, {"name": "op", "type": "string"}]}
    encode = AvroSerializer(SchemaRegistryClient({"url": url}), json.dumps(envelope))
    change = {"before": {"id": 1}, "after": None, "op": "d"}
    kafka = Kafka(broker.bootstrap_servers)
    kafka.create({name: 1})
    kafka.produce([Record(name, b"k", encode(change, SerializationContext(name, MessageField.VALUE)), 0, 1)])
    by_format = ("--registry", url, "--format", "debezium-avro-confluent")
    [line] = read(invoke, broker, name, *by_format)
    assert json.loads(line.split(" => ")[1]) == change
    gone = invoke("topic", "read", name, "--registry", "http://127.0.0.1:9", "--broker", broker.bootstrap_servers)
    assert (gone.code, "cannot be reached" in gone.err) == (1, True), gone.err


def test_list_describe_and_delete(invoke: Invoke, broker: Broker, topic: str) -> None:
    at = ("--broker", broker.bootstrap_servers)
    listed = {line.split()[0]: line.split()[1:] for line in invoke("topic", "list", *at).out.splitlines()}
    assert listed["topic"] == ["partitions", "messages", "size", "(estimate)"]
    assert listed[topic] == ["2", "6", "~", "22", "B"]  # six keys and five values of two bytes
    described = invoke("topic", "describe", topic, *at).out.splitlines()
    assert described[1].split() == ["0", "1", "1", "of", "1", "in", "sync", "0", "3", "3"]
    assert "needs --yes" in invoke("topic", "delete", topic, *at).err
    assert invoke("topic", "delete", topic, "--yes", *at).out == f"Deleted {topic}.\n"
    gone = invoke("topic", "read", topic, *at)
    assert (gone.code, f"There is no topic '{topic}'." in gone.err) == (1, True)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("read", "t", "--from", "yesterday"), "is not a place in a topic"),
        (("read", "t", "--partition", "9"), "has no partition 9"),
        (("read", "t", "--format", "avro-confluent"), "--registry URL"),
        (("read", "t", "--format", "avro"), "--ddl SCRIPT"),
        (("read", "t", "--format", "jsno"), "Did you mean 'json'?"),
        (("read", "t", "--registry", "nowhere"), "is not an address"),
        (("write", "t", "x", "--tombstone", "--key", "k"), "no value"),
        (("write", "t", "x", "--separator", ":"), "There is no ':' in 'x'"),
        (("write", "t", "x", "--partition", "9"), "has no partition 9"),
        (("write", "t", "x" * 2_000_000), "Not all messages were written.\nUnable to produce message"),
    ],
)
def test_what_is_wrong_is_said(
    invoke: Invoke, broker: Broker, topic: str, arguments: tuple[str, ...], words: str
) -> None:
    given = [topic if word == "t" else word for word in arguments]
    said = invoke("topic", *given, "--broker", broker.bootstrap_servers)
    assert (said.code, words in said.err) == (1, True), said.err


def test_a_compacted_topic_takes_no_message_without_a_key(
    invoke: Invoke, broker: Broker, unique_topic: Callable[[str], str]
) -> None:
    name = unique_topic("compacted")
    Kafka(broker.bootstrap_servers).create({name: 1}, compacted=True)
    said = invoke("topic", "write", name, "x", "--broker", broker.bootstrap_servers)
    assert (said.code, "Hint: A topic that is compacted" in said.err) == (1, True), said.err


@pytest.mark.parametrize(
    ("servers", "reason"), [("127.0.0.1:1", "Connection refused"), ("nowhere.invalid:9092", "Failed to resolve")]
)
def test_a_broker_that_is_away(invoke: Invoke, servers: str, reason: str) -> None:
    said = invoke("topic", "list", "--broker", servers)
    assert said.code == 1
    fact, detail, hint = said.err.splitlines()
    assert fact == f"Error: The broker at {servers} does not answer."
    assert reason in detail
    assert hint.startswith("Hint: ")
