"""Everything that is wrong with a table's options is in one error, and no secret is."""

from __future__ import annotations

import pytest

from headwater.errors import Position, ValidationError
from headwater.options.base import Option
from headwater.options.parsing import parse_options, read_options
from headwater.options.secrets import is_secret, masked
from headwater.options.types import DURATION, INT, STRING, enum

MODES = ("earliest-offset", "latest-offset")
DECLARED = (
    Option("topic", STRING, "The topic.", required=True),
    Option("servers", STRING, "The brokers.", required=True),
    Option("mode", enum(MODES), "Where to start.", "latest-offset", choices=MODES),
    Option("count", INT, "How many."),
    Option("interval", DURATION, "How often."),
    Option("old-mode", enum(MODES), "Older name.", deprecated="mode", choices=MODES),
    Option("client.*", STRING, "Anything.", prefix=True),
    Option("password", INT, "A number nobody may see."),
)


def test_values_defaults_and_families() -> None:
    given = {"topic": "t", "servers": "s", "count": "5", "client.a.b": "c", "mode": "EARLIEST-offset"}
    options = parse_options(DECLARED, given, "kafka")
    assert (options.string("mode"), options.integer("count"), options["interval"]) == ("earliest-offset", 5, None)
    assert options.family("client.") == {"a.b": "c"}
    assert options.is_given("count")
    assert not options.is_given("interval")
    with pytest.raises(KeyError):
        options["unheard-of"]


def test_all_problems_come_together() -> None:
    given = {"topics": "t", "mode": "earliest", "count": "x", "client.": "y"}
    with pytest.raises(ValidationError) as raised:
        parse_options(DECLARED, given, "kafka")
    text = str(raised.value)
    assert "One or more required options are missing.\nMissing required options are:" in text
    assert "  topic  (The topic.)" in text
    assert "  servers  (The brokers.)" in text
    assert "Unsupported options found for 'kafka'." in text
    assert "  topics  Did you mean 'topic'?" in text
    assert "` lists the " in text
    assert "Invalid value for option 'mode'.\n  'earliest' is not one of earliest-offset, latest-offset." in text
    assert "Did you mean 'earliest-offset'?" in text
    assert "Invalid value for option 'count'.\n  'x' is not an integer." in text
    assert "'kafka' is not valid: 6 problems." in text


def test_the_place_of_an_option_is_shown() -> None:
    place = Position(7, 3, "  'topics' = 't',", 8)
    with pytest.raises(ValidationError, match=r"line 7, column 3") as raised:
        parse_options(DECLARED, {"topics": "t", "topic": "t", "servers": "s"}, "kafka", {"topics": place})
    assert "7 |   'topics' = 't',\n" in str(raised.value)


def test_no_secret_is_repeated() -> None:
    place = Position(3, 1, "'password' = 'hunter2'", 10)
    given = {"topic": "t", "servers": "s", "password": "hunter2", "client.sasl.jaas.config": "hunter3"}
    with pytest.raises(ValidationError) as raised:
        parse_options(DECLARED, given, "kafka", {"password": place})
    text = str(raised.value)
    assert "hunter" not in text
    assert "'password'='******'" in text
    assert "'client.sasl.jaas.config'='******'" in text
    assert "line 3, column 1" in text


@pytest.mark.parametrize(
    "key",
    [
        "properties.sasl.jaas.config",
        "properties.ssl.keystore.password",
        "properties.ssl.key.password",
        "value.avro-confluent.basic-auth.user-info",
        "properties.sasl.oauthbearer.client.secret",
        "my.Token",
        "properties.ssl.keystore.key",
    ],
)
def test_secrets(key: str) -> None:
    assert is_secret(key)
    assert masked({key: "x"}) == {key: "******"}


@pytest.mark.parametrize(
    "key",
    ["topic", "key.format", "key.fields", "properties.sasl.oauthbearer.token.endpoint.url", "properties.group.id"],
)
def test_no_secrets(key: str) -> None:
    assert not is_secret(key)


def test_an_older_name_speaks_for_the_newer_one() -> None:
    given = {"topic": "t", "servers": "s", "old-mode": "earliest-offset"}
    assert parse_options(DECLARED, given, "kafka").string("mode") == "earliest-offset"
    _, problems = read_options(DECLARED, {**given, "mode": "latest-offset"})
    assert [p.key for p in problems] == ["old-mode"]
    assert "different values" in problems[0].text


def test_options_that_are_read_are_values() -> None:
    given = {"topic": "t", "servers": "s"}
    first, second = parse_options(DECLARED, given, "kafka"), parse_options(DECLARED, given, "kafka")
    assert first == second
    assert hash(first) == hash(second)
    given["topic"] = "u"
    assert first.string("topic") == "t"
