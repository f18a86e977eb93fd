"""Legacy connector options: every key with every value, what replaces it, and problems in the keys that were written."""

# ruff: noqa: E501 - an option and what is said about it stand on one line
from __future__ import annotations

import pytest

from headwater.errors import HeadwaterError
from headwater.options.legacy import LEGACY_OPTIONS
from headwater.options.spelling import respelled
from headwater.options.translate import spelling_of
from headwater.session import Session

SERVERS = "connector.properties.bootstrap.servers"
KAFKA = {"connector.type": "kafka", "connector.topic": "t", SERVERS: "h:1", "format.type": "csv"}
UPSERT = {**KAFKA, "connector.type": "upsert-kafka"}
CURRENT = {"connector": "kafka", "topic": "t", "properties.bootstrap.servers": "h:1", "format": "csv"}
CURRENT_UPSERT = {
    "connector": "upsert-kafka",
    "topic": "t",
    "properties.bootstrap.servers": "h:1",
    "key.format": "csv",
    "value.format": "csv",
}
KEY = "primary key (car_id) not enforced"


def clause(options: dict[str, str | None]) -> str:
    return ", ".join(f"'{key}' = '{value}'" for key, value in options.items() if value is not None)


def table(options: dict[str, str | None], *, key: bool = False) -> str:
    return f"create table cars (car_id STRING, car_speed INT{', ' + KEY if key else ''})\nwith ({clause(options)});\n"


def current(options: dict[str, str | None], *, key: bool = False) -> dict[str, str]:
    session = Session()
    session.sql(table(options, key=key))
    return dict(session.catalog.table("cars").raw_options)


def problem(options: dict[str, str | None], *, key: bool = False, more: str = "") -> str:
    with pytest.raises(HeadwaterError) as raised:
        Session().check(table(options, key=key) + more)
    return str(raised.value)


KAFKA_VALUES: list[tuple[dict[str, str | None], dict[str, str]]] = [
    ({}, {}),
    *(({"connector.version": version}, {}) for version in ("0.10", "0.11", "universal")),
    ({"connector.property-version": "1", "format.property-version": "1", "format.derive-schema": "true"}, {}),
    *(({"format.type": name}, {"format": name}) for name in ("csv", "json", "avro")),
    ({"format.field-delimiter": "|"}, {"csv.field-delimiter": "|"}),
    ({"format.quote-character": "~"}, {"csv.quote-character": "~"}),
    ({"format.disable-quote-character": "true"}, {"csv.disable-quote-character": "true"}),
    ({"format.allow-comments": "true"}, {"csv.allow-comments": "true"}),
    ({"format.ignore-parse-errors": "true"}, {"csv.ignore-parse-errors": "true"}),
    ({"format.array-element-delimiter": "+"}, {"csv.array-element-delimiter": "+"}),
    ({"format.escape-character": "!"}, {"csv.escape-character": "!"}),
    ({"format.null-literal": "n/a"}, {"csv.null-literal": "n/a"}),
    ({"format.line-delimiter": ""}, {}),
    (
        {"format.type": "json", "format.fail-on-missing-field": "true"},
        {"format": "json", "json.fail-on-missing-field": "true"},
    ),
    (
        {"format.type": "json", "format.ignore-parse-errors": "true"},
        {"format": "json", "json.ignore-parse-errors": "true"},
    ),
    *(
        ({"connector.startup-mode": mode}, {"scan.startup.mode": mode})
        for mode in ("earliest-offset", "latest-offset", "group-offsets")
    ),
    (
        {"connector.startup-mode": "specific-offsets", "connector.specific-offsets": "partition:0,offset:42"},
        {"scan.startup.mode": "specific-offsets", "scan.startup.specific-offsets": "partition:0,offset:42"},
    ),
    (
        {"connector.startup-mode": "timestamp", "connector.startup-timestamp-millis": "7"},
        {"scan.startup.mode": "timestamp", "scan.startup.timestamp-millis": "7"},
    ),
    (
        {"connector.properties.group.id": "g", "connector.properties.zookeeper.connect": "z:1"},
        {"properties.group.id": "g"},
    ),
    (
        {"connector.properties.flink.partition-discovery.interval-millis": "5000"},
        {"scan.topic-partition-discovery.interval": "5000 ms"},
    ),
    (
        {"connector.properties.flink.partition-discovery.interval-millis": "-1"},
        {"scan.topic-partition-discovery.interval": "0 ms"},
    ),
    (
        {"connector.properties.security.protocol": "SASL_SSL", "connector.properties.sasl.jaas.config": "x"},
        {"properties.security.protocol": "SASL_SSL", "properties.sasl.jaas.config": "x"},
    ),
]
BOTH_VALUES: list[tuple[dict[str, str | None], dict[str, str]]] = [
    (
        {"connector.sink-partitioner": "custom", "connector.sink-partitioner-class": "org.mycompany.MyPartitioner"},
        {"sink.partitioner": "org.mycompany.MyPartitioner"},
    ),
    *(({"connector.sink-partitioner": name}, {"sink.partitioner": name}) for name in ("fixed", "round-robin")),
    *(({"update-mode": mode}, {"sink.changelog": mode}) for mode in ("append", "retract", "upsert")),
]
UPSERT_VALUES: list[tuple[dict[str, str | None], dict[str, str]]] = [
    *(({"connector.version": version}, {}) for version in ("0.11", "universal")),
    *(({"format.type": name}, {"key.format": name, "value.format": name}) for name in ("csv", "json", "avro")),
    ({"format.field-delimiter": ";"}, {"key.csv.field-delimiter": ";", "value.csv.field-delimiter": ";"}),
    *(({"connector.sink.ignore-retraction": flag}, {"sink.ignore-retractions": flag}) for flag in ("true", "false")),
    ({"connector.properties.acks": "all"}, {"properties.acks": "all"}),
]


