"""Java's client properties as librdkafka's, and Java's key stores with them."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from confluent_kafka import Producer

from headwater.connectors.kafka.clients.settings import producer_settings, untranslatable
from headwater.errors import ValidationError

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
KEYTOOL = shutil.which("keytool")
PASSWORD = "secret-1"


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ({"bootstrap.servers": "a:1", "linger.ms": "7"}, {"bootstrap.servers": "a:1", "linger.ms": "7"}),
        ({"max.request.size": "9"}, {"message.max.bytes": "9"}),
        ({"delivery.timeout.ms": "9"}, {"message.timeout.ms": "9"}),
        ({"buffer.memory": "2048000"}, {"queue.buffering.max.kbytes": "2000"}),
        ({"send.buffer.bytes": "9"}, {"socket.send.buffer.bytes": "9"}),
        ({}, {"partitioner": "murmur2_random", "enable.idempotence": True}),
        ({"ssl.endpoint.identification.algorithm": ""}, {"ssl.endpoint.identification.algorithm": "none"}),
        ({"ssl.endpoint.identification.algorithm": "https"}, {"ssl.endpoint.identification.algorithm": "https"}),
        (
            {"sasl.jaas.config": f'{PLAIN} required username="ann" password="a\\"b;c";'},
            {"sasl.username": "ann", "sasl.password": 'a"b;c'},
        ),
        (
            {"sasl.jaas.config": f"{SCRAM} required\n  password=pw\n  username=bob;"},
            {"sasl.username": "bob", "sasl.password": "pw"},
        ),
        ({"ssl.truststore.certificates": "PEM text"}, {"ssl.ca.pem": "PEM text"}),
        (
            {"ssl.keystore.key": "K", "ssl.keystore.certificate.chain": "C", "ssl.key.password": "p"},
            {"ssl.key.pem": "K", "ssl.certificate.pem": "C", "ssl.key.password": "p"},
        ),
    ],
)
def test_what_properties_become(given: dict[str, str], wanted: dict[str, object]) -> None:
    settings = producer_settings(given)
    assert {key: settings[key] for key in wanted} == wanted


def test_what_is_a_readers_business_is_left_out() -> None:
    reader = {
        "group.id": "g",
        "auto.offset.reset": "earliest",
        "isolation.level": "read_committed",
        "fetch.min.bytes": "1",
    }
    assert producer_settings(reader) == producer_settings({})


def test_librdkafka_knows_all_of_them() -> None:
    given = {
        "bootstrap.servers": "127.0.0.1:1",
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "SCRAM-SHA-256",
        "sasl.jaas.config": f'{SCRAM} required username="ann" password="x";',
        "compression.type": "lz4",
        "acks": "all",
        "batch.size": "100000",
        "client.dns.lookup": "use_all_dns_ips",
        "client.id": "me",
        "client.rack": "r1",
        "connections.max.idle.ms": "10000",
        "delivery.timeout.ms": "10000",
        "max.in.flight.requests.per.connection": "5",
        "max.request.size": "2000000",
        "metadata.max.age.ms": "10000",
        "receive.buffer.bytes": "100000",
        "reconnect.backoff.max.ms": "1000",
        "reconnect.backoff.ms": "100",
        "request.timeout.ms": "1000",
        "retries": "10",
        "retry.backoff.max.ms": "100",
        "retry.backoff.ms": "10",
        "send.buffer.bytes": "100000",
        "socket.connection.setup.timeout.ms": "10000",
        "transaction.timeout.ms": "10000",
    }
    Producer({**producer_settings(given), "transactional.id": "t"})


@pytest.mark.parametrize(
    ("given", "key", "reason"),
    [
        ({"transactional.id": "x"}, "transactional.id", "use 'sink.transactional-id-prefix'"),
        ({"partitioner.class": "x.Y"}, "partitioner.class", "use 'sink.partitioner'"),
        ({"no.such.thing": "1"}, "no.such.thing", "it has no counterpart in librdkafka"),
        ({"sasl.jaas.config": "com.sun.Krb5LoginModule required;"}, "sasl.jaas.config", "only PlainLoginModule and"),
        ({"sasl.jaas.config": f"{PLAIN} required username=a;"}, "sasl.jaas.config", "only PlainLoginModule and"),
        (
            {"ssl.endpoint.identification.algorithm": "ldap"},
            "ssl.endpoint.identification.algorithm",
            "it must be 'https' or empty",
        ),
    ],
)
def test_what_cannot_be_said_is_refused(given: dict[str, str], key: str, reason: str) -> None:
    assert untranslatable(given)[key].startswith(reason)
    with pytest.raises(ValidationError, match=rf"'properties\.{key}' cannot be used by this sink"):
        producer_settings(given)


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A key and its certificate as JKS and as PKCS12."""
    if KEYTOOL is None:
        pytest.skip("there is no keytool on the path")
    place = tmp_path_factory.mktemp("stores")
    for kind in ("jks", "pkcs12"):
        command = [
            KEYTOOL,
            "-J-XX:TieredStopAtLevel=1",
            "-genkeypair",
            "-keystore",
            str(place / f"store.{kind}"),
            "-storetype",
            kind,
        ]
        command += ["-storepass", PASSWORD, "-keypass", PASSWORD, "-alias", "me", "-dname", "CN=me", "-keyalg", "EC"]
        subprocess.run(command, check=True, capture_output=True)
    return place


@pytest.mark.parametrize("kind", ["jks", "pkcs12"])
def test_certificates_of_java_stores_become_pem(stores: Path, kind: str) -> None:
    location = {"ssl.truststore.location": str(stores / f"store.{kind}"), "ssl.truststore.password": PASSWORD}
    pem = producer_settings({**location, "ssl.truststore.type": kind.upper()})["ssl.ca.pem"]
    assert pem.startswith("-----BEGIN CERTIFICATE-----\n")
    assert pem.count("-----END CERTIFICATE-----") == 1
    again = stores / "ca.pem"
    again.write_text(pem)
    read = producer_settings({"ssl.truststore.location": str(again), "ssl.truststore.type": "PEM"})
    assert read["ssl.ca.pem"] == pem


def test_a_wrong_store_password_is_told_without_showing_it(stores: Path) -> None:
    with pytest.raises(ValidationError) as raised:
        producer_settings(
            {"ssl.truststore.location": str(stores / "store.pkcs12"), "ssl.truststore.password": "wrong-1"}
        )
    assert "The trust store of 'properties.ssl.truststore.location' cannot be opened." in str(raised.value)
    assert "wrong-1" not in str(raised.value)


def test_keys_in_pkcs12_are_taken_and_in_jks_refused_with_the_command(stores: Path) -> None:
    own = {"ssl.keystore.location": str(stores / "store.pkcs12"), "ssl.keystore.password": PASSWORD}
    settings = producer_settings({**own, "security.protocol": "SSL", "bootstrap.servers": "127.0.0.1:1"})
    assert settings["ssl.keystore.location"] == str(stores / "store.pkcs12")
    Producer(settings)  # opens the store
    with pytest.raises(ValidationError) as raised:
        producer_settings({"ssl.keystore.location": str(stores / "store.jks"), "ssl.keystore.password": PASSWORD})
    assert f"keytool -importkeystore -srckeystore {stores / 'store.jks'}" in str(raised.value)
    assert PASSWORD not in str(raised.value)


def test_a_store_that_is_not_there_is_named() -> None:
    with pytest.raises(ValidationError, match=r"The file of 'properties\.ssl\.keystore\.location' cannot be read"):
        producer_settings({"ssl.keystore.location": "/no/such/store"})
