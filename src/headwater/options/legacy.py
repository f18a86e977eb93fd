"""The older spelling, `'connector.type' = 'kafka'`, as a table: old key → today's. Nothing else knows an old key.

`{side}` in one of today's keys is '' for kafka, and 'key.' and 'value.' for upsert-kafka, whose old tables have one
format for both; `{format}` is the value of 'format.type'.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from headwater.options.base import Option, OptionType
from headwater.options.types import BOOL, LONG, STRING, enum

__all__ = [
    "CLASS",
    "FORMAT",
    "NOT_HERE",
    "OLD_KEYS",
    "PARTITIONER",
    "SIDES",
    "SUMMARY",
    "TYPE",
    "TYPES",
    "Old",
    "is_old",
    "of_type",
]

TYPE, FORMAT = "connector.type", "format.type"
PARTITIONER, CLASS = "connector.sink-partitioner", "connector.sink-partitioner-class"
SUMMARY = f"What a table with '{TYPE}' = '{{}}' can say."
SIDES = {"kafka": ("",), "upsert-kafka": ("key.", "value.")}
TYPES = tuple(SIDES)
FORMATS = ("csv", "json", "avro")


@dataclass(frozen=True)
class Old:
    """An old key: what it becomes (nothing, if `today` is empty), and for which types and formats there is such a key.
    `value` makes today's value of the old one; None if another key says it."""

    option: Option
    today: tuple[str, ...] = ()
    types: tuple[str, ...] = TYPES
    formats: tuple[str, ...] = FORMATS
    value: Callable[[str], str | None] = str

    @property
    def key(self) -> str:
        return self.option.key

    def today_of(self, sides: tuple[str, ...], format_name: str) -> tuple[str, ...]:
        keys = (key.format(side=side, format=format_name) for key in self.today for side in sides)
        return tuple(dict.fromkeys(keys))


def _choice(key: str, choices: tuple[str, ...], meaning: str, *, required: bool = False) -> Option:
    return Option(key, enum(choices), meaning, choices=choices, required=required)


def _no_line_end(text: str) -> str:
    if text:
        raise ValueError("A message is one row and has no line end. Leave it out.")
    return text


def _interval(millis: str) -> str:
    return f"{max(0, int(millis))} ms"


def _format(option: Option, *formats: str) -> Old:
    name = option.key.removeprefix("format.")
    return Old(option, ("{side}{format}." + name,), formats=formats)


_VERSION = "Version of Kafka's client, which is of no importance today: one client serves brokers of all versions."