@pytest.mark.parametrize(("old", "today"), KAFKA_VALUES)
def test_what_a_kafka_table_says(old: dict[str, str | None], today: dict[str, str]) -> None:
    assert current({**KAFKA, **old}) == {**CURRENT, **today}


@pytest.mark.parametrize(("old", "today"), BOTH_VALUES)
def test_what_both_tables_say(old: dict[str, str | None], today: dict[str, str]) -> None:
    assert current({**KAFKA, **old}, key=True) == {**CURRENT, **today}
    assert current({**UPSERT, **old}, key=True) == {**CURRENT_UPSERT, **today}


@pytest.mark.parametrize(("old", "today"), UPSERT_VALUES)
def test_what_an_upsert_kafka_table_says(old: dict[str, str | None], today: dict[str, str]) -> None:
    assert current({**UPSERT, **old}, key=True) == {**CURRENT_UPSERT, **today}


def test_every_old_key_is_tried() -> None:
    tried = {key for old, _ in (*KAFKA_VALUES, *BOTH_VALUES, *UPSERT_VALUES) for key in old} | KAFKA.keys()
    assert {old.key for old in LEGACY_OPTIONS} - {"connector.properties.*"} <= tried | {"connector.topic-pattern"}


def test_topics_by_a_pattern() -> None:
    old = {**KAFKA, "connector.topic": None, "connector.topic-pattern": "t.*"}
    assert current(old) == {**{k: v for k, v in CURRENT.items() if k != "topic"}, "topic-pattern": "t.*"}


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"connector.type": None}, "  connector.type  (Which connector the table uses.)"),
        ({"connector.type": "jdbc"}, "Invalid value for option 'connector.type'.\n  'jdbc' is not one of kafka, upsert-k"),
        ({"connector.version": "0.9"}, "'0.9' is not one of 0.10, 0.11, universal."),
        ({"connector.version": ""}, "Invalid value for option 'connector.version'."),
        ({"connector.property-version": "2"}, "'2' is not one of 1."),
        ({"connector.topic": None}, "Either 'connector.topic' or 'connector.topic-pattern' must be set."),
        ({"connector.topic-pattern": "t.*"}, "Option 'connector.topic' and 'connector.topic-pattern' shouldn't be set"),
        ({SERVERS: None}, f"Missing required options are:\n  {SERVERS}"),
        ({"format.type": None}, "Missing required options are:\n  format.type"),
        ({"format.type": "xml"}, "'xml' is not one of csv, json, avro."),
        ({"format.type": "json", "format.field-delimiter": ";"}, "'format.field-delimiter' is only for 'format.type' = 'csv'"),
        ({"format.type": "avro", "format.field-delimiter": ";"}, "and here it is 'avro'."),
        ({"format.field-delimiter": ";;"}, "Option 'format.field-delimiter' must be a string with single character"),
        ({"format.fail-on-missing-field": "true"}, "is only for 'format.type' = 'json', and here it is 'csv'."),
        ({"format.line-delimiter": "x"}, "A message is one row and has no line end. Leave it out."),
        ({"format.derive-schema": "false"}, "'false' is not one of true."),
        ({"format.json-schema": "{}"}, "format.json-schema  The columns of the table are the schema of its messages."),
        ({"format.avro-schema": "{}"}, "format.avro-schema  The columns of the table are the schema of its messages."),
        ({"format.record-class": "x"}, "format.record-class  The columns of the table are the schema"),
        ({"format.fields.0.name": "a"}, "format.fields.0.name  The columns of the table are the schema"),
        ({"connector.properties.0.key": "a"}, "connector.properties.0.key  '.key' and '.value' of one number belong together."),
        ({"connector.specific-offsets.0.offset": "1"}, "'.partition' and '.offset' of one number belong together."),
        ({"connector.startup-mode": "earliest"}, "Did you mean 'earliest-offset'?"),
        ({"connector.startup-mode": "timestamp"}, "'connector.startup-timestamp-millis' is required in 'timestamp'"),
        ({"connector.startup-mode": "specific-offsets"}, "'connector.specific-offsets' is required in 'specific-offsets'"),
        ({"connector.startup-mode": "specific-offsets", "connector.specific-offsets": "0:1"}, "Invalid properties 'connector.specific-offsets' should follow the format"),
        ({"connector.startup-timestamp-millis": "x"}, "'x' is not an integer."),
        ({"connector.sink-partitioner": "hash"}, "'hash' is not one of fixed, round-robin, custom."),
        ({"connector.sink-partitioner": "custom"}, "= 'custom' needs 'connector.sink-partitioner-class'"),
        ({"connector.sink-partitioner-class": "a.B"}, "is only used with 'connector.sink-partitioner' = 'custom'."),
        ({"connector.sink.ignore-retraction": "true"}, "It is for 'connector.type' = 'upsert-kafka'."),
        ({"update-mode": "all"}, "'all' is not one of append, retract, upsert."),
        ({"update-mode": "upsert"}, "'update-mode' = 'upsert' needs a PRIMARY KEY"),
        ({"connector.topik": "x"}, "  connector.topik  Did you mean 'connector.topic'?"),
        ({"conector.version": "0.11"}, "  conector.version  Did you mean 'connector.version'?"),
        ({"format.field_delimiter": ";"}, "Did you mean 'format.field-delimiter'?"),
        (
            {"topic": "x", "value.json.ignore-parse-errors": "true", "properties.acks": "1"},
            "'connector.topic', 'connector.type', 'format.type'. Current keys: 'properties.acks', 'topic', 'value.json.ignore-parse-errors'.",
        ),
        ({"connector": "kafka", "connector.type": None}, "The table mixes legacy and current options."),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_kafka_table(change: dict[str, str | None], text: str) -> None:
    assert text in problem({**KAFKA, **change})


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"connector.version": "0.10"}, "'0.10' is not one of 0.11, universal."),
        ({"connector.startup-mode": "latest-offset"}, "connector.startup-mode  An upsert-kafka table is always read from"),
        ({"connector.startup-timestamp-millis": "1"}, "An upsert-kafka table is always read from the beginning"),
        ({"connector.specific-offsets": "x"}, "An upsert-kafka table is always read from the beginning"),
        ({"connector.sink.ignore-retraction": "maybe"}, "'maybe' is neither 'true' nor 'false'."),
        ({"connector.sink-partitioner": "custom"}, "= 'custom' needs 'connector.sink-partitioner-class'"),
        ({"format.type": "json", "format.field-delimiter": ";"}, "'format.field-delimiter' is only for 'format.type' = 'csv'"),
        ({"format.field-delimiter": ";;"}, "Option 'format.field-delimiter' must be a string with single character"),
        ({"key.format": "csv"}, "Current keys: 'key.format'."),
    ],
)  # fmt: skip
def test_what_is_wrong_with_an_upsert_kafka_table(change: dict[str, str | None], text: str) -> None:
    assert text in problem({**UPSERT, **change}, key=True)


