"""The text of server.properties, as Java will read it."""

from __future__ import annotations

from pathlib import Path

from headwater.broker.properties import BrokerLayout, render, server_properties


def test_extra_properties_win() -> None:
    layout = BrokerLayout(
        Path("/data"), 9092, 9093, partitions=3, extra={"num.partitions": "7", "message.max.bytes": "42"}
    )
    properties = server_properties(layout)
    assert (properties["num.partitions"], properties["message.max.bytes"]) == ("7", "42")


def test_only_this_machine_is_listened_to() -> None:
    properties = server_properties(BrokerLayout(Path("/data"), 1, 2))
    assert properties["listeners"] == "PLAINTEXT://127.0.0.1:1,CONTROLLER://127.0.0.1:2"


def test_values_are_escaped_for_java() -> None:
    assert render({"a": "plain = fine"}) == "a=plain = fine\n"
    assert render({"a": " C:\\x\ny"}) == "a=\\ C:\\\\x\\ny\n"
    assert render({"log.dirs": "/home/zoë/🌊"}) == "log.dirs=/home/zo\\u00eb/\\ud83c\\udf0a\n"
