"""Jobs whose messages have their schemas in a registry: a real one, behind a door that asks who is there."""

from __future__ import annotations

import base64
import json
import ssl
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from kafka_lab import Lab

from headwater.errors import BadRecordError, RegistryRefusedError, RegistryUnavailableError, ValidationError
from headwater.session import Session
from headwater.testing.kafka import Record
from headwater.testing.registry import Door, SchemaRegistry

EARLIEST = {"scan__startup__mode": "earliest-offset"}
PASSWORD, TOKEN = "s3cret-of-Ann", "t0ken-of-Ann"
BASIC = f"Basic {base64.b64encode(f'ann:{PASSWORD}'.encode()).decode()}"


def record(*fields: tuple[str, Any], name: str = "shop.Item") -> str:
    members = [{"name": label, "type": kind} for label, kind in fields]
    return json.dumps({"type": "record", "name": name, "fields": members})


class Topic:
    """A topic, and Confluent's own client for it."""

    def __init__(self, lab: Lab, registry: SchemaRegistry, stem: str) -> None:
        self.lab, self.name = lab, lab.topic(stem)
        self.client = SchemaRegistryClient({"url": registry.url})

    def encoded(self, schema: str, values: Sequence[Any], subject: str = "") -> list[bytes]:
        """With the schema registered under the topic's subject, or another one."""
        elsewhere = {"subject.name.strategy": lambda *_: subject} if subject else {}
        write = AvroSerializer(self.client, Schema(schema, "AVRO"), conf=elsewhere)
        return [write(value, SerializationContext(self.name, MessageField.VALUE)) for value in values]

    def produce(self, schema: str, *values: Any) -> None:
        self.send(*self.encoded(schema, values))

    def send(self, *messages: bytes) -> None:
        self.lab.kafka.produce(Record(self.name, None, message, 0) for message in messages)

    def records(self) -> list[Record]:
        ends = {p: end for (_, p), end in self.lab.kafka.ends({self.name: 1}).items()}
        return list(self.lab.kafka.read(self.name, {}, ends))

    def decoded(self, side: str = "value") -> list[Any]:
        """All messages, as another program reads them."""
        read = AvroDeserializer(self.client)
        field = MessageField.VALUE if side == "value" else MessageField.KEY
        payloads = [r.value if side == "value" else r.key for r in self.records()]
        return [payload and read(payload, SerializationContext(self.name, field)) for payload in payloads]


@pytest.fixture
def topic(lab: Lab, schema_registry: SchemaRegistry) -> Callable[[str], Topic]:
    return lambda stem: Topic(lab, schema_registry, stem)


def avro(url: str, **more: str) -> dict[str, str]:
    return {"format": "avro-confluent", "avro_confluent__url": url, **more}


def copy_job(lab: Lab, columns: str, source: dict[str, str], sink: dict[str, str], checkpoint: str = "") -> Session:
    session = lab.session(checkpoint)
    text = lab.ddl("t", columns, **EARLIEST, **source) + lab.ddl("s", columns, **sink)
    session.sql(f"{text} INSERT INTO s SELECT * FROM t;")
    return session


def test_a_schema_evolves_while_a_job_runs(
    lab: Lab, schema_registry: SchemaRegistry, topic: Callable[[str], Topic], until: Callable[..., None]
) -> None:
    """Old and new versions, one that nobody has announced under the subject, and a registry that goes away."""
    source, sink = topic("in"), topic("out")
    source.produce(record(("id", "int"), ("name", "string")), {"id": 1, "name": "axe"})
    source.produce(record(("name", ["null", "string"]), ("id", "long")), {"id": 2, "name": None})
    with Door(schema_registry) as door:
        session = copy_job(
            lab, "id BIGINT NOT NULL, name STRING", avro(door.url, topic=source.name), avro(door.url, topic=sink.name)
        )
        [job] = session.jobs
        until(lambda: len(sink.records()) == 2, job)
        door.away = True
        source.produce(record(("id", "int"), ("name", "string")), {"id": 3, "name": "cup"})
        until(lambda: len(sink.records()) == 3, job)
        stranger = record(("id", "long"), ("name", "string"), ("more", "int"), name="other.Item")
        source.send(*source.encoded(stranger, [{"id": 4, "name": "dog", "more": 1}], f"{source.name}-other"))
        until(lambda: "Trying again" in job.progress().note, job)
        door.away = False
        until(lambda: len(sink.records()) == 4, job)
        source.produce(record(("id", "long"), ("colour", "string")), {"id": 5, "colour": "red"})
        until(lambda: len(sink.records()) == 5, job)
    assert sink.decoded() == [
        {"id": 1, "name": "axe"},
        {"id": 2, "name": None},
        {"id": 3, "name": "cup"},
        {"id": 4, "name": "dog"},
        {"id": 5, "name": None},
    ]