def test_an_upsert_kafka_table_needs_a_key() -> None:
    assert "'upsert-kafka' tables require to define a PRIMARY KEY" in problem(dict(UPSERT))


def test_everything_wrong_is_said_at_once_and_no_secret_is() -> None:
    text = problem(
        {**KAFKA, "connector.topik": "x", "update-mode": "y", "connector.properties.ssl.key.password": "hush"}
    )
    assert "2 problems" in text
    assert "hush" not in text
    assert "`headwater options kafka` lists the " in text


def test_a_column_may_be_called_like_an_option() -> None:
    with pytest.raises(HeadwaterError, match="for field 'topic'"):
        Session().check(f"create table t (topic MAP<STRING, INT>) with ({clause(dict(KAFKA))});")


UPDATING = "insert into cars select car_id, cast(count(*) as int) from cars group by car_id;"


def test_append_takes_inserts_only() -> None:
    text = problem({**UPSERT, "update-mode": "append"}, key=True, more=UPDATING)
    assert "'update-mode' = 'append' means that it takes inserts only." in text
    assert "Set 'update-mode' to 'upsert', for a table with a PRIMARY KEY, or to 'retract'" in text


def test_a_class_that_cannot_be_one_is_named_with_its_key() -> None:
    custom = {"connector.sink-partitioner": "custom", "connector.sink-partitioner-class": "MyPartitioner"}
    options = {**KAFKA, **custom}
    text = problem(options, more="insert into cars values ('a', 1);")
    column = table(options).splitlines()[1].index("'connector.sink-partitioner-class'") + 1
    assert "Could not find and instantiate partitioner class 'MyPartitioner'" in text
    assert f"line 2, column {column}\n" in text


