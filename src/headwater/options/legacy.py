"""Legacy connector options, `'connector.type' = 'kafka'`, as a table: legacy key → current keys. No other module knows
a legacy key.

`{side}` in a current key is '' for kafka, and 'key.' and 'value.' for upsert-kafka, whose old tables have one
format for both; `{format}` is the value of 'format.type'.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from headwater.options.base import Option, OptionType
from headwater.options.types import BOOL, LONG, STRING, enum

__all__ = [
    "CLASS",
    "FORMAT",
    "LEGACY_FORMATS",
    "LEGACY_OPTIONS",
    "NOT_HERE",
    "OFFSETS",
    "OLDER_NAMES",
    "PARTITIONER",
    "PROPERTIES",
    "SIDES",
    "SUMMARY",
    "TYPE",
    "TYPES",
    "LegacyOption",
    "is_legacy",
    "of_type",
]

TYPE, FORMAT = "connector.type", "format.type"
PROPERTIES, OFFSETS = "connector.properties.", "connector.specific-offsets"
PARTITIONER, CLASS = "connector.sink-partitioner", "connector.sink-partitioner-class"
SUMMARY = f"Options of a table with '{TYPE}' = '{{}}'."
SIDES = {"kafka": ("",), "upsert-kafka": ("key.", "value.")}
TYPES = tuple(SIDES)
LEGACY_FORMATS = ("csv", "json", "avro")


@dataclass(frozen=True)
class LegacyOption:
    """A legacy key: the keys that replace it (none, if `current` is empty), and for which types and formats there is
    such a key. `value` makes the current value of the legacy one; None if another key says it."""

    option: Option
    current: tuple[str, ...] = ()
    types: tuple[str, ...] = TYPES
    formats: tuple[str, ...] = LEGACY_FORMATS
    value: Callable[[str], str | None] = str

    @property
    def key(self) -> str:
        return self.option.key

    def current_keys(self, sides: tuple[str, ...], format_name: str) -> tuple[str, ...]:
        keys = (key.format(side=side, format=format_name) for key in self.current for side in sides)
        return tuple(dict.fromkeys(keys))


def _choice(key: str, choices: tuple[str, ...], meaning: str) -> Option:
    return Option(key, enum(choices), meaning, choices=choices)


def _required(option: Option) -> Option:
    return replace(option, required=True)


def _no_line_end(text: str) -> str:
    if text:
        raise ValueError("A message is one row and has no line end. Leave it out.")
    return text


def _interval(millis: str) -> str:
    return f"{max(0, int(millis))} ms"


def _format(option: Option, *formats: str) -> LegacyOption:
    name = option.key.removeprefix("format.")
    return LegacyOption(option, ("{side}{format}." + name,), formats=formats)


_VERSION = "Version of the Kafka client. Ignored: one client works with brokers of all versions."

LEGACY_OPTIONS: tuple[LegacyOption, ...] = (
    LegacyOption(_required(_choice(TYPE, TYPES, "Which connector the table uses.")), ("connector",)),
    LegacyOption(_choice("connector.version", ("0.10", "0.11", "universal"), _VERSION), types=("kafka",)),
    LegacyOption(_choice("connector.version", ("0.11", "universal"), _VERSION), types=("upsert-kafka",)),
    LegacyOption(_choice("connector.property-version", ("1",), "Version of these options.")),
    LegacyOption(
        Option("connector.topic", STRING, "The topic. Either this or 'connector.topic-pattern' must be set."),
        ("topic",),
    ),
    LegacyOption(
        Option("connector.topic-pattern", STRING, "Regular expression for the topics to read."), ("topic-pattern",)
    ),
    LegacyOption(
        Option(
            "connector.properties.bootstrap.servers",
            STRING,
            "Addresses of brokers: 'host:port,host:port'.",
            required=True,
        ),
        ("properties.bootstrap.servers",),
    ),
    LegacyOption(
        Option(
            "connector.properties.zookeeper.connect",
            STRING,
            "Addresses of ZooKeeper. Ignored: clients no longer use it.",
        )
    ),
    LegacyOption(
        Option(
            "connector.properties.flink.partition-discovery.interval-millis",
            LONG,
            "Milliseconds between two discoveries of new partitions; 0 or less: never.",
        ),
        ("scan.topic-partition-discovery.interval",),
        value=_interval,
    ),
    LegacyOption(
        Option(
            "connector.properties.*", STRING, "Any setting of the Kafka client; SASL_SSL is one of them.", prefix=True
        ),
        ("properties.*",),
    ),
    LegacyOption(
        _choice(
            "connector.startup-mode",
            ("earliest-offset", "latest-offset", "group-offsets", "specific-offsets", "timestamp"),
            "Where a new job starts to read. Default: 'group-offsets'.",
        ),
        ("scan.startup.mode",),
        types=("kafka",),
    ),
    LegacyOption(
        Option(
            "connector.specific-offsets",
            STRING,
            "First offset of each partition: 'partition:0,offset:42;partition:1,offset:300'.",
        ),
        ("scan.startup.specific-offsets",),
        types=("kafka",),
    ),
    LegacyOption(
        Option("connector.startup-timestamp-millis", LONG, "Milliseconds since 1970 of the first message."),
        ("scan.startup.timestamp-millis",),
        types=("kafka",),
    ),
    LegacyOption(
        _choice(
            PARTITIONER,
            ("fixed", "round-robin", "custom"),
            "Partition of a message. 'fixed': each task writes to one. 'round-robin': in turn. 'custom': as "
            "'connector.sink-partitioner-class' says. Default: by the key, without one as the producer chooses.",
        ),
        ("sink.partitioner",),
        value=lambda text: None if text == "custom" else text,
    ),
    LegacyOption(
        Option(CLASS, STRING, "Name of the class that 'custom' needs: 'package.Class'."),
        ("sink.partitioner",),
    ),
    LegacyOption(
        Option(
            "connector.sink.ignore-retraction",
            BOOL,
            "Whether a retraction is not written at all, instead of as a null value.",
            False,
        ),
        ("sink.ignore-retractions",),
        types=("upsert-kafka",),
    ),
    LegacyOption(
        _choice(
            "update-mode",
            ("append", "retract", "upsert"),
            "'append': inserts only; a query that updates is rejected. 'upsert': the newest row of a key, null for a "
            "deleted one. 'retract': every change, with its kind in the header 'rowkind'. Default: 'upsert' with a "
            "PRIMARY KEY, else 'append'.",
        ),
        ("sink.changelog",),
    ),
    LegacyOption(_required(_choice(FORMAT, LEGACY_FORMATS, "Format of the messages.")), ("{side}format",)),
    LegacyOption(_choice("format.property-version", ("1",), "Version of these options.")),
    LegacyOption(
        _choice(
            "format.derive-schema", ("true",), "Always so: the columns of the table are the schema of its messages."
        )
    ),
    _format(Option("format.field-delimiter", STRING, "Character between two columns.", ","), "csv"),
    _format(Option("format.quote-character", STRING, "Character around a value."), "csv"),
    _format(
        Option("format.disable-quote-character", BOOL, "Whether quote characters are ordinary text.", False), "csv"
    ),
    _format(Option("format.allow-comments", BOOL, "Whether a line that starts with # is skipped.", False), "csv"),
    _format(Option("format.array-element-delimiter", STRING, "Character between elements of an ARRAY.", ";"), "csv"),
    _format(Option("format.escape-character", STRING, "Character that escapes the next one."), "csv"),
    _format(Option("format.null-literal", STRING, "String that represents NULL."), "csv"),
    _format(
        Option(
            "format.ignore-parse-errors",
            BOOL,
            "Whether values that cannot be parsed become NULL and such messages are skipped.",
            False,
        ),
        "csv",
        "json",
    ),
    _format(Option("format.fail-on-missing-field", BOOL, "Whether a missing field is an error.", False), "json"),
    LegacyOption(
        Option("format.line-delimiter", OptionType("String", _no_line_end), "Must be empty: a message is one row.", ""),
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
        "'.partition' and '.offset' of one number belong together.",
    ),
    (r"connector\.properties\.\d+\.(key|value)", TYPES, "'.key' and '.value' of one number belong together."),
    (
        r"(format\.fields|schema)\..*|format\.(schema|json-schema|avro-schema|record-class)",
        TYPES,
        "The columns of the table are the schema of its messages. Leave it out.",
    ),
)


# Names of Flink 1.11 and 1.12 for one connector, which serves brokers of all versions.
OLDER_NAMES = {"kafka-0.10": "kafka", "kafka-0.11": "kafka"}


def is_legacy(key: str) -> bool:
    return key.startswith(("connector.", "format.", "schema.")) or key == "update-mode"


def of_type(kind: str) -> tuple[LegacyOption, ...]:
    return tuple(old for old in LEGACY_OPTIONS if kind in old.types)
