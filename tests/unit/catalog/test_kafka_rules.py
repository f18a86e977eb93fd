"""Every rule of `kafka` and `upsert-kafka` tables, with the words people search for."""

from __future__ import annotations

import pytest
from catalog_scripts import COLUMNS, KAFKA, UPSERT, create

from headwater.catalog.validation import check_sink, check_source
from headwater.errors import ValidationError

KEYED = f"{COLUMNS}, PRIMARY KEY (id) NOT ENFORCED"
SIDES = {"format": None, "key.format": "json", "value.format": "json", "key.fields": "id"}
OFFSETS = "partition:0,offset:42;partition:1,offset:300"


def _problem(columns: str, options: dict[str, str | None]) -> str:
    with pytest.raises(ValidationError) as raised:
        create(columns, options)
    return str(raised.value)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"topic-pattern": "t.*"}, "Option 'topic' and 'topic-pattern' shouldn't be set together."),
        ({"topic": None}, "Either 'topic' or 'topic-pattern' must be set."),
        (
            {"scan.startup.mode": "timestamp"},
            "'scan.startup.timestamp-millis' is required in 'timestamp' startup mode but missing.",
        ),
        (
            {"scan.startup.mode": "specific-offsets"},
            "'scan.startup.specific-offsets' is required in 'specific-offsets' startup mode but missing.",
        ),
        (
            {"scan.startup.mode": "specific-offsets", "scan.startup.specific-offsets": OFFSETS, "topic": "a;b"},
            "Currently Kafka source only supports specific offset for single topic.",
        ),
        (
            {"scan.bounded.mode": "timestamp"},
            "'scan.bounded.timestamp-millis' is required in 'timestamp' bounded mode but missing.",
        ),
        (
            {"scan.bounded.mode": "specific-offsets"},
            "'scan.bounded.specific-offsets' is required in 'specific-offsets' bounded mode but missing.",
        ),
        (
            {"scan.bounded.mode": "specific-offsets", "scan.bounded.specific-offsets": "0:42"},
            (
                "Invalid properties 'scan.bounded.specific-offsets' should follow the format "
                "'partition:0,offset:42;partition:1,offset:300', but is '0:42'."
            ),
        ),
        ({"scan.bounded.mode": "group-offsets"}, "'scan.bounded.mode' = 'group-offsets' needs 'properties.group.id'."),
        (
            {**SIDES, "sink.partitioner": "round-robin"},
            "Currently 'round-robin' partitioner only works when option 'key.fields' is not specified.",
        ),
        ({"sink.changelog": "upsert"}, "'sink.changelog' = 'upsert' needs a PRIMARY KEY"),
        ({"sink.partitioner": ""}, "Option 'sink.partitioner' should be a non-empty string."),
        (
            {"key.fields": "id"},
            "The option 'key.fields' can only be declared if a key format is defined using 'key.format'.",
        ),
        (
            {"key.format": "json"},
            "A key format 'key.format' requires the declaration of one or more of key fields using 'key.fields'.",
        ),
        (
            {**SIDES, "key.fields": "idd"},
            (
                "Could not find the field 'idd' in the table schema for usage in the key format. A key field must be a "
                "regular, physical column. The following columns can be selected in the 'key.fields' option:\n[id, name"
            ),
        ),
        (
            {**SIDES, "key.fields-prefix": "k_", "value.fields-include": "EXCEPT_KEY"},
            (
                "All fields in 'key.fields' must be prefixed with 'k_' when option 'key.fields-prefix' is set but "
                "field 'id' is not prefixed."
            ),
        ),
        (
            {**SIDES, "key.fields-prefix": "i"},
            (
                "A key prefix is not allowed when option 'value.fields-include' is set to 'ALL'. Set it to "
                "'EXCEPT_KEY' instead to avoid field overlaps."
            ),
        ),
        (
            {"sink.semantic": "exactly-once", "sink.transactional-id-prefix": "p" * 64_001},
            "'sink.transactional-id-prefix' must not be longer than 64000 bytes.",
        ),
        (
            {"sink.semantic": "exactly-once", "sink.transaction-naming-strategy": "INCREMENTING"},
            "'sink.transaction-naming-strategy' = 'INCREMENTING' is not supported",
        ),
        (
            {"sink.delivery-guarantee": "exactly-once", "properties.acks": "1"},
            "'properties.acks' = '1' contradicts 'exactly-once', which needs 'all'.",
        ),
        (
            {"sink.delivery-guarantee": "exactly-once", "properties.enable.idempotence": "false"},
            "'properties.enable.idempotence' = 'false' contradicts 'exactly-once'",
        ),
        (
            {"sink.delivery-guarantee": "exactly-once", "properties.transaction.timeout.ms": "1 min"},
            "'properties.transaction.timeout.ms' = '1 min' is not a number of milliseconds.",
        ),
        ({"sink.topic.partitions": "3"}, "'sink.topic.partitions' is only used with 'sink.topic.create' = 'true'."),
        ({"sink.topic.config.retention.ms": "3"}, "is only used with 'sink.topic.create' = 'true'."),
        (
            {"sink.topic.create": "true", "sink.topic.replication-factor": "0"},
            "'sink.topic.replication-factor' must be greater than zero.",
        ),
        (
            {"sink.topic.create": "true", "topic": None, "topic-pattern": "a.*"},
            "'sink.topic.create' needs the names of the topics in 'topic'",
        ),
        ({"sink.buffer-flush.max-rows": "5"}, "Sink buffer flush is only supported in upsert-kafka."),
        ({"format": None}, "Could not find required scan format 'value.format'."),
        ({"format": "jsn"}, "Could not find any factory for identifier 'jsn'"),
        (
            {"format": "jsn"},
            "Available factory identifiers are: avro, avro-confluent, canal-json, csv, debezium-avro-confluent,",
        ),
        (
            {"properties.auto.offset.reset": "first"},
            "auto.offset.reset can not be set to first. Valid values: [latest,earliest,none]",
        ),
        (
            {"properties.isolation.level": "committed"},
            "'properties.isolation.level' is 'committed'. Valid values: read_committed, read_uncommitted.",
        ),
        ({"properties.delivery.timeout.ms": "0"}, "'properties.delivery.timeout.ms' = '0' is no number greater than"),
        ({"properties.buffer.memory": "32MB"}, "'properties.buffer.memory' = '32MB' is no number greater than zero."),
        (
            {"properties.max.in.flight.requests.per.connection": "five"},
            "'properties.max.in.flight.requests.per.connection' = 'five' is no number greater than zero.",
        ),
        ({"properties.security.protocol": "TLS"}, "Valid values: PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL."),
        (
            {
                "topic": None,
                "topic-pattern": "t.*",
                "scan.startup.mode": "specific-offsets",
                "scan.startup.specific-offsets": OFFSETS,
            },
            "Currently Kafka source only supports specific offset for single topic.",
        ),
        ({"scan.on-data-loss": "ignore"}, "'ignore' is not one of fail, continue."),
        ({"scan.parallelism": "0"}, "'scan.parallelism' must be greater than zero."),
        ({"format": "raw"}, "The 'raw' format only supports single physical column."),
        ({"format": "csv", "csv.field-delimiter": "ab"}, "must be a string with single character, but was: ab"),
        ({"format": "avro", "avro.codec": "snappy"}, "'avro.codec' is for files."),
        (
            {"json.ignore-parse-errors": "true", "json.fail-on-missing-field": "true"},
            "fail-on-missing-field and ignore-parse-errors shouldn't both be true.",
        ),
        ({"json.timestamp-format.standard": "ISO"}, "'ISO' is not one of SQL, ISO-8601."),
        (
            {"key.format": "canal-json", "key.fields": "id"},
            "A key format should only deal with INSERT-only records. But canal-json has a changelog mode of its own.",
        ),
        (
            {"format": "ogg-json", "sink.changelog": "retract"},
            "'sink.changelog' cannot be set: 'ogg-json' writes every",
        ),
        (
            {"format": "ogg-json", "ogg-json.encode.update-as-one-message": "true"},
            "'ogg-json.encode.update-as-one-message' needs a PRIMARY KEY: it says which two rows are one update.",
        ),
        ({"format": "canal-json", "canal-json.table.include": "("}, "'table.include' is no regular expression"),
        ({"value.json.ignore-parse-errors": "true"}, "Did you mean 'json.ignore-parse-errors'?"),
    ],
)
def test_rules_of_kafka(change: dict[str, str | None], problem: str) -> None:
    assert problem in _problem(COLUMNS, {**KAFKA, **change})


