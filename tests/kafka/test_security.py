"""A broker with TLS, logins and permissions: what works, what is refused at once, and that no secret is ever shown."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from confluent_kafka.admin import AclOperation, ResourceType

from headwater.connectors.kafka.read.fetch import client_settings
from headwater.errors import HeadwaterError, KafkaRefusedError, KafkaUnavailableError
from headwater.session import connect
from headwater.testing import CaseRunner
from headwater.testing.kafka import Kafka, Record
from headwater.testing.secure import STORE_PASSWORD, SecureBroker, start_secure_broker
from headwater.testing.spark import QUICK_ARGUMENTS

PASSWORD = "s3cret-of-Ann"
PLAIN_PASSWORD = "s3cret-of-Bob"
WRONG = "s3cret-of-Nobody"
SECRETS = (PASSWORD, PLAIN_PASSWORD, WRONG, STORE_PASSWORD)


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureBroker]:
    """Ann (SCRAM) and bob (PLAIN) may read 'in' and write what starts with 'out'; nobody may use 'denied'."""
    broker = start_secure_broker(tmp_path_factory.mktemp("secure"), "bob", PLAIN_PASSWORD)
    broker.add_user("ann", PASSWORD)
    for user in ("ann", "bob"):
        broker.allow(user, ResourceType.TOPIC, ["in"], AclOperation.READ, AclOperation.DESCRIBE)
        out = (AclOperation.WRITE, AclOperation.DESCRIBE, AclOperation.READ)
        broker.allow(user, ResourceType.TOPIC, ["out"], *out)
        broker.allow(user, ResourceType.GROUP, ["readers", "once"], AclOperation.READ)
        broker.allow(user, ResourceType.TRANSACTIONAL_ID, ["once"], AclOperation.WRITE, AclOperation.DESCRIBE)
    kafka = Kafka(broker.broker.bootstrap_servers)
    kafka.create(
        {
            "in": 2,
            "out-scram": 1,
            "out-plain": 1,
            "out-once": 1,
            "out-old": 1,
            "out-shown": 1,
            "out-shown-once": 1,
            "denied": 1,
        }
    )
    kafka.produce(Record("in", None, b'{"who":"%s","n":%d}' % (b"xyz"[n % 3 : n % 3 + 1], n)) for n in range(30))
    kafka.close()
    yield broker
    broker.stop()


def script(sink: str, properties: Mapping[str, str], more: str = "", source: str = "in") -> str:
    """Count and sum by key, from one topic to another, as far as the input goes."""
    given = "".join(f", 'properties.{key}' = '{value}'" for key, value in properties.items())
    return f"""
        CREATE TABLE clicks (who STRING, n BIGINT) WITH ('connector' = 'kafka', 'topic' = '{source}', 'format' = 'json',
          'scan.startup.mode' = 'earliest-offset', 'scan.bounded.mode' = 'latest-offset',
          'properties.group.id' = 'readers' {given});
        CREATE TABLE totals (who STRING, n BIGINT, total BIGINT, PRIMARY KEY (who) NOT ENFORCED) WITH (
          'connector' = 'upsert-kafka', 'topic' = '{sink}',
          'key.format' = 'raw', 'value.format' = 'json' {given} {more});
        INSERT INTO totals SELECT who, COUNT(*), SUM(n) FROM clicks GROUP BY who;"""


def totals(secure: SecureBroker, topic: str) -> list[bytes | None]:
    kafka = Kafka(secure.broker.bootstrap_servers)
    ends = {p: end for (_, p), end in kafka.ends({topic: 1}).items()}
    found = kafka.read(topic, {}, ends)
    kafka.close()
    return sorted(record.value for record in found)  # type: ignore[type-var]


EXPECTED = [b'{"who":"%s","n":10,"total":%d}' % (who, total) for who, total in ((b"x", 135), (b"y", 145), (b"z", 155))]


@pytest.mark.parametrize(
    ("sink", "user", "password", "mechanism", "more"),
    [
        ("out-scram", "ann", PASSWORD, "SCRAM-SHA-256", ""),
        ("out-plain", "bob", PLAIN_PASSWORD, "PLAIN", ""),
        (
            "out-once",
            "ann",
            PASSWORD,
            "SCRAM-SHA-256",
            ", 'sink.delivery-guarantee' = 'exactly-once', 'sink.transactional-id-prefix' = 'once'",
        ),
    ],
)
def test_the_right_password_works_from_end_to_end(
    secure: SecureBroker,
    case_runner: CaseRunner,
    sink: str,
    user: str,
    password: str,
    mechanism: str,
    more: str,
) -> None:
    properties = secure.properties(user, password, mechanism)
    if mechanism == "PLAIN":
        del properties["ssl.truststore.password"]
        properties |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(secure.trust_pem)}
    assert client_settings(properties) is not None
    session = connect(case_runner.spark())
    session.sql(script(sink, properties, more))
    session.wait()
    assert totals(secure, sink) == EXPECTED
    assert session.jobs[0].progress().rows_out == len(EXPECTED)
    assert [w for w in session.jobs[0].progress().warnings if "not compacted" not in w] == []
    session.close()


def refusal(case_runner: CaseRunner, text: str) -> HeadwaterError:
    session = connect(case_runner.spark())
    try:
        session.sql(text)
        with pytest.raises(KafkaUnavailableError) as raised:
            session.wait()
    finally:
        session.close()
    assert not [secret for secret in SECRETS if secret in str(raised.value)]
    return raised.value


def test_refusals_are_quick_and_name_the_option_to_look_at(secure: SecureBroker, case_runner: CaseRunner) -> None:
    right = secure.properties("ann", PASSWORD)
    for properties, fact, option in (
        (secure.properties("ann", WRONG), "refused the login", "'properties.sasl.jaas.config'"),
        (secure.properties("bob", WRONG, "PLAIN"), "refused the login", "'properties.sasl.jaas.config'"),
        ({**right, "sasl.mechanism": "SCRAM-SHA-512"}, "", "'properties.sasl.mechanism'"),
        (
            {**right, "ssl.truststore.location": str(secure.other_trust)},
            "TLS handshake",
            "'properties.ssl.truststore.location'",
        ),
        ({**right, "bootstrap.servers": secure.expired_servers}, "TLS handshake", "certificate is valid"),
        ({**right, "ssl.truststore.password": WRONG}, "refused the table's properties", "'properties.ssl.truststore"),
        ({**right, "ssl.truststore.location": "/no/such/file"}, "refused the table's properties", "/no/such/file"),
        ({**right, "sasl.jaas.config": f"nonsense {WRONG}"}, "refused the table's properties", "'properties.*'"),
    ):
        error = refusal(case_runner, script("out-scram", properties))
        assert isinstance(error, KafkaRefusedError), error
        assert fact in error.fact
        assert option in str(error)


def test_old_tables_log_in_too(secure: SecureBroker, case_runner: CaseRunner) -> None:
    """The manuals they come from forbade SASL_SSL. What is wrong is said in their own keys."""

    def old(password: str) -> str:
        properties = secure.properties("ann", password).items()
        given = "".join(f", 'connector.properties.{key}' = '{value}'" for key, value in properties)
        return f"""
            create table cars (car_id STRING, car_speed INT, primary key (car_id) not enforced) with (
              'connector.type' = 'upsert-kafka', 'connector.topic' = 'out-old', 'format.type' = 'csv' {given});
            insert into cars values ('c1', 90);"""

    session = connect(case_runner.spark())
    session.sql(old(PASSWORD))
    session.wait()
    session.close()
    assert totals(secure, "out-old") == [b"c1,90"]
    assert "'connector.properties.sasl.jaas.config'" in str(refusal(case_runner, old(WRONG)))


def test_what_is_not_permitted_is_said(secure: SecureBroker, case_runner: CaseRunner) -> None:
    right = secure.properties("ann", PASSWORD)
    reading = refusal(case_runner, script("out-scram", right, source="denied"))
    assert "Not allowed to use topic 'denied'" in reading.fact
    writing = refusal(case_runner, script("denied", right))
    assert "denied" in str(writing)
    assert "(ACL)" in writing.hint
    grouped = (
        script("out-scram", right).replace("'earliest-offset'", "'group-offsets'").replace("'readers'", "'others'")
    )
    assert "Not allowed to use group 'others'" in refusal(case_runner, grouped).fact


def test_a_client_without_tls_is_told_to_look_at_the_protocol(secure: SecureBroker, case_runner: CaseRunner) -> None:
    error = refusal(case_runner, script("out-scram", {"bootstrap.servers": secure.servers}))
    assert "'properties.security.protocol'" in error.hint


def test_no_secret_is_shown_anywhere(secure: SecureBroker, tmp_path: Path) -> None:
    """Neither in logs at their most talkative, nor in EXPLAIN, nor in what Spark's web page shows, nor on disk."""
    events, state, program = tmp_path / "events", tmp_path / "state", tmp_path / "shown.sql"
    events.mkdir()
    text = script("out-shown", secure.properties("ann", PASSWORD))
    once = "'topic' = 'out-shown-once', 'sink.delivery-guarantee' = 'exactly-once'"
    once += ", 'sink.transactional-id-prefix' = 'once'"
    insert = text[text.index("INSERT") :]
    text += f"\nCREATE TABLE once WITH ({once}) LIKE totals (OVERWRITING OPTIONS);\n{insert.replace('totals', 'once')}"
    program.write_text(f"{text}\nSHOW CREATE TABLE totals;\nEXPLAIN {insert}", encoding="utf-8")
    command = [sys.executable, "-c", "from headwater.cli import main; main()", "run", str(program), "--checkpoint"]
    command += [str(state), "--master", "local[2]", "--conf", "spark.eventLog.enabled=true"]
    command += ["--conf", f"spark.eventLog.dir={events.as_uri()}", "--conf", "spark.eventLog.compress=false"]
    command += QUICK_ARGUMENTS
    talkative = {**os.environ, "HEADWATER_DEBUG": "1", "HEADWATER_SPARK_LOG": "INFO"}
    done = subprocess.run(command, env=talkative, capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert totals(secure, "out-shown") == totals(secure, "out-shown-once") == EXPECTED
    written = [done.stdout, done.stderr]
    written += [file.read_bytes().decode(errors="replace") for file in tmp_path.rglob("*") if file.is_file()]
    shown = [part for part in written if part != program.read_text(encoding="utf-8")]
    assert "'properties.sasl.jaas.config' = '******'" in done.stdout
    assert any("SparkListenerJobStart" in part for part in shown), "it has what the web page shows"
    for secret in (PASSWORD, STORE_PASSWORD):
        assert [part[max(0, (at := part.find(secret)) - 200) : at + 50] for part in shown if secret in part] == []
