"""What a table says about its registry, and what that means for a client."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote, urlsplit, urlunsplit

from headwater.formats.base import SchemaLocation
from headwater.options.base import Option
from headwater.options.types import BOOL, STRING, enum

__all__ = ["OPTIONS", "Settings", "registry_settings", "settings_problems"]

_NAMINGS = ("topic", "record", "topic-record")
_BASIC = ("USER_INFO", "URL", "SASL_INHERIT")
_BEARER = ("STATIC_TOKEN",)
PROPERTIES = "properties"  # where the family 'properties.*' is among the options of a format

OPTIONS: tuple[Option, ...] = (
    Option(
        "url", STRING, "Address of the schema registry; several, in case one does not answer: 'a,b'.", required=True
    ),
    Option(
        "subject",
        STRING,
        "Subject under which the schema is registered. Default: as 'subject-naming' says; it must be set to write a "
        "table with several topics.",
    ),
    Option(
        "subject-naming",
        enum(_NAMINGS),
        "Subject if 'subject' is not set: '<topic>-key' or '<topic>-value', the full name of the record, or "
        "'<topic>-<name of the record>'.",
        "topic",
        choices=_NAMINGS,
    ),
    Option(
        "schema",
        STRING,
        "Avro schema of what is written, which must have the table's columns. Default: derived from the table, as "
        "Flink does. When reading, its aliases find renamed fields, and its defaults fill in for missing ones.",
    ),
    Option(
        "auto-register",
        BOOL,
        "Whether a schema that is not there yet is registered. If not, writing a table whose schema is not registered "
        "is an error.",
        True,
    ),
    Option("ssl.truststore.location", STRING, "File with the certificates that the registry is trusted by."),
    Option("ssl.truststore.password", STRING, "Password of that file.", secret=True),
    Option("ssl.keystore.location", STRING, "File with this client's own certificate and key: PKCS12 or PEM."),
    Option("ssl.keystore.password", STRING, "Password of that file.", secret=True),
    Option(
        "basic-auth.credentials-source",
        enum(_BASIC),
        "Where user and password come from: 'basic-auth.user-info', the address, or the login at the broker. Default: "
        "USER_INFO if that is set, else the address.",
        choices=_BASIC,
    ),
    Option("basic-auth.user-info", STRING, "User and password: 'user:password'.", secret=True),
    Option("bearer-auth.credentials-source", enum(_BEARER), "Where the token comes from.", choices=_BEARER),
    Option("bearer-auth.token", STRING, "Token that is sent with every request.", secret=True),
    Option(
        "properties.*",
        STRING,
        "Settings of Confluent's client, in its own words: those that the options above stand for, 'proxy.host', "
        "'proxy.port', 'http.connect.timeout.ms', 'http.read.timeout.ms', 'request.header.<name>' and others.",
        prefix=True,
    ),
    Option("schema-registry.url", STRING, "Former name.", deprecated="url"),
    Option("schema-registry.subject", STRING, "Former name.", deprecated="subject"),
    Option("schema-registry.schema", STRING, "Former name.", deprecated="schema"),
)

# Confluent's name → the option that says the same and goes first.
_SAME = {
    "basic.auth.credentials.source": "basic-auth.credentials-source",
    "basic.auth.user.info": "basic-auth.user-info",
    "schema.registry.basic.auth.user.info": "basic-auth.user-info",
    "bearer.auth.credentials.source": "bearer-auth.credentials-source",
    "bearer.auth.token": "bearer-auth.token",
    "schema.registry.ssl.truststore.location": "ssl.truststore.location",
    "schema.registry.ssl.truststore.password": "ssl.truststore.password",
    "schema.registry.ssl.keystore.location": "ssl.keystore.location",
    "schema.registry.ssl.keystore.password": "ssl.keystore.password",
    "auto.register.schemas": "auto-register",
}
_STORES = {
    "schema.registry.ssl.truststore.type": "ssl.truststore.type",
    "schema.registry.ssl.keystore.type": "ssl.keystore.type",
    "schema.registry.ssl.key.password": "ssl.key.password",
}
_TIMEOUT = "http.connect.timeout.ms", "http.read.timeout.ms"
_PROXY = "proxy.host", "proxy.port"
_VERIFY = "schema.registry.ssl.endpoint.identification.algorithm"
_HEADER = "request.header."
_MILLIS = 10_000


@dataclass(frozen=True)
class Settings:
    """All that a client needs. Two tables with the same settings share one client."""

    urls: tuple[str, ...]
    authorization: str = field(default="", repr=False)
    stores: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    proxy: str = ""
    checks_name: bool = True
    seconds: float = _MILLIS / 1000


def settings_problems(options: Mapping[str, Any]) -> list[str]:
    given = options[PROPERTIES]
    known = [*_SAME, *_STORES, *_TIMEOUT, *_PROXY, _VERIFY]
    problems = [
        f"'properties.{key}' is not known here. Known are {', '.join(known)} and {_HEADER}<name>."
        for key in given
        if key not in known and not key.startswith(_HEADER)
    ]
    problems += [
        f"'properties.{key}' = '{given[key]}' is not a number."
        for key in (*_TIMEOUT, _PROXY[1])
        if key in given and not given[key].isdigit()
    ]
    problems += [
        f"'properties.{key}' cannot be set without 'properties.{other}'."
        for key, other in (_PROXY, _PROXY[::-1])
        if key in given and other not in given
    ]
    register = given.get("auto.register.schemas", "true").lower()
    if register not in ("true", "false"):
        problems.append(f"'properties.auto.register.schemas' = '{register}' is neither 'true' nor 'false'.")
    return problems + _url_problems(str(options["url"] or "")) + _login_problems(options)


def _url_problems(urls: str) -> list[str]:
    wrong = [url for url in map(str.strip, urls.split(",")) if not _is_url(url)]
    return [f"'url': '{_without_user(url)}' is not an address like 'http://host:8081'." for url in wrong]


def _is_url(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        return False


def _login_problems(options: Mapping[str, Any]) -> list[str]:
    source, user = _of(options, "basic-auth.credentials-source"), _of(options, "basic-auth.user-info")
    bearer, token = _of(options, "bearer-auth.credentials-source"), _of(options, "bearer-auth.token")
    problems = []
    if source not in ("", *_BASIC):
        problems.append(f"'basic-auth.credentials-source' cannot be '{source}', only {', '.join(_BASIC)}.")
    if bearer not in ("", *_BEARER):
        problems.append(f"'bearer-auth.credentials-source' cannot be '{bearer}', only {', '.join(_BEARER)}.")
    if source == "USER_INFO" and not user:
        problems.append("'basic-auth.credentials-source' = 'USER_INFO' needs 'basic-auth.user-info'.")
    if user and ":" not in user:
        problems.append("'basic-auth.user-info' must be 'user:password'.")
    if user and source not in ("", "USER_INFO"):
        problems.append(f"'basic-auth.user-info' is not used with 'basic-auth.credentials-source' = '{source}'.")
    if bearer and not token:
        problems.append("'bearer-auth.credentials-source' needs 'bearer-auth.token'.")
    if token and (user or source):
        problems.append("'basic-auth.*' and 'bearer-auth.*' cannot be set together.")
    if source == "SASL_INHERIT" and _location(options).login is None:
        text = "'basic-auth.credentials-source' = 'SASL_INHERIT' needs user and password in "
        problems.append(f"{text}'properties.sasl.jaas.config'.")
    return problems


def registry_settings(options: Mapping[str, Any]) -> Settings:
    """Of options without problems."""
    given = options[PROPERTIES]
    urls = [url.strip() for url in str(options["url"]).split(",")]
    stores = {name: given[key] for key, name in _STORES.items() if key in given}
    stores |= {key: value for key in _SAME.values() if key.startswith("ssl.") and (value := _of(options, key))}
    # Python's HTTP client has one time limit for both.
    millis = max((int(given[key]) for key in _TIMEOUT if key in given), default=_MILLIS)
    return Settings(
        # Errors show the address, so user and password are taken out of it.
        tuple(_without_user(url).rstrip("/") for url in urls),
        _authorization(options, urls[0]),
        tuple(sorted(stores.items())),
        tuple(sorted((k.removeprefix(_HEADER), v) for k, v in given.items() if k.startswith(_HEADER))),
        f"{given[_PROXY[0]]}:{given[_PROXY[1]]}" if _PROXY[0] in given else "",
        bool(given.get(_VERIFY, "https")),
        max(millis, 1) / 1000,
    )


def registers(options: Mapping[str, Any]) -> bool:
    return bool(options["auto-register"]) and options[PROPERTIES].get("auto.register.schemas", "true").lower() == "true"


def _authorization(options: Mapping[str, Any], url: str) -> str:
    token = _of(options, "bearer-auth.token")
    if token:
        return f"Bearer {token}"
    user = _of(options, "basic-auth.user-info")
    login = _location(options).login
    if _of(options, "basic-auth.credentials-source") == "SASL_INHERIT" and login is not None:
        user = ":".join(login)
    if not user:
        parts = urlsplit(url)
        user = f"{unquote(parts.username)}:{unquote(parts.password or '')}" if parts.username else ""
    return f"Basic {base64.b64encode(user.encode()).decode()}" if user else ""


def _of(options: Mapping[str, Any], key: str) -> str:
    """The option, or the property that says the same."""
    if options.get(key) is not None:
        return str(options[key])
    return next((options[PROPERTIES][p] for p, same in _SAME.items() if same == key and p in options[PROPERTIES]), "")


def _location(options: Mapping[str, Any]) -> SchemaLocation:
    location: SchemaLocation = options["location"]
    return location


def _without_user(url: str) -> str:
    try:
        parts = urlsplit(url)
    except ValueError:
        return url
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