@pytest.mark.parametrize(
    ("columns", "change", "problem"),
    [
        (COLUMNS, {}, "'upsert-kafka' tables require to define a PRIMARY KEY constraint: its columns are"),
        (KEYED, {"key.format": None}, "key.format  (Format of message keys"),
        (KEYED, {"value.format": None}, "Missing required options are:\n  value.format"),
        (KEYED, {"format": "json"}, "format  An upsert-kafka table has 'key.format' and 'value.format'."),
        (KEYED, {"key.fields": "id"}, "key.fields  The key of an upsert-kafka table is its PRIMARY KEY."),
        (
            KEYED,
            {"scan.startup.mode": "latest-offset"},
            (
                "'scan.startup.mode' = 'latest-offset' would leave out rows: a changelog is only whole from its "
                "beginning. If that is meant, set 'scan.startup.partial-changelog' = 'true'."
            ),
        ),
        (
            KEYED,
            {"scan.startup.partial-changelog": "true"},
            "'scan.startup.partial-changelog' is only used with a 'scan.startup.mode' other than 'earliest-offset'.",
        ),
        (
            KEYED,
            {"scan.startup.mode": "timestamp", "scan.startup.partial-changelog": "true"},
            "'scan.startup.timestamp-millis' is required in 'timestamp' startup mode but missing.",
        ),
        (KEYED, {"sink.partitioner": ""}, "Option 'sink.partitioner' should be a non-empty string."),
        (KEYED, {"sink.changelog": "all"}, "'all' is not one of append, upsert, retract."),
        (KEYED, {"key.fields-prefix": "k_"}, "A key prefix is not allowed when option 'value.fields-include' is set"),
        (
            KEYED,
            {"key.fields-prefix": "k_", "value.fields-include": "EXCEPT_KEY"},
            "when option 'key.fields-prefix' is set but field 'id' is not prefixed.",
        ),
        (
            KEYED,
            {"sink.buffer-flush.max-rows": "5"},
            "'sink.buffer-flush.max-rows' and 'sink.buffer-flush.interval' must be set to be greater than zero",
        ),
        (
            KEYED,
            {"value.format": "debezium-json"},
            "'upsert-kafka' connector doesn't support 'debezium-json' as value format, because",
        ),
    ],
)
def test_rules_of_upsert_kafka(columns: str, change: dict[str, str | None], problem: str) -> None:
    assert problem in _problem(columns, {**UPSERT, **change})


