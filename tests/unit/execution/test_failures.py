"""What exceptions of Spark and Kafka become: who is refused is told apart from who has to wait, and secrets are not."""

from __future__ import annotations

import logging

import pytest
from pyspark.errors import PythonException
from pyspark.logger import PySparkLogger

from headwater.connectors.kafka.clients.broker_errors import UnknownTopicError, client_error
from headwater.errors import (
    DataLossError,
    HeadwaterError,
    JobError,
    KafkaNotReadyError,
    KafkaRefusedError,
    KafkaUnavailableError,
    SetupError,
)
from headwater.execution import spark
from headwater.execution.failures import is_transient, translate, without_advice
from headwater.execution.spark import check_master
from headwater.options.secrets import hidden_in

JAAS = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="ann" password="pa\\"ss word";'
OPTIONS = {
    "properties.sasl.jaas.config": JAAS,
    "properties.ssl.key.password": "key-word",
    "properties.client.id": "ann-client",
}


def translated(text: str) -> HeadwaterError:
    return translate(RuntimeError(text), "j", [OPTIONS])


@pytest.mark.parametrize(
    ("text", "kind", "fact"),
    [
        ("org.apache.kafka.common.errors.SaslAuthenticationException: no", KafkaRefusedError, "refused the login"),
        ("…TimeoutException: x\nCaused by: SslAuthenticationException: y", KafkaRefusedError, "TLS handshake"),
        (
            "TopicAuthorizationException: Not authorized to access topics: [x]",
            KafkaRefusedError,
            "not allowed to use a",
        ),
        ("UnknownTopicOrPartitionException: This server does not", KafkaRefusedError, "does not exist (any more)"),
        ("TimeoutException: Topic x not present in metadata after 60000 ms.", KafkaUnavailableError, "does not answer"),
        ("KafkaException: wrapped\nCaused by: NetworkException: gone", KafkaUnavailableError, "does not answer"),
        (
            "headwater.errors.KafkaUnavailableError: The broker does not answer.",
            KafkaUnavailableError,
            "does not answer",
        ),
        ("headwater.errors.KafkaRefusedError: The broker refused it.", KafkaRefusedError, "The broker refused it."),
        ("headwater.errors.JobError: A batch is odd.", JobError, "A batch is odd."),
        ("OffsetOutOfRangeException: Fetch position is out of range", DataLossError, "needs messages"),
        ("something else", JobError, "failed while computing a batch"),
    ],
)
def test_what_a_failure_is(text: str, kind: type[HeadwaterError], fact: str) -> None:
    error = translated(text)
    assert type(error) is kind
    assert fact in error.fact
    assert is_transient(error) is (kind is KafkaUnavailableError)


def test_what_was_raised_in_a_worker_is_named() -> None:
    trace = 'Traceback (most recent call last):\n  File "worker.py", line 7, in step\n    rows[9]\n    ~~~~^^^\n'
    spark = "An exception was thrown from the Python worker. Please see the stack trace below.\n"
    error = translate(PythonException(f"\n  {spark}{trace}IndexError: list index out of range\n"), "totals")
    assert error.detail == "IndexError: list index out of range"


def test_an_error_of_a_worker_keeps_its_parts() -> None:
    raised = KafkaUnavailableError("The broker does not answer.", detail="_TRANSPORT: gone\nbefore", hint="Check it.")
    found = translated(f"Traceback:\n  File x\nheadwater.errors.KafkaUnavailableError: {raised}\n\n\tat org.apache")
    assert (found.fact, found.detail, found.hint) == (raised.fact, raised.detail, raised.hint)
    assert is_transient(found)
    odd = translated("headwater.errors.JobError: A batch is odd.\nHint: Look.")
    assert (odd.fact, odd.hint) == ("Job 'j' failed: A batch is odd.", "Look.")


def test_secrets_are_taken_out_of_what_clients_say() -> None:
    said = f"bad config {JAAS} with 'key-word' of ann-client, and pa\\\"ss word alone"
    for text in (str(translated(said)), str(translated(f"TimeoutException: {said}")), hidden_in(said, OPTIONS)):
        assert "key-word" not in text
        assert "ss word" not in text
        assert "ann-client" in text