def test_hints_are_in_the_spelling_of_their_table() -> None:
    session = Session()
    session.sql(table(dict(KAFKA)) + "create table p (car_id STRING, n INT) with ('connector' = 'print');")
    into = "insert into p select car_id, car_speed from cars /*+ OPTIONS({}) */;"
    (plan,) = session.check(into.format("'connector.startup-mode' = 'latest-offset'"))
    assert "latest-offset" in str(plan)
    for hint, text in (
        ("'scan.startup.mode' = 'latest-offset'", "Current keys: 'scan.startup.mode'."),
        ("'connector.startup-mod' = 'latest-offset'", "Did you mean 'connector.startup-mode'?"),
        ("'connector.type' = 'kafka'", "An OPTIONS hint cannot change the 'connector.type' of a table."),
    ):
        with pytest.raises(HeadwaterError) as raised:
            session.check(into.format(hint))
        assert text in str(raised.value)
    with pytest.raises(HeadwaterError, match="mixes legacy and current options"):
        session.check("insert into p /*+ OPTIONS('connector.topic' = 'x') */ values ('a', 1);")


def test_like_takes_over_what_was_written() -> None:
    session = Session()
    session.sql(table(dict(KAFKA)) + "create table more with ('connector.topic' = 'u') like cars;")
    assert session.catalog.table("more").raw_options == {**CURRENT, "topic": "u"}
    with pytest.raises(HeadwaterError, match="Current keys: 'topic'"):
        session.check("create table other with ('topic' = 'u') like cars;")