def test_a_large_batch(lab: Lab, schema_registry: SchemaRegistry, topic: Callable[[str], Topic]) -> None:
    """Half of it with a schema that is registered elsewhere, so that it is computed twice; still exactly once."""
    source, sink = topic("many"), topic("counts")
    rows = [{"id": n, "name": f"n{n % 7}"} for n in range(6_000)]
    source.send(*source.encoded(record(("id", "int"), ("name", "string")), rows))
    source.send(*source.encoded(record(("name", "string"), ("id", "long")), rows, f"{source.name}-other"))
    session = lab.session()
    counted = {"connector": "upsert-kafka", "topic": sink.name, "sink__delivery_guarantee": "exactly-once"}
    bounded = {**EARLIEST, "scan__bounded__mode": "latest-offset", **avro(schema_registry.url, topic=source.name)}
    session.sql(
        lab.ddl("t", "id BIGINT NOT NULL, name STRING", **bounded)
        + lab.ddl("s", "name STRING, n BIGINT, ids BIGINT, PRIMARY KEY (name) NOT ENFORCED", **counted)
        + "INSERT INTO s SELECT name, COUNT(*), COUNT(DISTINCT id) FROM t GROUP BY name;"
    )
    assert session.jobs[0].wait(60)
    wanted = {f"n{k}": [2 * len(range(k, 6_000, 7)), len(range(k, 6_000, 7))] for k in range(7)}
    assert {row["name"]: [row["n"], row["ids"]] for row in lab.values(sink.name)} == wanted


def test_keys_upserts_and_unknown_ids(lab: Lab, schema_registry: SchemaRegistry, topic: Callable[[str], Topic]) -> None:
    """Both sides in the registry; a bad message is told with its place, or put aside."""
    sink, dead = topic("table"), topic("dead")
    url = schema_registry.url
    columns = "id BIGINT, name STRING, PRIMARY KEY (id) NOT ENFORCED"

    def ddl(name: str, more: str = "") -> str:
        return f"""CREATE TABLE {name} ({columns}) WITH ('connector' = 'upsert-kafka', 'topic' = '{sink.name}',
          'properties.bootstrap.servers' = '${{kafka}}', 'key.format' = 'avro-confluent',
          'key.avro-confluent.url' = '{url}', 'value.format' = 'avro-confluent',
          'value.avro-confluent.schema-registry.url' = '{url}' {more});
          CREATE TABLE nothing (id BIGINT) WITH ('connector' = 'blackhole');"""

    session = lab.session()
    session.sql(ddl("s") + "INSERT INTO s VALUES (1, 'axe'), (2, 'bow');")
    assert session.jobs[0].wait(60)
    assert sorted(sink.decoded("key"), key=str) == [{"id": 1}, {"id": 2}]
    assert sorted(map(str, sink.decoded())) == ["{'id': 1, 'name': 'axe'}", "{'id': 2, 'name': 'bow'}"]
    assert set(sink.client.get_subjects()) >= {f"{sink.name}-key", f"{sink.name}-value"}
    one = next(r for r in sink.records() if r.value is not None and b"axe" in r.value)
    lab.kafka.produce([Record(sink.name, one.key, None, 0), Record(sink.name, one.key, b"\0\0\x0f\x42\x40\x02", 0)])
    put_aside = f", 'scan.bad-records' = 'dead-letter', 'scan.dead-letter.topic' = '{dead.name}'"
    read = "INSERT INTO nothing SELECT id FROM t /*+ OPTIONS('scan.bounded.mode'='latest-offset') */;"
    session = lab.session()
    session.sql(ddl("t", put_aside) + read)
    assert [tuple(row) for row in session.table("t").collect()] == [(2, "bow")]
    assert session.jobs[0].wait(60)
    [letter] = dead.records()
    assert letter.value == b"\0\0\x0f\x42\x40\x02"
    assert b"no schema with the id 1000000" in dict(letter.headers)["headwater.error"]
    session = lab.session()
    session.sql(ddl("t") + read)
    with pytest.raises(BadRecordError, match=r"avro-confluent \(value\).*offset 3") as caught:
        session.wait()
    assert "no schema with the id 1000000" in caught.value.detail