@pytest.mark.parametrize(
    "change",
    [
        {"scan.startup.mode": "specific-offsets", "scan.startup.specific-offsets": OFFSETS},
        {"scan.startup.mode": "timestamp", "scan.startup.timestamp-millis": "1700000000000"},
        {"scan.bounded.mode": "specific-offsets", "scan.bounded.specific-offsets": OFFSETS},
        {"scan.bounded.mode": "timestamp", "scan.bounded.timestamp-millis": "1700000000000"},
        {"scan.bounded.mode": "latest-offset", "scan.startup.mode": "earliest-offset"},
        {"scan.bounded.mode": "group-offsets", "properties.group.id": "g"},
        {"sink.partitioner": "fixed", "sink.parallelism": "2", "scan.parallelism": "3"},
        {"sink.partitioner": "round-robin", "sink.delivery-guarantee": "none"},
        {"sink.semantic": "at-least-once"},
        {"sink.semantic": "exactly-once"},
        {"sink.delivery-guarantee": "exactly-once", "sink.transaction-naming-strategy": "POOLING"},
        {"sink.topic.create": "true", "sink.topic.partitions": "3", "sink.topic.config.retention.ms": "1000"},
        {"topic": "a;b"},
        {"topic": None, "topic-pattern": "a.*"},
        {**SIDES, "value.fields-include": "EXCEPT_KEY"},
        {"format": "csv", "csv.null-literal": "", "csv.field-delimiter": "\\t"},
        {"properties.sasl.jaas.config": "secret", "properties.auto.offset.reset": "earliest"},
        {"scan.topic-partition-discovery.interval": "0"},
        {"topic": "a; b"},
        {"topic": None, "topic-pattern": "a-[0-9]+"},
        {"scan.on-data-loss": "continue", "properties.isolation.level": "read_committed"},
    ],
)
def test_tables_that_keep_to_the_rules(change: dict[str, str | None]) -> None:
    assert create(COLUMNS, {**KAFKA, **change})