OLD_KEYS: tuple[Old, ...] = (
    Old(_choice(TYPE, TYPES, "Which connector the table uses.", required=True), ("connector",)),
    Old(_choice("connector.version", ("0.10", "0.11", "universal"), _VERSION), types=("kafka",)),
    Old(_choice("connector.version", ("0.11", "universal"), _VERSION), types=("upsert-kafka",)),
    Old(_choice("connector.property-version", ("1",), "Version of this spelling.")),
    Old(
        Option("connector.topic", STRING, "The topic. Either this or 'connector.topic-pattern' must be set."),
        ("topic",),
    ),
    Old(Option("connector.topic-pattern", STRING, "Regular expression for the topics to read."), ("topic-pattern",)),
    Old(
        Option(
            "connector.properties.bootstrap.servers",
            STRING,
            "Addresses of brokers: 'host:port,host:port'.",
            required=True,
        ),
        ("properties.bootstrap.servers",),
    ),
    Old(
        Option("connector.properties.zookeeper.connect", STRING, "Addresses of ZooKeeper, which no client asks today.")
    ),
    Old(
        Option(
            "connector.properties.flink.partition-discovery.interval-millis",
            LONG,
            "Milliseconds between two looks for new partitions; 0 or less for never.",
        ),
        ("scan.topic-partition-discovery.interval",),
        value=_interval,
    ),
    Old(
        Option(
            "connector.properties.*", STRING, "Any setting of the Kafka client; SASL_SSL is one of them.", prefix=True
        ),
        ("properties.*",),
    ),
    Old(
        _choice(
            "connector.startup-mode",
            ("earliest-offset", "latest-offset", "group-offsets", "specific-offsets", "timestamp"),
            "Where a new job starts to read. Default: 'group-offsets'.",
        ),
        ("scan.startup.mode",),
        types=("kafka",),
    ),
    Old(
        Option(
            "connector.specific-offsets",
            STRING,
            "First offset of each partition: 'partition:0,offset:42;partition:1,offset:300'.",
        ),
        ("scan.startup.specific-offsets",),
        types=("kafka",),
    ),
    Old(
        Option("connector.startup-timestamp-millis", LONG, "Milliseconds since 1970 of the first message."),
        ("scan.startup.timestamp-millis",),
        types=("kafka",),
    ),
    Old(
        _choice(
            PARTITIONER,
            ("fixed", "round-robin", "custom"),
            "Partition of a message. 'fixed': each task writes to one. 'round-robin': in turn. 'custom': as "
            "'connector.sink-partitioner-class' says. Default: by the key, or if there is none as the producer likes.",
        ),
        ("sink.partitioner",),
        value=lambda text: None if text == "custom" else text,
    ),
    Old(
        Option(CLASS, STRING, "Name of the class that 'custom' needs: 'package.Class'."),
        ("sink.partitioner",),
    ),
    Old(
        Option(
            "connector.sink.ignore-retraction",
            BOOL,
            "Whether a row that is taken back is not written at all, instead of as a null value.",
            False,
        ),
        ("sink.ignore-retractions",),
        types=("upsert-kafka",),
    ),
    Old(
        _choice(
            "update-mode",
            ("append", "retract", "upsert"),
            "'append': rows only; a query that updates is refused. 'upsert': the newest row of a key, null for what "
            "is deleted. 'retract': every change, with its kind in the header 'rowkind'. Default: 'upsert' with a "
            "PRIMARY KEY, else 'append'.",
        ),
        ("sink.changelog",),
    ),
    Old(_choice(FORMAT, FORMATS, "Format of the messages.", required=True), ("{side}format",)),
    Old(_choice("format.property-version", ("1",), "Version of this spelling.")),
    Old(_choice("format.derive-schema", ("true",), "The messages have the table's columns, always.")),
    _format(Option("format.field-delimiter", STRING, "Character between two columns.", ","), "csv"),
    _format(Option("format.quote-character", STRING, "Character around a value."), "csv"),
    _format(Option("format.disable-quote-character", BOOL, "Whether quotes mean nothing.", False), "csv"),
    _format(Option("format.allow-comments", BOOL, "Whether a line that starts with # is skipped.", False), "csv"),
    _format(Option("format.array-element-delimiter", STRING, "Character between elements of an ARRAY.", ";"), "csv"),
    _format(Option("format.escape-character", STRING, "Character that makes the next one an ordinary one."), "csv"),
    _format(Option("format.null-literal", STRING, "Text that stands for NULL."), "csv"),
    _format(
        Option("format.ignore-parse-errors", BOOL, "Whether what cannot be read is NULL or skipped.", False),
        "csv",
        "json",
    ),
    _format(Option("format.fail-on-missing-field", BOOL, "Whether a missing field is an error.", False), "json"),
    Old(
        Option("format.line-delimiter", OptionType("String", _no_line_end), "End of a line: there is none.", ""),
        formats=("csv",),
    ),
)

_FROM_THE_START = "An upsert-kafka table is always read from the beginning, or its rows would not be complete."

# What people bring along: pattern of the key, for which types, and why there is no such thing here.
NOT_HERE: tuple[tuple[str, tuple[str, ...], str], ...] = (
    (r"connector\.(startup-.*|specific-offsets.*)", ("upsert-kafka",), _FROM_THE_START),
    (r"connector\.sink\.ignore-retraction", ("kafka",), "It is for 'connector.type' = 'upsert-kafka'."),
    (
        r"connector\.specific-offsets\..*",
        ("kafka",),
        "Write 'connector.specific-offsets' = 'partition:0,offset:42;partition:1,offset:300'.",
    ),
    (r"connector\.properties\.\d+\.(key|value)", TYPES, "Write 'connector.properties.<key>' = '<value>'."),
    (
        r"(format\.fields|schema)\..*|format\.(schema|json-schema|avro-schema|record-class)",
        TYPES,
        "The columns of the table are the schema of its messages. Leave it out.",
    ),
)


def is_old(key: str) -> bool:
    return key.startswith(("connector.", "format.", "schema.")) or key == "update-mode"


def of_type(kind: str) -> tuple[Old, ...]:
    return tuple(old for old in OLD_KEYS if kind in old.types)
