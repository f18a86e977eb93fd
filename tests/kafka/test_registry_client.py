"""The client of a schema registry, and what it says when one does not do what it should."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable

import pytest

from headwater.errors import RegistryRefusedError, RegistryUnavailableError
from headwater.formats.confluent.client import Client
from headwater.formats.confluent.options import Settings
from headwater.testing.registry import Door, SchemaRegistry

SCHEMA = json.dumps({"type": "record", "name": "R", "fields": [{"name": "id", "type": "int"}]})


def test_what_it_asks(schema_registry: SchemaRegistry, unique_topic: Callable[[str], str]) -> None:
    client, subject = Client(Settings((schema_registry.url,))), unique_topic("a subject/with Ümlauts")
    assert client.versions(subject) == []
    assert client.look_up(subject, SCHEMA) is None
    assert client.schema(2_000_000_000) is None
    number = client.register(subject, SCHEMA)
    assert client.register(subject, SCHEMA) == number == client.look_up(subject, SCHEMA)
    assert client.versions(subject) == [1]
    stored = client.version(subject, 1)
    assert stored == client.schema(number)
    assert stored is not None
    assert (stored.kind, json.loads(stored.text)) == ("AVRO", json.loads(SCHEMA))


def test_one_of_several_addresses_answers(schema_registry: SchemaRegistry) -> None:
    client = Client(Settings(("http://127.0.0.1:1", schema_registry.url)))
    assert client.versions("nothing") == []


def test_a_registry_that_is_away(schema_registry: SchemaRegistry) -> None:
    with Door(schema_registry) as door:
        client = Client(Settings((door.url,)))
        door.away = True
        with pytest.raises(RegistryUnavailableError, match="cannot answer now") as caught:
            client.versions("s")
        assert "gone to lunch" in caught.value.detail
        assert len(door.requests) == 3
        with pytest.raises(RegistryUnavailableError):
            client.versions("s", "once")
        assert len(door.requests) == 4
        back = threading.Timer(0.1, lambda: setattr(door, "away", False))
        back.start()
        assert client.versions("s") == []
        back.join()


def test_one_that_never_answers() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(RegistryUnavailableError, match="cannot be reached") as caught:
            Client(Settings((url,), seconds=0.05)).versions("s")
    assert caught.value.detail == "No answer within 0.05 s."


def test_something_else_at_the_address(schema_registry: SchemaRegistry) -> None:
    """The registry has other pages: one with JSON of another kind, one with none."""
    root = schema_registry.url.removesuffix("/apis/ccompat/v7")
    with pytest.raises(RegistryRefusedError, match="does not know what is asked for") as caught:
        Client(Settings((f"{root}/nowhere",))).versions("s")
    assert "'url'" in caught.value.hint
    with pytest.raises(RegistryRefusedError, match=r"does not know what is asked for|no schema registry"):
        Client(Settings((root,))).versions("s")


@pytest.mark.parametrize(
    ("schema", "said"), [("{", "does not accept the schema"), ('{"type": "x"}', "does not accept")]
)
def test_a_schema_that_is_none(schema_registry: SchemaRegistry, schema: str, said: str) -> None:
    with pytest.raises(RegistryRefusedError, match=said):
        Client(Settings((schema_registry.url,))).register("none", schema)
