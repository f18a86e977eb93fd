"""Spark's and Kafka's exceptions → our errors: the fact a person needs first, never a stack trace.

Bad records announce themselves: a decoder raises inside Spark with a message that starts with one of the words of
`error_markers`, which travels through whatever wraps it.
"""

from __future__ import annotations

import json
import os
import re
import sys
import traceback
from collections.abc import Mapping, Sequence

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from headwater.connectors.kafka.clients.broker_errors import MEANINGS
from headwater.error_markers import BAD_RECORD, RAISED, UNKNOWN_SCHEMA
from headwater.errors import (
    BadRecordError,
    DamagedCheckpointError,
    DataLossError,
    HeadwaterError,
    IncompatibleCheckpointError,
    JobError,
    KafkaRefusedError,
    KafkaUnavailableError,
    RegistryRefusedError,
    RegistryUnavailableError,
    StaleCheckpointError,
    StorageRefusedError,
    StorageUnavailableError,
    UnknownSchemaError,
    WorkerLostError,
)
from headwater.options.secrets import hidden_in

__all__ = ["is_transient", "translate", "without_advice"]

_SHOWN = 300

_CLIENT = re.compile(r"\b(" + "|".join(MEANINGS) + r")\b:?(.*)")
_UNREACHABLE = re.compile(
    r"BrokerNotAvailable|Connection to node .* could not be established"
    r"|No resolvable bootstrap urls|Failed to get records"
)
_RAISED = re.compile(RAISED + r"(.+?)(?:\n|SQLSTATE|\Z)")
_HINT = "Hint: "
_SPARK_ADVICE = re.compile(r" (?:Use [`']try_(?!cast)|If necessary set \"spark\.)[^.]*(?:\.[^. ][^.]*)*\.")
_UNKNOWN_SCHEMA = re.compile(UNKNOWN_SCHEMA + r" (\d+)")
_WORKER_LOST = re.compile(
    r"Python worker (?:exited unexpectedly|failed to connect back)"
    r"|(?:IOException|SocketException|EOFException)[\s\S]{0,4000}?\bapi\.python\."
)
# Of a trace, the line that is not indented says what was raised; Spark's own first line says only that something was.
_RAISED_IN_PYTHON = re.compile(r"^Traceback \(most recent call last\):\n(?:[ \t].*\n)+(\S.*)$", re.MULTILINE)
_LOST = re.compile(r"OffsetOutOfRange|offset.*out of range|Some data may have been lost|failOnDataLoss|KAFKA_DATA_LOSS")


def translate(error: BaseException, job: str, options: Sequence[Mapping[str, str]] = ()) -> HeadwaterError:
    """The same failure as one of ours, without the secrets that are in `options`, those of the job's tables. With
    HEADWATER_DEBUG=1 the original is printed too."""
    if isinstance(error, HeadwaterError):
        return error

    def hidden(text: str) -> str:
        for one in options:
            text = hidden_in(text, one)
        return text

    if os.environ.get("HEADWATER_DEBUG") == "1":
        sys.stderr.write(hidden("".join(traceback.format_exception(error))))
    found = _translated(hidden(_full_text(error)), job)
    return found or JobError(
        f"Job '{job}' failed while computing a batch.",
        detail=hidden(_first_line(error)),
        hint="Set HEADWATER_DEBUG=1 to see the whole trace.",
    )


def _translated(text: str, job: str) -> HeadwaterError | None:
    # In this order: what was raised on purpose is exact; what clients say comes last, because it may be a consequence
    # of all the others.
    for recognise in (_raised_by_us, _bad_record, _unknown_schema, _data_loss, _worker_lost, _kafka):
        found = recognise(text, job)
        if found is not None:
            return found
    return None


def is_transient(problem: HeadwaterError) -> bool:
    """May the same batch succeed a little later?"""
    transient = (
        KafkaUnavailableError
        | RegistryUnavailableError
        | StorageUnavailableError
        | UnknownSchemaError
        | WorkerLostError
    )
    refused = KafkaRefusedError | RegistryRefusedError | StorageRefusedError
    return isinstance(problem, transient) and not isinstance(problem, refused)


def _full_text(error: BaseException) -> str:
    parts = []
    seen: BaseException | None = error
    while seen is not None:
        parts.append(f"{type(seen).__name__}: {seen}")
        if isinstance(seen, Py4JJavaError):
            # The Python message of a Py4J error may be cut; the Java exception has the whole chain of causes.
            parts.append(str(seen.java_exception))
        seen = seen.__cause__
    return "\n".join(parts)


def _raised_by_us(text: str, job: str) -> HeadwaterError | None:
    """What we raised ourselves inside Spark, in SQL or in a Python worker, comes back as text."""
    raised = _RAISED.search(text)
    if raised:
        return JobError(f"Job '{job}' failed: {raised[1].strip()}")
    match = re.search(r"headwater\.errors\.(\w+): (.+?)(?:\n\n|\n\tat |\Z)", text, re.DOTALL)
    if match is None:
        return None
    # As the error wrote itself: a fact, details, a hint. A job that retries shows the fact alone.
    fact, *more = match[2].strip().splitlines()
    hint = more.pop().removeprefix(_HINT) if more and more[-1].startswith(_HINT) else ""
    if match[1] not in _RAISED_BY_WORKERS:
        return JobError(f"Job '{job}' failed: {fact}", detail="\n".join(more), hint=hint)
    return _RAISED_BY_WORKERS[match[1]](fact, detail="\n".join(more), hint=hint)