def test_show_create_is_as_written() -> None:
    session = Session()
    session.sql(table({**KAFKA, "connector.properties.sasl.jaas.config": "hush"}))
    (result,) = session.sql("show create table cars;")
    text = result.rows[0][0]
    assert "'connector.type' = 'kafka'" in text
    assert "hush" not in text


def test_what_a_job_says_is_in_the_spelling_of_the_table_it_is_about() -> None:
    session = Session()
    session.sql(table(dict(KAFKA)) + "create table p (car_id STRING, n INT) with ('connector' = 'print');")
    session.sql(table(dict(CURRENT)).replace("cars", "new"))
    spellings = {name: session.catalog.table(name).spelling for name in ("cars", "p", "new")}

    def told(fact: str) -> str:
        hint = "Set 'csv.ignore-parse-errors', 'properties.acks' or 'scan.startup.mode'."
        return str(respelled(HeadwaterError(fact, hint=hint), spellings))

    old = "Hint: Set 'format.ignore-parse-errors', 'connector.properties.acks' or 'connector.startup-mode'."
    assert told("A message of table 'cars' is bad.").endswith(old)
    for other in ("A message is bad.", "A message of table 'new' is bad.", "From 'cars' to 'new'."):
        assert "'properties.acks' or 'scan.startup.mode'." in told(other)
    del spellings["new"]
    assert told("A message is bad.").endswith(old)


def test_numbered_keys_of_flink_1_9() -> None:
    written = {
        "connector.type": "kafka",
        "connector.topic": "t",
        "connector.properties.0.key": "bootstrap.servers",
        "connector.properties.0.value": "k:9092",
        "connector.properties.1.key": "group.id",
        "connector.properties.1.value": "g",
        "connector.startup-mode": "specific-offsets",
        "connector.specific-offsets.0.partition": "0",
        "connector.specific-offsets.0.offset": "42",
        "connector.specific-offsets.1.partition": "1",
        "connector.specific-offsets.1.offset": "300",
        "format.type": "json",
    }
    spelling = spelling_of(written)
    assert spelling.problems == ()
    assert spelling.parts.keys() == written.keys()
    assert spelling.options["properties.bootstrap.servers"] == "k:9092"
    assert spelling.options["properties.group.id"] == "g"
    assert spelling.options["scan.startup.specific-offsets"] == "partition:0,offset:42;partition:1,offset:300"


@pytest.mark.parametrize("name", ["kafka-0.10", "kafka-0.11"])
def test_older_names_of_the_connector(name: str) -> None:
    assert spelling_of({"connector": name, "topic": "t"}).options == {"connector": "kafka", "topic": "t"}


@pytest.mark.parametrize(
    ("options", "keys"),
    [
        ({"connector.type": "jdbc", "connector.url": "u", "connector.table": "t"}, ["connector.type"]),
        ({"connector.type": "kafka", "connector.topic": "t", "connector.properties.bootstrap.servers": "k",
          "format.type": "xml", "format.schema": "s", "format.field-delimiter": ";"}, ["format.type"]),
    ],
)  # fmt: skip
def test_a_wrong_type_is_the_only_thing_said(options: dict[str, str], keys: list[str]) -> None:
    assert [problem.key for problem in spelling_of(options).problems] == keys