def test_changes_of_a_database(
    lab: Lab, schema_registry: SchemaRegistry, topic: Callable[[str], Topic], until: Callable[..., None]
) -> None:
    """A history as Debezium tells it, aggregated, and written as changes again."""
    source, sink = topic("products"), topic("totals")
    row = json.loads(record(("id", "int"), ("name", "string"), ("price", "int"), name="shop.Value"))
    both = [("before", ["null", row]), ("after", ["null", "shop.Value"])]
    schema = record(*both, ("op", "string"), name="shop.Envelope")

    def told(op: str, before: Any, after: Any) -> dict[str, Any]:
        rows = [r and dict(zip(("id", "name", "price"), r, strict=True)) for r in (before, after)]
        return {"op": op, "before": rows[0], "after": rows[1]}

    history = [told("r", None, (1, "axe", 5)), told("c", None, (2, "axe", 7)), told("c", None, (3, "bow", 1))]
    source.produce(schema, *history)
    options = {"format": "debezium-avro-confluent", "debezium_avro_confluent__url": schema_registry.url}
    session = lab.session("changes")
    session.sql(
        lab.ddl("t", "id INT, name STRING, price INT", topic=source.name, **EARLIEST, **options)
        + lab.ddl("s", "name STRING, total BIGINT, PRIMARY KEY (name) NOT ENFORCED", topic=sink.name, **options)
        + "INSERT INTO s SELECT name, SUM(price) FROM t GROUP BY name;"
    )
    [job] = session.jobs
    until(lambda: len(sink.records()) == 2, job)
    source.produce(schema, told("u", (2, "axe", 7), (2, "bow", 9)), told("d", (3, "bow", 1), None))
    source.send(b"")
    until(lambda: len(sink.records()) == 6, job)
    rows = [(change["op"], change["before"] or change["after"]) for change in sink.decoded()]
    changes = [(op, row["name"], row["total"]) for op, row in rows]
    assert sorted(changes[:2]) == [("c", "axe", 12), ("c", "bow", 1)]
    assert sorted(changes[2:]) == [("c", "axe", 5), ("c", "bow", 9), ("d", "axe", 12), ("d", "bow", 1)]
    assert lab.table("name STRING, total BIGINT", topic=sink.name, **EARLIEST, **options) == [("axe", 5), ("bow", 9)]


def test_a_sink_says_what_is_wrong_before_anything_is_read(
    lab: Lab, schema_registry: SchemaRegistry, topic: Callable[[str], Topic]
) -> None:
    sink = topic("strict")
    url = schema_registry.url
    values = "INSERT INTO s VALUES (1);"

    def failing(error: type[Exception], **options: str) -> str:
        session = lab.session()
        session.sql(lab.ddl("s", "id INT", topic=sink.name, format="avro-confluent", **options) + values)
        with pytest.raises(error) as caught:
            session.wait()
        return str(caught.value)

    said = failing(ValidationError, avro_confluent__url=url, avro_confluent__auto_register="false")
    assert f"not registered under the subject '{sink.name}-value'" in said
    sink.client.register_schema(f"{sink.name}-value", Schema(record(("id", "string")), "AVRO"))
    sink.client.set_compatibility(subject_name=f"{sink.name}-value", level="FULL")
    assert "does not accept the schema" in failing(RegistryRefusedError, avro_confluent__url=url)
    assert "cannot be reached" in failing(RegistryUnavailableError, avro_confluent__url="http://127.0.0.1:1")
    assert sink.records() == []