_RAISED_BY_WORKERS = {
    kind.__name__: kind
    for kind in (
        KafkaUnavailableError,
        KafkaRefusedError,
        DataLossError,
        UnknownSchemaError,
        IncompatibleCheckpointError,
        DamagedCheckpointError,
        StaleCheckpointError,
        StorageUnavailableError,
        StorageRefusedError,
    )
} | {"MissingFileError": DamagedCheckpointError}


def _worker_lost(text: str, job: str) -> HeadwaterError | None:
    if not _WORKER_LOST.search(text):
        return None
    return WorkerLostError(
        f"Job '{job}': a Python worker of Spark ended in the middle of a batch.",
        detail=_about(text, _WORKER_LOST),
        hint="If it happens again and again, look for what kills it; most often it is a lack of memory.",
    )


def _bad_record(text: str, _job: str) -> HeadwaterError | None:
    start = text.find(BAD_RECORD)
    if start < 0:
        return None
    # Parsed from where it starts: what wraps the message also writes behind it.
    content, _ = json.JSONDecoder().raw_decode(text[start + len(BAD_RECORD) :].lstrip())
    where = f"topic '{content['topic']}', partition {content['partition']}, offset {content['offset']}"
    shown, option = content.get("payload", ""), content["option"]
    lenient = f" '{option}' = 'true' skips what cannot be read." if option else ""
    return BadRecordError(
        f"A message of table '{content['table']}' could not be decoded as {content['format']}: {where}.",
        detail=f"{content['problem']}\nMessage: {_printable(shown)}",
        hint="Correct the producer or the table's columns, or set 'scan.bad-records' to 'skip' or 'dead-letter'."
        f"{lenient}",
    )


def _unknown_schema(text: str, job: str) -> HeadwaterError | None:
    match = _UNKNOWN_SCHEMA.search(text)
    return None if match is None else UnknownSchemaError(f"Job '{job}' has met schema {match[1]} for the first time.")


def _data_loss(text: str, job: str) -> HeadwaterError | None:
    if not _LOST.search(text):
        return None
    return DataLossError(
        f"Job '{job}' needs messages that the broker no longer has.",
        detail=_about(text, _LOST),
        hint="Retention has removed them, or the topic is a new one. Set 'scan.on-data-loss' = 'continue' to go on "
        "with what is left, or start with a new checkpoint.",
    )


def _kafka(text: str, job: str) -> HeadwaterError | None:
    """What the clients of the executors say: the first exception that means something to a person."""
    # Reversed, so that of several messages of one kind the first, the cause, is kept.
    seen = {match[1]: match[0].strip() for match in reversed(list(_CLIENT.finditer(text)))}
    name = next((n for n in MEANINGS if n in seen and not MEANINGS[n].passes and n not in _VAGUE), "")
    if name:
        fact = f"Job '{job}': {_REFUSED.get(name, 'the broker refused a request')}."
        return KafkaRefusedError(fact, detail=_printable(seen[name]), hint=MEANINGS[name].hint)
    if any(MEANINGS[n].passes for n in seen) or _UNREACHABLE.search(text):
        hint = "Check that it runs, that it can be reached from all executors, and that the topic still exists."
        detail = next((seen[n] for n in MEANINGS if n in seen), "") or _about(text, _UNREACHABLE)
        return KafkaUnavailableError(f"Job '{job}': the broker does not answer.", detail=_printable(detail), hint=hint)
    return None


# Any failure of a client may be wrapped in these.
_VAGUE = {"KafkaException", "ConfigException"}
_REFUSED = {
    "SaslAuthenticationException": "the broker refused the login",
    "UnsupportedSaslMechanismException": "the broker refused the login",
    "SslAuthenticationException": "the TLS handshake failed",
    "TopicAuthorizationException": "not allowed to use a topic",
    "GroupAuthorizationException": "not allowed to use a group",
    "TransactionalIdAuthorizationException": "not allowed to write transactions",
    "UnknownTopicOrPartitionException": "a topic does not exist (any more)",
}


def _about(text: str, pattern: re.Pattern[str]) -> str:
    line = next((line for line in text.splitlines() if pattern.search(line)), "")
    return _printable(line.strip())


def _first_line(error: BaseException) -> str:
    if isinstance(error, PySparkException):
        condition = error.getCondition()
        text = str(error).split("\nJVM stacktrace")[0].strip()
        raised = _RAISED_IN_PYTHON.search(text)
        if raised is not None:
            return _printable(raised[1])
        return _printable(text.splitlines()[0] if condition is None else without_advice(text.split("SQLSTATE")[0]))
    if isinstance(error, Py4JJavaError):
        return _printable(str(error.java_exception))
    return _printable(f"{type(error).__name__}: {error}")


def without_advice(text: str) -> str:
    """Without what Spark suggests and a script cannot do: its settings, functions that there are none of."""
    return _SPARK_ADVICE.sub("", text)


def _printable(text: str) -> str:
    clean = "".join(c if c.isprintable() or c == "\n" else f"\\x{ord(c):02x}" for c in text)
    return clean if len(clean) <= _SHOWN else f"{clean[:_SHOWN]}… ({len(clean)} characters)"