def test_a_changelog_may_start_later_if_that_is_asked_for() -> None:
    assert create(KEYED, {**UPSERT, "scan.startup.mode": "earliest-offset"})
    later = {"scan.startup.mode": "latest-offset", "scan.startup.partial-changelog": "true"}
    assert create(KEYED, {**UPSERT, **later})


def test_offsets_are_read() -> None:
    change = {"scan.startup.mode": "specific-offsets", "scan.startup.specific-offsets": OFFSETS}
    table = create(COLUMNS, {**KAFKA, **change})
    assert table.options["scan.startup.specific-offsets"] == {0: 42, 1: 300}
    assert table.options.string("scan.startup.specific-offsets") == OFFSETS


def test_a_changelog_may_have_a_primary_key_and_metadata_of_its_format() -> None:
    columns = f"{KEYED}, t STRING METADATA FROM 'value.source.table' VIRTUAL"
    check_source(create(columns, {**KAFKA, "format": "debezium-json"}))
    check_sink(create(columns, {**KAFKA, "format": "debezium-json"}))
    assert "Invalid metadata key 'value.source.table'" in _problem(columns, KAFKA)
    with pytest.raises(ValidationError, match="it can be read but not written"):
        check_sink(create(columns.replace(" VIRTUAL", ""), {**KAFKA, "format": "debezium-json"}))


def test_no_problem_is_told_twice() -> None:
    text = _problem(KEYED, {**KAFKA, "format": "jsn"})
    assert text.count("Could not find any factory") == 1


@pytest.mark.parametrize(
    ("change", "key"),
    [
        ({"scan.startup.timestamp-millis": "5"}, "scan.startup.timestamp-millis"),
        ({"scan.bounded.specific-offsets": "partition:0,offset:1"}, "scan.bounded.specific-offsets"),
        ({"sink.transactional-id-prefix": "p"}, "sink.transactional-id-prefix"),
        ({"value.format": "csv"}, "value.format"),
        ({"properties.key.serializer": "x"}, "properties.key.serializer"),
        ({"properties.value.deserializer": "x"}, "properties.value.deserializer"),
        ({"scan.watermark.emit.strategy": "on-event"}, "scan.watermark.emit.strategy"),
        ({"scan.watermark.emit.on-event.gap": "5"}, "scan.watermark.emit.on-event.gap"),
        ({"scan.watermark.alignment.group": "g"}, "scan.watermark.alignment.group"),
        ({"scan.watermark.alignment.max-drift": "1 min"}, "scan.watermark.alignment.max-drift"),
        ({"scan.watermark.alignment.update-interval": "1 s"}, "scan.watermark.alignment.update-interval"),
    ],
)
def test_what_has_no_effect_is_a_note(change: dict[str, str], key: str) -> None:
    table = create("id INT", {**KAFKA, **change})
    (note,) = table.notes
    assert note.startswith(f"'{key}' of table 't' has no effect: ")
    assert key not in table.raw_options


def test_a_dead_letter_topic_is_for_bad_messages_or_late_rows() -> None:
    late = {**KAFKA, "scan.dead-letter.topic": "late"}
    timed = "id INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts"
    assert create(timed, late).options.string("scan.dead-letter.topic") == "late"
    assert "'scan.dead-letter.topic' is only used if" in _problem("id INT", late)
    assert "'scan.dead-letter.topic' is only used if" in _problem(timed, {**late, "format": "debezium-json"})