def test_logins(lab: Lab, schema_registry: SchemaRegistry, topic: Callable[[str], Topic], capfd: Any) -> None:
    """Each way to log in, and that no secret is shown, neither in errors nor by SHOW CREATE TABLE."""
    sink = topic("login")

    def written(url: str, **options: str) -> None:
        session = lab.session(f"checkpoint-{len(list(lab.directory.iterdir()))}")
        given = {f"avro_confluent__{key}": value for key, value in options.items()}
        session.sql(lab.ddl("s", "id INT", topic=sink.name, **avro(url), **given) + "INSERT INTO s VALUES (1);")
        [shown] = session.sql("SHOW CREATE TABLE s;")
        assert not any(secret in str(shown.rows) for secret in (PASSWORD, TOKEN))
        session.wait()

    with Door(schema_registry, authorization=BASIC, forbidden="Bearer nobody") as door:
        written(door.url, basic_auth__user_info=f"ann:{PASSWORD}", basic_auth__credentials_source="USER_INFO")
        written(door.url.replace("://", f"://ann:{PASSWORD}@"), basic_auth__credentials_source="URL")
        written(door.url, properties__basic__auth__user__info=f"ann:{PASSWORD}")
        for options, said in [({}, "refused the login"), ({"bearer_auth__token": "nobody"}, "does not allow")]:
            with pytest.raises(RegistryRefusedError, match=said) as caught:
                written(door.url, **options)
            assert "who are you?" in str(caught.value) or "not for you" in str(caught.value)
        with pytest.raises(RegistryRefusedError, match="refused the login") as caught:
            written(door.url.replace("://", f"://bob:{PASSWORD}@"))
        assert PASSWORD not in str(caught.value)
    with Door(schema_registry, authorization=f"Bearer {TOKEN}") as door:
        written(door.url, bearer_auth__token=TOKEN, bearer_auth__credentials_source="STATIC_TOKEN")
    assert len(sink.records()) == 4
    kept = [path.read_bytes() for path in lab.directory.rglob("*") if path.is_file()]
    assert kept  # checkpoints
    shown = [*capfd.readouterr(), *(content.decode(errors="replace") for content in kept)]
    assert not any(secret in text for secret in (PASSWORD, TOKEN) for text in shown)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An authority, a server and a client that it has signed, as PEM and as PKCS12."""
    place = tmp_path_factory.mktemp("certificates")

    def openssl(*arguments: str) -> None:
        subprocess.run(["openssl", *arguments], cwd=place, check=True, capture_output=True)

    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
    openssl("req", "-x509", *key, "-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=authority")
    for name in ("server", "client"):
        more = ["-addext", "subjectAltName=IP:127.0.0.1", "-CA", "ca.pem", "-CAkey", "ca.key"]
        openssl("req", "-x509", *key, "-keyout", f"{name}.key", "-out", f"{name}.crt", "-subj", f"/CN={name}", *more)
        (place / f"{name}.pem").write_text((place / f"{name}.crt").read_text() + (place / f"{name}.key").read_text())
    openssl("pkcs12", "-export", "-in", "client.pem", "-out", "client.p12", "-passout", f"pass:{PASSWORD}")
    return place


def test_tls(lab: Lab, schema_registry: SchemaRegistry, topic: Callable[[str], Topic], certificates: Path) -> None:
    """The registry is checked against the trust store, and asks for this client's certificate."""
    sink = topic("tls")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(certificates / "ca.pem"))
    context.load_cert_chain(certificates / "server.pem")
    context.verify_mode = ssl.CERT_REQUIRED

    def written(url: str, **options: str) -> None:
        session = lab.session()
        files = {key: str(certificates / value) for key, value in options.items() if key.endswith("location")}
        given = {f"avro_confluent__ssl__{key}": value for key, value in {**options, **files}.items()}
        session.sql(lab.ddl("s", "id INT", topic=sink.name, **avro(url), **given) + "INSERT INTO s VALUES (1);")
        session.wait()

    trusted = {"truststore__location": "ca.pem"}
    with Door(schema_registry, tls=context) as door:
        written(door.url, **trusted, keystore__location="client.pem")
        written(door.url, **trusted, keystore__location="client.p12", keystore__password=PASSWORD)
        with pytest.raises(RegistryRefusedError, match="TLS handshake") as caught:
            written(door.url, keystore__location="client.pem")
        assert "self-signed certificate" in str(caught.value).lower() or "verify failed" in str(caught.value).lower()
        with pytest.raises(RegistryUnavailableError):
            written(door.url, **trusted)
        with pytest.raises(ValidationError, match=r"key store of 'ssl.keystore.location' cannot be opened") as refused:
            written(door.url, **trusted, keystore__location="client.p12", keystore__password="wrong")
        assert "wrong" not in str(refused.value)
    assert len(sink.records()) == 2
