"""Every option of `kafka` and `upsert-kafka`, declared once."""

from __future__ import annotations

import re
from datetime import timedelta

from headwater.catalog.connector import CONNECTOR
from headwater.options.base import Option, OptionType
from headwater.options.resolved import ResolvedOptions
from headwater.options.types import BOOL, DURATION, INT, LIST, LONG, STRING, enum

__all__ = [
    "KAFKA_OPTIONS",
    "PARTITIONERS",
    "PROPERTIES",
    "TOPIC_CONFIG",
    "UPSERT_KAFKA_OPTIONS",
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


_ALIGNED = "No effect: a batch reads all partitions that have messages."
_TOPIC = (
    CONNECTOR,
    Option(
        "topic",
        LIST,
        "Topic to read and write, or a list of topics: 'a;b'. To write to several topics, each row names its topic in "
        "a METADATA column 'topic'. Either this or 'topic-pattern' is required.",
    ),
    Option(
        "topic-pattern",
        STRING,
        "Java regular expression for the names of the topics, which must match as a whole. Not together with 'topic'.",
    ),
    Option(
        f"{PROPERTIES}bootstrap.servers",
        STRING,
        "List of Kafka brokers: 'host:port,host:port'.",
        required=True,
    ),
    Option(
        f"{PROPERTIES}group.id",
        STRING,
        "Consumer group whose offsets 'group-offsets' starts from, and for which offsets are committed.",
    ),
    Option(
        f"{PROPERTIES}*",
        STRING,
        "Any setting of the Kafka client, without the prefix. Serializers have no effect: formats do their work.",
        prefix=True,
    ),
)
_KEY_LAYOUT = (
    Option("key.fields-prefix", STRING, "Prefix of key columns in the table, which fields in the key do not have.", ""),
    _choice(
        "value.fields-include",
        ("ALL", "EXCEPT_KEY"),
        "Whether key columns are also part of the value. 'key.fields-prefix' requires EXCEPT_KEY.",
        "ALL",
    ),
)
_STARTUP_MODE = (
    "Start position of a job without a checkpoint. 'group-offsets': the committed offsets of the group; where there "
    "are none, 'properties.auto.offset.reset' decides (default: latest; without a group: earliest)."
)
_STARTUP = (
    Option(
        "scan.startup.specific-offsets",
        _offsets("scan.startup.specific-offsets"),
        "Start offset of each partition: 'partition:0,offset:42;partition:1,offset:300'. Partitions that are not "
        "listed start as with 'group-offsets'.",
    ),
    Option("scan.startup.timestamp-millis", LONG, "Start timestamp, in milliseconds since 1970."),
)
_SCAN = (
    _choice(
        "scan.bounded.mode",
        BOUNDED_MODES,
        "End position of the source, looked up once, when a job is first started.",
        "unbounded",
    ),
    Option(
        "scan.bounded.specific-offsets",
        _offsets("scan.bounded.specific-offsets"),
        "End offset of each partition, exclusive; partitions that are not listed are not read.",
    ),
    Option("scan.bounded.timestamp-millis", LONG, "End timestamp, exclusive, in milliseconds since 1970."),
    Option(
        "scan.topic-partition-discovery.interval",
        DURATION,
        "Interval for discovering new partitions and topics, which are read from their beginning; 0 disables it.",
        timedelta(minutes=5),
    ),
    _choice(
        "scan.on-data-loss",
        ("fail", "continue"),
        "What to do when messages that were not read yet are gone, by retention or because their topic was deleted. "
        "'continue' logs a warning and continues with what is left.",
        "fail",
    ),
    _choice(
        "scan.bad-records",
        BAD_RECORDS,
        "What to do with a message that cannot be decoded: fail, skip it, or skip it and write it to "
        "'scan.dead-letter.topic'.",
        "fail",
    ),
    Option(
        "scan.dead-letter.topic",
        STRING,
        "Topic for messages that cannot be decoded, if 'scan.bad-records' is 'dead-letter', and, of a log with a "
        "WATERMARK, for those whose rows come too late: unchanged, with headers for their origin and the error.",
    ),
    Option(
        "scan.parallelism",
        INT,
        "Number of tasks that read. Default: as many as Spark has cores; a partition is then read by one task.",
    ),
    _choice(
        "scan.watermark.emit.strategy",
        ("on-periodic", "on-event"),
        "When watermarks are emitted. No effect: every row moves the watermark of its partition.",
    ),
    Option(
        "scan.watermark.emit.on-event.gap",
        INT,
        "After how many rows a watermark is emitted. No effect: every row moves the watermark of its partition.",
    ),
    Option("scan.watermark.alignment.group", STRING, f"Group of sources whose watermarks are aligned. {_ALIGNED}"),
    Option("scan.watermark.alignment.max-drift", DURATION, f"Maximum drift of a source from its group. {_ALIGNED}"),
    Option(
        "scan.watermark.alignment.update-interval", DURATION, f"Interval for the alignment of watermarks. {_ALIGNED}"
    ),
    Option(
        "scan.watermark.idle-timeout",
        DURATION,
        "After how long without messages a partition no longer holds back the table's watermark. Default: "
        "'table.exec.source.idle-timeout' of the session.",
    ),
)
_SINK = (
    Option(
        "sink.partitioner",
        STRING,
        "How partitions are chosen. 'default': hash of the key, or the producer's choice without a key. 'fixed': each "
        "task writes to one partition. 'round-robin': row by row. Or a Python class: 'package.module.Class'.",
        "default",
    ),
    _choice(
        "sink.changelog",
        CHANGELOGS,
        "How changes are written. 'append': rows only; updating queries are rejected. 'upsert': the newest row of a "
        "key, and a tombstone for its deletion; requires a PRIMARY KEY. 'retract': every change, with its kind (+I, "
        "-U, +U, -D) in the header 'rowkind'. Default: 'upsert' with a PRIMARY KEY, else 'append'.",
    ),
    Option(
        "sink.ignore-retractions",
        BOOL,
        "Whether retractions (-U, -D) are dropped: keys are updated, but never deleted.",
        False,
    ),
    _choice(
        "sink.delivery-guarantee",
        GUARANTEES,
        "'at-least-once': nothing is lost, messages may be duplicated after a failure. 'exactly-once': Kafka "
        "transactions; consumers with 'isolation.level' = 'read_committed' see each message once. 'none': does not "
        "wait for replicas.",
        "at-least-once",
    ),
    Option(
        "sink.transactional-id-prefix",
        STRING,
        "Prefix of the transactional ids of 'exactly-once', for ACLs. Concurrent jobs with the same name need "
        "different prefixes. Default: derived from the identity of the checkpoint.",
    ),
    _choice(
        "sink.transaction-naming-strategy",
        ("DEFAULT", "INCREMENTING", "POOLING"),
        "How transactional ids are named. They are always reused, as with POOLING; INCREMENTING is rejected.",
        "DEFAULT",
    ),
    Option(
        "sink.parallelism",
        INT,
        "Number of tasks that write, to which rows are distributed by key. Default: the tasks that compute the rows.",
    ),
    Option("sink.topic.create", BOOL, "Whether missing topics are created when a job starts.", False),
    Option("sink.topic.partitions", INT, "Partitions of a created topic. Default: the broker's."),
    Option("sink.topic.replication-factor", INT, "Replicas of a created topic. Default: the broker's."),
    Option(
        f"{TOPIC_CONFIG}*",
        STRING,
        "Settings of a created topic, such as 'sink.topic.config.retention.ms'. 'cleanup.policy' defaults to 'compact' "
        "for a table with a PRIMARY KEY.",
        prefix=True,
    ),
)

KAFKA_OPTIONS: tuple[Option, ...] = (
    *_TOPIC,
    Option("format", STRING, "Format of message values. Either this or 'value.format' is required."),
    Option("value.format", STRING, "The same as 'format'; format options are then prefixed with 'value.'."),
    Option(
        "key.format",
        STRING,
        "Format of message keys. Without it, keys are not read, and they are written only for a table with a PRIMARY "
        "KEY, in the format of the value.",
    ),
    Option("key.fields", LIST, "Columns of the key, in this order: 'a;b'. Requires 'key.format'."),
    *_KEY_LAYOUT,
    _choice("scan.startup.mode", STARTUP_MODES, _STARTUP_MODE, "group-offsets"),
    *_STARTUP,
    *_SCAN,
    *_SINK,
    Option(
        "sink.semantic",
        enum(GUARANTEES),
        "Former name of 'sink.delivery-guarantee'.",
        deprecated="sink.delivery-guarantee",
        choices=GUARANTEES,
    ),
)

UPSERT_KAFKA_OPTIONS: tuple[Option, ...] = (
    *_TOPIC,
    Option("key.format", STRING, "Format of message keys, which hold the primary key.", required=True),
    Option("value.format", STRING, "Format of message values.", required=True),
    *_KEY_LAYOUT,
    _choice(
        "scan.startup.mode",
        STARTUP_MODES,
        f"{_STARTUP_MODE} Modes other than 'earliest-offset' require 'scan.startup.partial-changelog'.",
        "earliest-offset",
    ),
    Option(
        "scan.startup.partial-changelog",
        BOOL,
        "Allows a 'scan.startup.mode' that skips the beginning. Keys whose last message was skipped are missing in the "
        "table.",
        False,
    ),
    *_STARTUP,
    *_SCAN,
    *_SINK,
    Option(
        "sink.buffer-flush.max-rows",
        INT,
        "A batch starts when so many messages wait at the sources, or when 'sink.buffer-flush.interval' has passed "
        "since the batch before. Only the last change of a key in a batch is written. 0 disables it.",
        0,
    ),
    Option(
        "sink.buffer-flush.interval",
        DURATION,
        "Maximum time between two batches; set together with 'sink.buffer-flush.max-rows'.",
        timedelta(0),
    ),
)


def names_its_topics(options: ResolvedOptions) -> bool:
    """Whether a row that is written must say which topic it goes to."""
    return bool(options.string("topic-pattern")) or len(options.strings("topic")) > 1
