"""Every option of `kafka` and `upsert-kafka`, declared once, and in `NOT_YET` those that are known but refused."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from headwater.connectors.base import CONNECTOR
from headwater.options.base import Option, OptionType
from headwater.options.resolved import ResolvedOptions
from headwater.options.types import BOOL, DURATION, INT, LIST, LONG, STRING, enum

__all__ = [
    "KAFKA_OPTIONS",
    "NOT_YET",
    "PARTITIONERS",
    "PROPERTIES",
    "TOPIC_CONFIG",
    "UPSERT_KAFKA_OPTIONS",
    "NotYet",
    "names_its_topics",
]

PROPERTIES = "properties."
TOPIC_CONFIG = "sink.topic.config."

STARTUP_MODES = ("earliest-offset", "latest-offset", "group-offsets", "timestamp", "specific-offsets")
BOUNDED_MODES = ("unbounded", "latest-offset", "group-offsets", "timestamp", "specific-offsets")
BAD_RECORDS = ("fail", "skip", "dead-letter")
GUARANTEES = ("none", "at-least-once", "exactly-once")
PARTITIONERS = ("default", "fixed", "round-robin")
CHANGELOGS = ("append", "upsert", "retract")


def _offsets(key: str) -> OptionType:
    """'partition:0,offset:42;partition:1,offset:300' as {0: 42, 1: 300}."""

    def parse(text: str) -> dict[int, int]:
        pairs = [re.fullmatch(r"\s*partition:(\d+)\s*,\s*offset:(\d+)\s*", part) for part in text.split(";") if part]
        found = {int(m[1]): int(m[2]) for m in pairs if m}
        if not pairs or None in pairs or len(found) < len(pairs):
            form = "partition:0,offset:42;partition:1,offset:300"
            raise ValueError(f"Invalid properties '{key}' should follow the format '{form}', but is '{text}'.")
        return found

    return OptionType("Offsets", parse)


def _choice(key: str, choices: tuple[str, ...], meaning: str, default: str | None = None) -> Option:
    return Option(key, enum(choices), meaning, default, choices=choices)


_TOPIC = (
    CONNECTOR,
    Option(
        "topic",
        LIST,
        "The topic to read and write, or several: 'a;b'. Of several, each row that is written names its own in a "
        "METADATA column 'topic'. Either this or 'topic-pattern' must be set.",
    ),
    Option(
        "topic-pattern",
        STRING,
        "Regular expression (Java's) that the whole names of the topics match, for reading and, in the same way, for "
        "writing. Not together with 'topic'.",
    ),
    Option(f"{PROPERTIES}bootstrap.servers", STRING, "Addresses of brokers: 'host:port,host:port'.", required=True),
    Option(
        f"{PROPERTIES}group.id",
        STRING,
        "Consumer group: where 'group-offsets' finds its offsets, and under which progress is committed.",
    ),
    Option(
        f"{PROPERTIES}*",
        STRING,
        "Any setting of the Kafka client. The (de)serializers cannot be set: formats read and write the messages.",
        prefix=True,
    ),
)
_KEY_LAYOUT = (
    Option(
        "key.fields-prefix", STRING, "Prefix of the key's columns in the table, which the key's fields do not have.", ""
    ),
    _choice(
        "value.fields-include",
        ("ALL", "EXCEPT_KEY"),
        "Whether the columns of the key are in the value too. A 'key.fields-prefix' needs EXCEPT_KEY.",
        "ALL",
    ),
)
_STARTUP_MODE = (
    "Where a new job starts to read. 'group-offsets': where the group has committed to, else where "
    "'properties.auto.offset.reset' says (default: latest), or without a group at the earliest offset."
)
_STARTUP = (
    Option(
        "scan.startup.specific-offsets",
        _offsets("scan.startup.specific-offsets"),
        "First offset of each partition: 'partition:0,offset:42;partition:1,offset:300'. Partitions that are not "
        "listed start as with 'group-offsets'.",
    ),
    Option("scan.startup.timestamp-millis", LONG, "Milliseconds since 1970 of the first message."),
)
_SCAN = (
    _choice("scan.bounded.mode", BOUNDED_MODES, "Where reading ends, looked up once, when a job starts.", "unbounded"),
    Option(
        "scan.bounded.specific-offsets",
        _offsets("scan.bounded.specific-offsets"),
        "Offset of each partition before which reading ends; a partition that is not listed is not read.",
    ),
    Option("scan.bounded.timestamp-millis", LONG, "Milliseconds since 1970 before which reading ends."),
    Option(
        "scan.topic-partition-discovery.interval",
        DURATION,
        "How often new partitions, and new topics of a pattern, are looked for; 0 for never. They are read from their "
        "beginning.",
        timedelta(minutes=5),
    ),
    _choice(
        "scan.on-data-loss",
        ("fail", "continue"),
        "What to do when messages that were not read yet are gone: retention removed them, or their topic was deleted. "
        "'continue' goes on with what is left, and warns.",
        "fail",
    ),
    _choice(
        "scan.bad-records",
        BAD_RECORDS,
        "What to do with a message that cannot be read: stop, leave it out, or leave it out and write it to "
        "'scan.dead-letter.topic'.",
        "fail",
    ),
    Option(
        "scan.dead-letter.topic",
        STRING,
        "Topic for messages that cannot be read, as they are, with headers that say where they come from and why.",
    ),
    Option("scan.parallelism", INT, "Number of tasks that read. Default: one per partition."),
    _choice(
        "scan.watermark.emit.strategy",
        ("on-periodic", "on-event"),
        "When a watermark is emitted.",
    ),
    Option("scan.watermark.alignment.group", STRING, "Sources whose watermarks are kept together."),
    Option("scan.watermark.alignment.max-drift", DURATION, "How far a source may run ahead of its group."),
    Option("scan.watermark.alignment.update-interval", DURATION, "How often sources of a group look at each other."),
    Option(
        "scan.watermark.idle-timeout", DURATION, "After which time an idle partition no longer holds a watermark back."
    ),
)
_SINK = (
    Option(
        "sink.partitioner",
        STRING,
        "Partition of a message. 'default': by the key, or if there is none as the producer likes. 'fixed': each task "
        "writes to one partition. 'round-robin': row by row in turn. Or a Python class: 'package.module.Class'.",
        "default",
    ),
    _choice(
        "sink.changelog",
        CHANGELOGS,
        "How changes are written. 'append': rows only; a query that updates is refused. 'upsert': the newest row of a "
        "key, and a null value for its deletion; needs a PRIMARY KEY. 'retract': every change, with its kind (+I, -U, "
        "+U, -D) in the header 'rowkind'. Default: 'upsert' with a PRIMARY KEY, else 'append'.",
    ),
    Option(
        "sink.ignore-retractions",
        BOOL,
        "Whether what takes a row back (-U, -D) is not written at all: keys are updated, but never deleted.",
        False,
    ),
    _choice(
        "sink.delivery-guarantee",
        GUARANTEES,
        "'at-least-once': nothing is lost, messages may repeat after a failure. 'exactly-once': Kafka transactions; "
        "readers with 'isolation.level' = 'read_committed' see each message once. 'none': replicas are not waited for.",
        "at-least-once",
    ),
    Option(
        "sink.transactional-id-prefix",
        STRING,
        "Start of the transactional ids of 'exactly-once', for ACLs; jobs that run at the same time must not share it "
        "under one job name. Default: made from the identity of the checkpoint.",
    ),
    _choice(
        "sink.transaction-naming-strategy",
        ("DEFAULT", "INCREMENTING", "POOLING"),
        "How transactional ids go on after the prefix. Ids are always used again, as with POOLING; INCREMENTING is "
        "refused.",
        "DEFAULT",
    ),
    Option(
        "sink.parallelism",
        INT,
        "Number of tasks that write. Default: those that compute the rows; with 'exactly-once' as many as the job has "
        "state partitions.",
    ),
    Option("sink.topic.create", BOOL, "Whether topics that are missing are created when a job starts.", False),
    Option("sink.topic.partitions", INT, "Partitions of a topic that is created. Default: as the broker likes."),
    Option("sink.topic.replication-factor", INT, "Replicas of a topic that is created. Default: as the broker likes."),
    Option(
        f"{TOPIC_CONFIG}*",
        STRING,
        "Settings of a topic that is created, such as 'sink.topic.config.retention.ms'. 'cleanup.policy' is 'compact' "
        "for a table with a PRIMARY KEY unless it is set here.",
        prefix=True,
    ),
)

KAFKA_OPTIONS: tuple[Option, ...] = (
    *_TOPIC,
    Option("format", STRING, "Format of the messages' values. Either this or 'value.format' must be set."),
    Option("value.format", STRING, "The same as 'format'; its options then start with 'value.'."),
    Option("key.format", STRING, "Format of the messages' keys. Without it keys are neither read nor written."),
    Option("key.fields", LIST, "Columns that are in the key, in this order: 'a;b'. Needs 'key.format'."),
    *_KEY_LAYOUT,
    _choice("scan.startup.mode", STARTUP_MODES, _STARTUP_MODE, "group-offsets"),
    *_STARTUP,
    *_SCAN,
    *_SINK,
    Option(
        "sink.semantic",
        enum(GUARANTEES),
        "Older name of 'sink.delivery-guarantee'.",
        deprecated="sink.delivery-guarantee",
        choices=GUARANTEES,
    ),
)

UPSERT_KAFKA_OPTIONS: tuple[Option, ...] = (
    *_TOPIC,
    Option("key.format", STRING, "Format of the messages' keys, which hold the primary key.", required=True),
    Option("value.format", STRING, "Format of the messages' values.", required=True),
    *_KEY_LAYOUT,
    _choice(
        "scan.startup.mode",
        STARTUP_MODES,
        f"{_STARTUP_MODE} All but 'earliest-offset' leave out rows: they need 'scan.startup.partial-changelog'.",
        "earliest-offset",
    ),
    Option(
        "scan.startup.partial-changelog",
        BOOL,
        "Allows a 'scan.startup.mode' that skips the beginning. Keys whose last message is in the skipped part are "
        "then not in the table.",
        False,
    ),
    *_STARTUP,
    *_SCAN,
    *_SINK,
    Option(
        "sink.buffer-flush.max-rows",
        INT,
        "A batch is held back until so many messages wait at the sources, or 'sink.buffer-flush.interval' has passed "
        "since the batch before. Of the changes of a key in a batch only the last is written. 0: nothing is held back.",
        0,
    ),
    Option(
        "sink.buffer-flush.interval",
        DURATION,
        "Longest time that changes are held back; goes together with 'sink.buffer-flush.max-rows'.",
        timedelta(0),
    ),
)


def names_its_topics(options: ResolvedOptions) -> bool:
    """Whether a row that is written must say which topic it goes to."""
    return bool(options.string("topic-pattern")) or len(options.strings("topic")) > 1


@dataclass(frozen=True)
class NotYet:
    """An option that is declared but refused when `used`. `what` goes before "not supported yet", `instead` behind."""

    key: str
    what: str
    instead: str
    used: Callable[[ResolvedOptions], bool]


def _if_given(key: str, instead: str, what: str = "It is") -> NotYet:
    return NotYet(key, what, instead, lambda options: key in options.values and options.is_given(key))


_NO_WATERMARKS = "Leave it out: no partition holds another one back."

NOT_YET: tuple[NotYet, ...] = (
    _if_given("scan.watermark.emit.strategy", _NO_WATERMARKS),
    _if_given("scan.watermark.alignment.group", _NO_WATERMARKS),
    _if_given("scan.watermark.alignment.max-drift", _NO_WATERMARKS),
    _if_given("scan.watermark.alignment.update-interval", _NO_WATERMARKS),
    _if_given("scan.watermark.idle-timeout", _NO_WATERMARKS),
)
