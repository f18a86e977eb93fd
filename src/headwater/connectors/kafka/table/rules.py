"""What a table of `kafka` or `upsert-kafka` must keep to, in Flink's words where people search for them.

One function, one rule; `RULES` is the order in which problems are reported. Rules read options that are well formed:
`options.parsing` has already complained about missing, unsupported and malformed ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from headwater.catalog.connector import Emits
from headwater.connectors.kafka.clients.settings import untranslatable
from headwater.connectors.kafka.table.layout import LayoutProblem, PayloadLayout, key_side, registered_sides, value_side
from headwater.connectors.kafka.table.options import PARTITIONERS, PROPERTIES, names_its_topics
from headwater.formats.base import ChangelogFormat
from headwater.options.problems import Problem
from headwater.sql.statements import MetadataColumn

if TYPE_CHECKING:
    from headwater.catalog.tables import Table

__all__ = ["RULES", "sink_problems", "source_problems", "table_problems"]

_RESETS = ("latest", "earliest", "none")
_CHOICES = {
    "isolation.level": ("read_committed", "read_uncommitted"),
    "enable.auto.commit": ("true", "false"),
    "commit.offsets.on.checkpoint": ("true", "false"),
    "security.protocol": ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"),
}

# Here they are calculated with. All other numbers are for the client alone, which says what it does not take.
_COUNTS = ("buffer.memory", "delivery.timeout.ms", "max.in.flight.requests.per.connection")


def table_problems(table: Table) -> list[Problem]:
    # Where key and value share a format, its problems are found twice.
    return list(dict.fromkeys(problem for rule in RULES for problem in rule(table)))


def _topic(table: Table) -> Iterator[Problem]:
    topics, pattern = table.options.strings("topic"), table.options.string("topic-pattern")
    if topics and pattern:
        yield Problem("Option 'topic' and 'topic-pattern' shouldn't be set together.", key="topic-pattern")
    if not topics and not pattern:
        yield Problem("Either 'topic' or 'topic-pattern' must be set.", key="topic")


def _startup(table: Table) -> Iterator[Problem]:
    yield from _mode_needs(table, "startup")


def _partial_changelog(table: Table) -> Iterator[Problem]:
    key, mode = "scan.startup.partial-changelog", table.options["scan.startup.mode"]
    if not table.connector.reads_upserts:
        return
    if mode != "earliest-offset" and not table.options.flag(key):
        text = f"'scan.startup.mode' = '{mode}' would leave out rows: a changelog is only whole from its beginning. "
        yield Problem(f"{text}If that is meant, set '{key}' = 'true'.", key="scan.startup.mode")
    if mode == "earliest-offset" and table.options.flag(key):
        text = f"'{key}' is only used with a 'scan.startup.mode' other than 'earliest-offset'."
        yield Problem(text, key=key)


def _bounded(table: Table) -> Iterator[Problem]:
    yield from _mode_needs(table, "bounded")


def _mode_needs(table: Table, what: str) -> Iterator[Problem]:
    mode = table.options[f"scan.{what}.mode"]
    needs = {"timestamp": f"scan.{what}.timestamp-millis", "specific-offsets": f"scan.{what}.specific-offsets"}
    if mode in needs and not table.options.is_given(needs[mode]):
        text = f"'{needs[mode]}' is required in '{mode}' {what} mode but missing."
        yield Problem(text, key=f"scan.{what}.mode")
    if mode == "specific-offsets" and len(table.options.strings("topic")) != 1:
        yield Problem("Currently Kafka source only supports specific offset for single topic.", key="topic")


def _group(table: Table) -> Iterator[Problem]:
    if table.options["scan.bounded.mode"] == "group-offsets" and not table.options.string(f"{PROPERTIES}group.id"):
        yield Problem("'scan.bounded.mode' = 'group-offsets' needs 'properties.group.id'.", key="scan.bounded.mode")


def _client_properties(table: Table) -> Iterator[Problem]:
    properties = table.options.family(PROPERTIES)
    reset = properties.get("auto.offset.reset", "none")
    if reset not in _RESETS:
        text = f"auto.offset.reset can not be set to {reset}. Valid values: [{','.join(_RESETS)}]"
        yield Problem(text, key=f"{PROPERTIES}auto.offset.reset")
    for key, values in _CHOICES.items():
        if properties.get(key, values[0]) not in values:
            text = f"'properties.{key}' is '{properties[key]}'. Valid values: {', '.join(values)}."
            yield Problem(text, key=PROPERTIES + key)
    for key in _COUNTS:
        given = properties.get(key, "1").strip()
        if not given.isdecimal() or int(given) == 0:
            yield Problem(f"'properties.{key}' = '{given}' is no number greater than zero.", key=PROPERTIES + key)


def _bad_records(table: Table) -> Iterator[Problem]:
    diverted = table.options.string("scan.bad-records") == "dead-letter"
    topic = table.options.string("scan.dead-letter.topic")
    if diverted and not topic:
        text = "'scan.dead-letter.topic' is required if 'scan.bad-records' is 'dead-letter', but missing."
        yield Problem(text, key="scan.bad-records")
    if topic and not diverted and not _has_late_rows(table):
        text = (
            "'scan.dead-letter.topic' is only used if 'scan.bad-records' is 'dead-letter', or for late rows of a log "
            "with a WATERMARK."
        )
        yield Problem(text, key="scan.dead-letter.topic")
    if topic and topic in table.options.strings("topic"):
        text = "'scan.dead-letter.topic' is the topic that the table reads: its bad messages would come back."
        yield Problem(text, key="scan.dead-letter.topic")


def _has_late_rows(table: Table) -> bool:
    """Of a changelog, late rows are counted only: they say nothing without those that they change."""
    try:
        return table.watermark is not None and table.connector.gives(table) is Emits.APPEND
    except LayoutProblem:  # another rule reports it
        return True


def _parallelism(table: Table) -> Iterator[Problem]:
    for key in ("scan.parallelism", "sink.parallelism"):
        given = table.options.integer(key)
        if given is not None and given < 1:
            yield Problem(f"'{key}' must be greater than zero.", key=key)


def _partitioner(table: Table) -> Iterator[Problem]:
    key = "sink.partitioner"
    if not table.options.string(key).strip():
        yield Problem("Option 'sink.partitioner' should be a non-empty string.", key=key)
    keyed = "key.fields" in table.options.values and table.options.strings("key.fields")
    if table.options.string(key) == "round-robin" and keyed:
        text = "Currently 'round-robin' partitioner only works when option 'key.fields' is not specified."
        yield Problem(text, key=key)


def _exactly_once(table: Table) -> Iterator[Problem]:
    exactly_once = table.options["sink.delivery-guarantee"] == "exactly-once"
    prefix = table.options.string("sink.transactional-id-prefix")
    if len(prefix.encode()) > 64_000:
        text = "'sink.transactional-id-prefix' must not be longer than 64000 bytes."
        yield Problem(text, key="sink.transactional-id-prefix")
    if table.options["sink.transaction-naming-strategy"] == "INCREMENTING":
        text = (
            "'sink.transaction-naming-strategy' = 'INCREMENTING' is not supported: a job uses its ids again and again, "
        )
        yield Problem(f"{text}as with 'POOLING'. Leave it out.", key="sink.transaction-naming-strategy")
    if exactly_once:
        yield from _transactional_properties(table.options.family(PROPERTIES))


def _transactional_properties(properties: dict[str, str]) -> Iterator[Problem]:
    needed = {"acks": ("all", "-1"), "enable.idempotence": ("true",)}
    for key, values in needed.items():
        if properties.get(key, values[0]).lower() not in values:
            text = f"'properties.{key}' = '{properties[key]}' contradicts 'exactly-once', which needs '{values[0]}'."
            yield Problem(text, key=PROPERTIES + key)
    timeout = properties.get("transaction.timeout.ms", "1")
    if not timeout.isdigit() or int(timeout) == 0:
        text = f"'properties.transaction.timeout.ms' = '{timeout}' is not a number of milliseconds."
        yield Problem(text, key=f"{PROPERTIES}transaction.timeout.ms")


def _topic_creation(table: Table) -> Iterator[Problem]:
    given = [key for key in table.options.given if key.startswith("sink.topic.") and key != "sink.topic.create"]
    if given and not table.options.flag("sink.topic.create"):
        yield Problem(f"'{given[0]}' is only used with 'sink.topic.create' = 'true'.", key=given[0])
    if table.options.flag("sink.topic.create") and table.options.string("topic-pattern"):
        text = "'sink.topic.create' needs the names of the topics in 'topic'; a 'topic-pattern' only finds them."
        yield Problem(text, key="sink.topic.create")
    for key in ("sink.topic.partitions", "sink.topic.replication-factor"):
        number = table.options.integer(key)
        if number is not None and number < 1:
            yield Problem(f"'{key}' must be greater than zero.", key=key)


def _buffer_flush(table: Table) -> Iterator[Problem]:
    rows, interval = (table.options.values.get(f"sink.buffer-flush.{part}") for part in ("max-rows", "interval"))
    if bool(rows) != bool(interval):
        yield Problem(
            "'sink.buffer-flush.max-rows' and 'sink.buffer-flush.interval' must be set to be greater than zero "
            "together to enable sink buffer flushing.",
            key="sink.buffer-flush.max-rows" if rows else "sink.buffer-flush.interval",
        )


def _primary_key(table: Table) -> Iterator[Problem]:
    if table.connector.identifier == "upsert-kafka" and not table.primary_key:
        yield Problem(
            "'upsert-kafka' tables require to define a PRIMARY KEY constraint: its columns are the key of every "
            "message, and tell which row a message updates or deletes. Add PRIMARY KEY (…) NOT ENFORCED."
        )


def _changelog(table: Table) -> Iterator[Problem]:
    try:
        side = value_side(table)
    except LayoutProblem:
        return  # reported by _layout
    if isinstance(side.format, ChangelogFormat):
        yield from _changelog_format(table, side)
    if table.options.string("sink.changelog") == "upsert" and not table.primary_key:
        yield Problem(
            "'sink.changelog' = 'upsert' needs a PRIMARY KEY: it identifies the row that is replaced.",
            key="sink.changelog",
        )


def _changelog_format(table: Table, side: PayloadLayout) -> Iterator[Problem]:
    """A format that writes changes has its own way to do it."""
    assert isinstance(side.format, ChangelogFormat)
    name = side.format.identifier
    for key in ("sink.changelog", "sink.ignore-retractions"):
        if table.options.is_given(key):
            yield Problem(f"'{key}' cannot be set: '{name}' writes every change in its own way.", key=key)
    if side.format.writes_updates(side.options) and not table.primary_key:
        text = f"'{name}.encode.update-as-one-message' needs a PRIMARY KEY: it says which two rows are one update."
        yield Problem(text)


def _layout(table: Table) -> Iterator[Problem]:
    """Keys, values and their formats: the layout itself knows what is wrong with it."""
    try:
        key_side(table)
    except LayoutProblem as error:
        yield from error.problems
    try:
        value_side(table)
    except LayoutProblem as error:
        yield from error.problems


RULES = (
    _topic,
    _startup,
    _partial_changelog,
    _bounded,
    _group,
    _client_properties,
    _bad_records,
    _parallelism,
    _primary_key,
    _changelog,
    _layout,
    _partitioner,
    _exactly_once,
    _topic_creation,
    _buffer_flush,
)


def source_problems(table: Table) -> list[Problem]:
    problems = []
    if table.connector.identifier == "kafka" and table.primary_key:
        side = value_side(table)
        if side.format.insert_only:
            problems.append(_no_key_in_a_log(table, side.format.identifier))
    return problems


def sink_problems(table: Table) -> list[Problem]:
    problems = []
    written = {column.key for column in _metadata(table) if not column.virtual}
    writable = {m.key for m in table.connector.metadata if m.writable}
    for key in sorted(written - writable):
        text = f"Invalid metadata key '{key}': it can be read but not written; keys that can be written are "
        problems.append(Problem(f"{text}{', '.join(sorted(writable))}. Declare the column as VIRTUAL."))
    if {"headers", "header-list"} <= written:
        text = "The writable metadata is ambiguous. Please use either metadata key 'headers' or 'header-list'."
        problems.append(Problem(text))
    problems += [*_registered(table), *_topic_of_rows(table, written)]
    return [*problems, *_partitioner_class(table), *_librdkafka(table, written)]


def _registered(table: Table) -> Iterator[Problem]:
    for _, format_, side in registered_sides(table):
        yield from (Problem(text) for text in format_.sink_problems(side.fields, side.options))


def _topic_of_rows(table: Table, written: set[str]) -> Iterator[Problem]:
    several = names_its_topics(table.options)
    if several and "topic" not in written:
        text = "A table with several topics is written only if each row names one of them: add a column like "
        yield Problem(f"{text}\"topic STRING METADATA FROM 'topic'\".", key="topic")
    if not several and "topic" in written:
        text = (
            "Metadata key 'topic' can be written only if the table has several topics, in 'topic' or 'topic-pattern'."
        )
        yield Problem(f"{text} Declare the column as VIRTUAL.")


def _partitioner_class(table: Table) -> Iterator[Problem]:
    """Its form only: the class is imported when a job starts, not where a script is merely checked."""
    name = table.options.string("sink.partitioner").strip()
    dotted = "." in name and all(part.isidentifier() for part in name.split("."))
    if name and name not in PARTITIONERS and not dotted:
        text = f"Could not find and instantiate partitioner class '{name}': it is neither one of "
        yield Problem(f"{text}{', '.join(PARTITIONERS)} nor 'package.module.Class'.", key="sink.partitioner")


def _librdkafka(table: Table, written: set[str]) -> Iterator[Problem]:
    """What only librdkafka can write needs properties that it understands; anything else Spark's Kafka writer does."""
    why = "'timestamp' is written" if "timestamp" in written else ""
    if table.options["sink.delivery-guarantee"] == "exactly-once":
        why = "'exactly-once' is asked for"
    if why:
        for key, reason in untranslatable(table.options.family(PROPERTIES)).items():
            yield Problem(f"'properties.{key}' cannot be used where {why}: {reason}.", key=PROPERTIES + key)


def _metadata(table: Table) -> list[MetadataColumn]:
    return [column for column in table.columns if isinstance(column, MetadataColumn)]


def _no_key_in_a_log(table: Table, format_name: str) -> Problem:
    return Problem(
        f"The Kafka table '{table.name}' with '{format_name}' format doesn't support defining PRIMARY KEY constraint "
        "on the table, because it can't guarantee the semantic of primary key. Such a table can only be written. To "
        "read it as a log, declare it without PRIMARY KEY; to read the newest row of every key, use 'upsert-kafka'."
    )
