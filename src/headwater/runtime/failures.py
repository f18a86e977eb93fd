"""Spark's and Kafka's exceptions → our errors: the fact a person needs first, never a stack trace.

Bad records announce themselves: a decoder raises inside Spark with a message that starts with `BAD_RECORD`, which
travels through whatever wraps it.
"""

from __future__ import annotations

import json
import os
import re
import sys
import traceback

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from headwater.errors import BadRecordError, DataLossError, HeadwaterError, JobError, KafkaUnavailableError

__all__ = ["BAD_RECORD", "is_passing", "translate"]

BAD_RECORD = "HEADWATER_BAD_RECORD"

_SHOWN = 300

_UNREACHABLE = re.compile(
    r"TimeoutException|DisconnectException|NetworkException|NotLeaderOrFollower|LeaderNotAvailable|BrokerNotAvailable"
    r"|CoordinatorNotAvailable|CoordinatorLoadInProgress|Connection to node .* could not be established"
    r"|No resolvable bootstrap urls|NotEnoughReplicas"
)
_RAISED = re.compile(r"HEADWATER_RAISED(.+?)(?:\n|SQLSTATE|\Z)")
_LOST = re.compile(r"OffsetOutOfRange|offset.*out of range|Some data may have been lost|failOnDataLoss|KAFKA_DATA_LOSS")
_UNKNOWN_TOPIC = re.compile(r"UnknownTopicOrPartition|Topic (\S+) not present in metadata")
_REFUSED = re.compile(r"(SaslAuthentication|SslAuthentication|TopicAuthorization|GroupAuthorization)Exception")


def translate(error: BaseException, job: str) -> HeadwaterError:
    """The same failure as one of ours. With HEADWATER_DEBUG=1 the original is printed too."""
    if isinstance(error, HeadwaterError):
        return error
    text = _full_text(error)
    if os.environ.get("HEADWATER_DEBUG") == "1":
        traceback.print_exception(error, file=sys.stderr)
    for recognise in (_raised_by_us, _bad_record, _data_loss, _kafka):
        found = recognise(text, job)
        if found is not None:
            return found
    return JobError(
        f"Job '{job}' failed while computing a batch.",
        detail=_first_line(error),
        hint="Set HEADWATER_DEBUG=1 to see the whole trace.",
    )


def is_passing(error: BaseException, problem: HeadwaterError) -> bool:
    """May the same batch succeed a little later?"""
    if isinstance(problem, BadRecordError | DataLossError):
        return False
    if _REFUSED.search(_full_text(error)) or _UNKNOWN_TOPIC.search(_full_text(error)):
        return False
    return isinstance(problem, KafkaUnavailableError)


def _full_text(error: BaseException) -> str:
    parts = []
    seen: BaseException | None = error
    while seen is not None:
        parts.append(f"{type(seen).__name__}: {seen}")
        if isinstance(seen, Py4JJavaError):
            parts.append(str(seen.java_exception))
        seen = seen.__cause__
    return "\n".join(parts)


def _raised_by_us(text: str, job: str) -> HeadwaterError | None:
    """What we raised ourselves inside Spark, in SQL or in a Python worker, comes back as text."""
    raised = _RAISED.search(text)
    if raised:
        return JobError(f"Job '{job}' failed: {raised[1].strip()}")
    match = re.search(r"headwater\.errors\.(\w+): (.+?)(?:\n\n|\n\tat |\Z)", text, re.DOTALL)
    return JobError(f"Job '{job}' failed: {match[2].strip()}") if match else None


def _bad_record(text: str, _job: str) -> HeadwaterError | None:
    start = text.find(BAD_RECORD)
    if start < 0:
        return None
    content, _ = json.JSONDecoder().raw_decode(text[start + len(BAD_RECORD) :].lstrip())
    where = f"topic '{content['topic']}', partition {content['partition']}, offset {content['offset']}"
    shown = content.get("payload", "")
    return BadRecordError(
        f"A message of table '{content['table']}' could not be decoded as {content['format']}: {where}.",
        detail=f"{content['problem']}\nMessage: {_printable(shown)}",
        hint=f"Correct the producer or the table's columns; '{content['option']}' = 'true' skips what cannot be read.",
    )


def _data_loss(text: str, job: str) -> HeadwaterError | None:
    if not _LOST.search(text):
        return None
    return DataLossError(
        f"Job '{job}' needs messages that the broker no longer has.",
        detail=_about(text, _LOST),
        hint="Retention has removed them, or the topic is a new one. Start with a new checkpoint to read what is left.",
    )


def _kafka(text: str, job: str) -> HeadwaterError | None:
    for pattern, fact, hint in (
        (_UNKNOWN_TOPIC, "a topic does not exist (any more)", "Create it, or correct the table's 'topic' option."),
        (_REFUSED, "the broker refused access", "Check user, password, certificates and ACLs."),
        (_UNREACHABLE, "the broker does not answer", "Check that it runs and can be reached from all executors."),
    ):
        if pattern.search(text):
            return KafkaUnavailableError(f"Job '{job}': {fact}.", detail=_about(text, pattern), hint=hint)
    return None


def _about(text: str, pattern: re.Pattern[str]) -> str:
    line = next((line for line in text.splitlines() if pattern.search(line)), "")
    return _printable(line.strip())


def _first_line(error: BaseException) -> str:
    if isinstance(error, PySparkException):
        condition = error.getCondition()
        text = str(error).split("\nJVM stacktrace")[0].strip()
        return _printable(text.splitlines()[0] if condition is None else text.split("SQLSTATE")[0])
    if isinstance(error, Py4JJavaError):
        return _printable(str(error.java_exception))
    return _printable(f"{type(error).__name__}: {error}")


def _printable(text: str) -> str:
    clean = "".join(c if c.isprintable() or c == "\n" else f"\\x{ord(c):02x}" for c in text)
    return clean if len(clean) <= _SHOWN else f"{clean[:_SHOWN]}… ({len(clean)} characters)"
