"""What a table may say about its registry, and what becomes of it. Neither Spark nor a registry is needed for that."""

from __future__ import annotations

import json
from typing import Any

import pytest

from headwater.connectors.kafka.table.layout import registered_sides
from headwater.errors import RegistryUnavailableError, ValidationError
from headwater.formats.confluent.client import Stored
from headwater.formats.confluent.options import Settings, registers, registry_settings
from headwater.formats.confluent.schemas import Schemas
from headwater.formats.confluent.types import AvroType, SchemaProblem, parse_schema
from headwater.options.secrets import hidden_in, masked
from headwater.session import Session

URL = "http://registry:8081"
JAAS = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="ann" password="s3cret";'


def ddl(columns: str = "id INT", format_name: str = "avro-confluent", **options: str) -> str:
    """'.' and '-' in options are written as '__' and '_'; an option that is '' is left out."""
    given = {"connector": "kafka", "topic": "t", "properties.bootstrap.servers": "k:9092", "format": format_name}
    given |= {f"{format_name}.url": URL}
    given |= {key.replace("__", ".").replace("_", "-"): value for key, value in options.items()}
    listed = ",\n".join(f"'{key}' = '{value}'" for key, value in given.items() if value)
    return f"CREATE TABLE t ({columns}) WITH (\n{listed});"


def options_of(*arguments: str, **options: str) -> dict[str, Any]:
    session = Session()
    session.sql(ddl(*arguments, **options))
    [(_, _, side)] = registered_sides(session.catalog.table("t"))
    return dict(side.options)


def settings(**options: str) -> Settings:
    return registry_settings(options_of(**{f"avro_confluent__{key}": value for key, value in options.items()}))


def test_both_sides_have_options_of_their_own() -> None:
    session = Session()
    session.sql(
        """CREATE TABLE t (id INT, name STRING, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'upsert-kafka',
        'topic' = 't', 'properties.bootstrap.servers' = 'k:9092',
        'key.format' = 'avro-confluent', 'key.avro-confluent.url' = 'http://a', 'value.format' = 'avro-confluent',
        'value.avro-confluent.schema-registry.url' = 'http://b', 'value.avro-confluent.properties.proxy.host' = 'p',
        'value.avro-confluent.properties.proxy.port' = '80')"""
    )
    sides = {name: registry_settings(side.options) for name, _, side in registered_sides(session.catalog.table("t"))}
    assert sides["key"].urls == ("http://a",)
    assert (sides["value"].urls, sides["value"].proxy) == (("http://b",), "p:80")


def test_what_a_client_is_told() -> None:
    assert settings() == Settings((URL,))
    assert settings(url="http://a:1/, https://b/x/").urls == ("http://a:1", "https://b/x")
    assert settings(basic_auth__user_info="ann:s3cret").authorization == "Basic YW5uOnMzY3JldA=="
    assert settings(url="http://ann:s3cret@a").authorization == "Basic YW5uOnMzY3JldA=="
    assert settings(url="http://ann:s3cret@a").urls == ("http://a",)
    assert settings(properties__bearer__auth__token="tok").authorization == "Bearer tok"
    inherited = options_of(
        avro_confluent__basic_auth__credentials_source="SASL_INHERIT", properties__sasl__jaas__config=JAAS
    )
    assert registry_settings(inherited).authorization == "Basic YW5uOnMzY3JldA=="
    assert "s3cret" not in repr(registry_settings(inherited))
    stores = settings(ssl__truststore__location="/t", properties__schema__registry__ssl__keystore__location="/k").stores
    assert stores == (("ssl.keystore.location", "/k"), ("ssl.truststore.location", "/t"))
    more = settings(properties__request__header__x="1", properties__http__read__timeout__ms="500")
    assert (more.headers, more.seconds) == ((("x", "1"),), 0.5)
    assert not registers(options_of(avro_confluent__auto_register="false"))
    assert not registers(options_of(avro_confluent__properties__auto__register__schemas="false"))