def test_any_word_of_a_malformed_login_may_be_the_password() -> None:
    line = {"properties.sasl.jaas.config": "PlainLoginModule ann-s3cret required username=orders password 'other one'"}
    said = "Invalid control flag 'ann-s3cret' or other one, required by PlainLoginModule for orders"
    assert hidden_in(said, line) == "Invalid control flag '******' or ******, required by PlainLoginModule for orders"


@pytest.mark.parametrize(
    ("chain", "kind", "texts"),
    [
        (
            [
                ("ExecutionException", "e"),
                ("SslAuthenticationException", "failed"),
                ("CertificateException", "expired"),
            ],
            KafkaRefusedError,
            ["TLS handshake with 'h:1'", "CertificateException: expired", "'properties.ssl.truststore.location'"],
        ),
        (
            [("ExecutionException", "e"), ("TimeoutException", "late")],
            KafkaUnavailableError,
            ["The host name in 'h:1' is not known"],
        ),
        (
            [("TimeoutException", "late"), ("SaslAuthenticationException", "no")],
            KafkaRefusedError,
            ["refused the login", "'properties.sasl.jaas.config'"],
        ),
        ([("UnknownTopicOrPartitionException", "x")], UnknownTopicError, ["Topic 't' does not exist at 'h:1'"]),
        ([("NotLeaderOrFollowerException", "x")], KafkaNotReadyError, ["The broker at 'h:1' is not ready"]),
        ([("StrangeException", "odd")], KafkaUnavailableError, ["about 't'", "StrangeException: odd"]),
    ],
)
def test_what_the_client_means(chain: list[tuple[str, str]], kind: type[HeadwaterError], texts: list[str]) -> None:
    error = client_error(chain, "t", "h:1")
    assert type(error) is kind
    for text in texts:
        assert text in str(error)


def test_an_unknown_host_is_called_so() -> None:
    """To the client of the JVM it is a wrong setting, to librdkafka a broker that does not answer."""
    for name in ("ConfigException", "DisconnectException"):
        error = client_error(
            [(name, "No resolvable bootstrap urls given in bootstrap.servers")], "t", "nosuch.invalid:1"
        )
        assert error.fact == "The host name in 'nosuch.invalid:1' is not known."
        assert "certificates" not in error.hint
    known = client_error([("DisconnectException", "")], "t", "127.0.0.1:1")
    assert known.fact == "No Kafka broker answers at '127.0.0.1:1'."


def test_a_missing_topic_names_its_option_and_the_nearest_one() -> None:
    error = UnknownTopicError.of("ordres", "h:1", there=["orders", "totals"])
    assert error.hint == "Did you mean 'orders'? Create it, or correct the table's 'topic' option."
    letters = UnknownTopicError.of("bad", "h:1", option="scan.dead-letter.topic")
    assert letters.hint == "Create it, or correct the table's 'scan.dead-letter.topic' option."


@pytest.mark.parametrize("master", ["lcal", "local[x]", "host:7077", ""])
def test_a_wrong_master_is_refused_before_spark_starts(master: str) -> None:
    with pytest.raises(SetupError, match="is not the address of a Spark master"):
        check_master(master)


@pytest.mark.parametrize(
    "master", [None, "local", "local[4]", "local[*]", "local[2,3]", "spark://h:7077", "yarn", "k8s://h"]
)
def test_masters(master: str | None) -> None:
    check_master(master)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (
            (
                "Division by zero. Use `try_divide` to tolerate divisor being 0 and return NULL instead. If necessary "
                'set "spark.sql.ansi.enabled" to "false" to bypass this error.'
            ),
            "Division by zero.",
        ),
        ("long overflow. Use 'try_add' to tolerate overflow and return NULL instead.", "long overflow."),
        ("Malformed. Use `try_cast` instead.", "Malformed. Use `try_cast` instead."),
    ],
)
def test_advice_of_spark_that_scripts_cannot_follow(text: str, shown: str) -> None:
    assert without_advice(text) == shown


def test_pyspark_writes_no_traces_of_its_own() -> None:
    spark._hush_query_errors()
    assert not PySparkLogger.getLogger("SQLQueryContextLogger").isEnabledFor(logging.ERROR)