SCHEMA = json.dumps({"type": "record", "name": "R", "fields": [{"name": "id", "type": ["null", "int"]}]})
ENVELOPE = json.dumps({"type": "record", "name": "E", "fields": [{"name": "op", "type": ["null", "string"]}]})


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"url": ""}, "avro-confluent.url"),
        ({"url": "registry:8081"}, "'registry:8081' is not an address like 'http://host:8081'."),
        ({"schema_registry__url": "http://other"}, "'avro-confluent.schema-registry.url' is the old name of"),
        ({"subject_naming": "table"}, "'table' is not one of topic, record, topic-record."),
        ({"basic_auth__user_info": "ann"}, "'basic-auth.user-info' must be 'user:password'."),
        ({"basic_auth__credentials_source": "USER_INFO"}, "needs 'basic-auth.user-info'"),
        ({"basic_auth__credentials_source": "SASL_INHERIT"}, "needs user and password in 'properties.sasl"),
        ({"basic_auth__credentials_source": "URL", "basic_auth__user_info": "a:b"}, "is not used with"),
        ({"bearer_auth__credentials_source": "STATIC_TOKEN"}, "needs 'bearer-auth.token'"),
        ({"bearer_auth__token": "t", "basic_auth__user_info": "a:b"}, "cannot be set together"),
        ({"properties__bearer__auth__credentials__source": "OAUTHBEARER"}, "cannot be 'OAUTHBEARER', only STATIC"),
        ({"properties__max__schemas": "1"}, "'properties.max.schemas' is not known here. Known are basic.auth."),
        ({"properties__proxy__host": "p"}, "'properties.proxy.host' cannot be set without 'properties.proxy.port'."),
        ({"properties__http__read__timeout__ms": "x"}, "'properties.http.read.timeout.ms' = 'x' is not a number."),
        ({"properties__auto__register__schemas": "x"}, "is neither 'true' nor 'false'"),
        ({"schema": "{"}, "The option 'schema' is no Avro schema. It is not JSON."),
        ({"schema": '"Item"'}, "It names a type 'Item' that is defined nowhere."),
        ({"schema": '"int"'}, "does not match the table schema: Field 'id' has no null"),
        ({"schema": '["null", {"type": "array", "items": "int"}]'}, "Field 'id' is array of int, and the"),
        ({"schema": SCHEMA.replace("int", "long")}, "Field 'id' is long, and the column is INT."),
        ({"schema": SCHEMA.replace('["null", "int"]', '"int"')}, "Declare it as NOT NULL."),
        ({"schema": SCHEMA.replace('"id"', '"no"')}, "Field 'no' is not a column of the table."),
        ({"schema": SCHEMA.replace('["null", "int"]', '["null", "int", "long"]')}, "only a type, or one type and null"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_when_the_table_is_created(options: dict[str, str], said: str) -> None:
    with pytest.raises(ValidationError) as caught:
        Session().sql(ddl(**{f"avro_confluent__{key}": value for key, value in options.items()}))
    assert said in str(caught.value)


def test_the_schema_of_an_envelope() -> None:
    with pytest.raises(ValidationError, match="must be a nullable record type with fields 'before', 'after', 'op'"):
        Session().sql(ddl(format_name="debezium-avro-confluent", debezium_avro_confluent__schema=ENVELOPE))


@pytest.mark.parametrize("option", [{"topic": "a;b"}, {"topic": "", "topic_pattern": "a.*"}])
def test_a_table_with_several_topics_needs_a_subject_to_be_written(option: dict[str, str]) -> None:
    columns, insert = "id INT, topic STRING METADATA", "INSERT INTO t VALUES (1, 'a');"
    with pytest.raises(ValidationError, match=r"'avro-confluent\.subject' is required for serialization"):
        Session().check(ddl(columns, **option) + insert)
    for subject in ({"avro_confluent__subject": "s"}, {"avro_confluent__subject_naming": "record"}):
        assert Session().check(ddl(columns, **option, **subject) + insert)


def test_a_key_in_the_format_of_the_value() -> None:
    """It has a subject of its own, and nothing to do with the value's schema."""
    session = Session()
    schema = SCHEMA.replace('["null", "int"]', '"int"')
    more = {"avro_confluent__schema": schema, "avro_confluent__subject": "s"}
    session.sql(ddl("id INT, PRIMARY KEY (id) NOT ENFORCED", **more))
    sides = {name: side.options for name, _, side in registered_sides(session.catalog.table("t"))}
    assert {name: (o["subject"], o["schema"], o["location"].side) for name, o in sides.items()} == {
        "key": (None, None, "key"),
        "value": ("s", schema, "value"),
    }


def test_secrets_are_masked() -> None:
    """Those of options, and those in an address, also where a line of the script is shown."""
    secret = {"avro-confluent.url": "http://ann:s3cret@a", "avro-confluent.basic-auth.user-info": "ann:s3cret"}
    assert masked(secret)["avro-confluent.url"] == "http://******@a"
    assert hidden_in("for ann:s3cret or s3cret", secret) == "for ****** or ******"
    with pytest.raises(ValidationError) as caught:
        Session().sql(ddl(avro_confluent__url="http://ann:s3cret@a", nonsense="1").replace("\n", " "))
    assert "nonsense" in str(caught.value)
    assert "s3cret" not in str(caught.value)


def test_names_of_types() -> None:
    text = """{"type": "record", "name": "a.b.R", "fields": [
      {"name": "e", "type": {"type": "enum", "name": "E", "symbols": ["X"]}},
      {"name": "again", "type": "E"}, {"name": "full", "type": "a.b.E"},
      {"name": "other", "type": {"type": "fixed", "name": "F", "namespace": "", "size": 2}},
      {"name": "self", "type": ["null", "R"]}]}"""
    schema = parse_schema(text)
    assert [f.type.name for f in schema.fields[:4]] == ["a.b.E", "a.b.E", "a.b.E", "F"]
    assert schema.fields[4].type.inner[1] is schema
    for wrong in ('{"type": "record", "name": "R"}', "{}", '{"type": "array"}', "[1]"):
        with pytest.raises(SchemaProblem):
            parse_schema(wrong)


class Shelf:
    """What a client answers with; `away` as if the registry were."""

    def __init__(self) -> None:
        self.by_version: dict[int, Stored] = {}
        self.away = False
        self.asked: list[str] = []

    def add(self, *ids: int) -> None:
        for schema_id in ids:
            self.by_version[len(self.by_version) + 1] = Stored(schema_id, '"int"', "AVRO", ())

    def _heard(self, what: str) -> None:
        self.asked.append(what)
        if self.away:
            raise RegistryUnavailableError("away")

    def versions(self, subject: str, patience: str = "retries") -> list[int]:
        self._heard("versions")
        return list(self.by_version)

    def version(self, subject: str, version: int) -> Stored | None:
        self._heard(f"version {version}")
        return self.by_version[version]

    def schema(self, schema_id: int) -> Stored | None:
        self._heard(f"schema {schema_id}")
        return next((s for s in self.by_version.values() if s.id == schema_id), None)


def test_what_is_known_of_a_registry() -> None:
    """New versions are looked for now and then; nothing is asked for twice; absent schemas are, a minute later."""
    shelf, reader = Shelf(), (("t",), "value")
    time = [0.0]
    schemas = Schemas(shelf, clock=lambda: time[0])  # type: ignore[arg-type]
    shelf.add(*range(101, 131))
    schemas.look(reader, "s")
    assert list(schemas.used(reader)) == list(range(130, 110, -1))  # the newest
    shelf.add(131)
    schemas.look(reader, "s")
    assert 131 not in schemas.used(reader)
    time[0] = 2
    shelf.asked.clear()
    schemas.look(reader, "s")
    assert next(iter(schemas.used(reader))) == 131
    assert shelf.asked == ["versions", "version 31"]
    schemas.learn(reader, [101, 131, 999])
    assert shelf.asked[2:] == ["schema 101", "schema 999"]
    assert isinstance(schemas.used(reader)[101], AvroType)
    assert schemas.used(reader)[999] == "The registry has no schema with the id 999."
    shelf.away, time[0] = True, 10
    schemas.look(reader, "s")
    schemas.look(reader, "s")
    assert shelf.asked[4:] == ["versions"]
    time[0] = 70
    assert 999 not in schemas.used(reader)
    with pytest.raises(RegistryUnavailableError):
        schemas.learn(reader, [999])
    with pytest.raises(RegistryUnavailableError):
        schemas.look((("u",), "value"), "u")
