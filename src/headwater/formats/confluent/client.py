"""Four requests of Confluent's REST protocol, made with Python's own HTTP and TLS.

Confluent's client for Python would bring an HTTP library, a cache and a cipher library along, and a dozen packages
with them, for what takes a page here; the tests have it as the other side.
"""

from __future__ import annotations

import http.client
import json
import socket
import ssl
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import quote, urlsplit

from headwater.errors import RegistryRefusedError, RegistryUnavailableError
from headwater.formats.confluent.options import Settings
from headwater.key_stores import tls_context

__all__ = ["Answer", "Client", "Stored"]

Patience = Literal["retries", "once"]

_PAUSES = (0.2, 0.6, None)  # between attempts of one request
_SHORTLY = 2.0
_ADDRESS = "Check the option 'url'."
_TYPE = "application/vnd.schemaregistry.v1+json"
_NOT_FOUND = {40401, 40402, 40403}  # subject, version, schema
_SHOWN = 500


@dataclass(frozen=True)
class Stored:
    """A schema as the registry has it. `references` are (subject, version) of schemas whose types it uses."""

    id: int
    text: str
    kind: str
    references: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class _Request:
    method: str
    path: str
    body: Any
    seconds: float


@dataclass(frozen=True)
class Answer:
    status: int
    body: Any

    @property
    def words(self) -> str:
        """What the registry itself says."""
        text = self.body.get("message", "") if isinstance(self.body, Mapping) else str(self.body)
        return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


class Client:
    """Asks one registry. Several addresses are of one registry, and are tried in turn."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._tls = (
            tls_context(dict(settings.stores), checks_name=settings.checks_name)
            if any(url.startswith("https:") for url in settings.urls)
            else None
        )

    def schema(self, schema_id: int) -> Stored | None:
        answer = self._ask("GET", f"/schemas/ids/{schema_id}")
        return None if answer is None else _stored(answer.body, schema_id)

    def versions(self, subject: str, patience: Patience = "retries") -> list[int]:
        """None of them if there is no such subject."""
        answer = self._ask("GET", f"/subjects/{_quoted(subject)}/versions", patience=patience)
        return [] if answer is None else [int(version) for version in answer.body]

    def version(self, subject: str, version: int) -> Stored | None:
        answer = self._ask("GET", f"/subjects/{_quoted(subject)}/versions/{version}")
        return None if answer is None else _stored(answer.body, int(answer.body["id"]))

    def look_up(self, subject: str, schema: str) -> int | None:
        """The id of the schema, if it is registered under the subject."""
        answer = self._ask("POST", f"/subjects/{_quoted(subject)}", {"schema": schema})
        return None if answer is None else int(answer.body["id"])

    def register(self, subject: str, schema: str) -> int:
        answer = self._ask("POST", f"/subjects/{_quoted(subject)}/versions", {"schema": schema})
        if answer is None:
            raise self._refused(Answer(404, "There is no such subject."), f"register a schema under '{subject}'")
        return int(answer.body["id"])

    def _ask(self, method: str, path: str, body: Any = None, patience: Patience = "retries") -> Answer | None:
        """None if there is no such thing. Raises a RegistryUnavailableError or RegistryRefusedError. With
        the patience 'once', it is asked once and for a short time."""
        seconds = self._settings.seconds if patience == "retries" else min(self._settings.seconds, _SHORTLY)
        for pause in _PAUSES if patience == "retries" else _PAUSES[-1:]:
            failure = None
            for url in self._settings.urls:
                try:
                    answer = self._request(url, _Request(method, path, body, seconds))
                # An OSError as well, but neither another attempt nor another address makes a certificate valid.
                except ssl.SSLError as error:
                    raise self._tls_failed(url, error) from None
                except (OSError, http.client.HTTPException) as error:
                    failure = self._unreachable(url, error)
                    continue
                if answer.status < 300:
                    return answer
                if _says_not_found(answer):
                    return None
                # 429: a registry that limits its clients asks to be asked again.
                if answer.status < 500 and answer.status != 429:
                    raise self._refused(answer, f"{method} {path}")
                failure = self._unavailable(url, answer)
            if pause is None:
                break
            time.sleep(pause)
        assert failure is not None
        raise failure

    def _request(self, url: str, request: _Request) -> Answer:
        connection, target = self._connection(url, request.seconds)
        try:
            headers = {"Accept": f"{_TYPE}, application/json", **dict(self._settings.headers)}
            if self._settings.authorization:
                headers["Authorization"] = self._settings.authorization
            data = None
            if request.body is not None:
                headers["Content-Type"] = _TYPE
                data = json.dumps(request.body).encode()
            connection.request(request.method, target + request.path, data, headers)
            response = connection.getresponse()
            return self._answer(url, response.status, response.read())
        finally:
            connection.close()

    def _answer(self, url: str, status: int, content: bytes) -> Answer:
        try:
            return Answer(status, json.loads(content))
        except ValueError:
            text = content.decode(errors="replace").strip()
        if status < 300:
            raise RegistryRefusedError(
                f"What answers at {url} is no schema registry.", detail=f"It said: {text[:80]!r}", hint=_ADDRESS
            )
        return Answer(status, text)

    def _connection(self, url: str, seconds: float) -> tuple[http.client.HTTPConnection, str]:
        """A connection, and what stands in front of the path of a request."""
        parts = urlsplit(url)
        secure = parts.scheme == "https"
        host, port = str(parts.hostname), parts.port or (443 if secure else 80)
        proxy_host, _, proxy_port = self._settings.proxy.rpartition(":")
        there = (proxy_host, int(proxy_port)) if proxy_host else (host, port)
        # A proxy takes the whole URL in a request of plain HTTP; for TLS it only opens a tunnel to the host.
        if not secure:
            plain = http.client.HTTPConnection(*there, timeout=seconds)
            return plain, (url if proxy_host else parts.path)
        assert self._tls is not None
        connection = http.client.HTTPSConnection(*there, timeout=seconds, context=self._tls)
        if proxy_host:
            connection.set_tunnel(host, port)
        return connection, parts.path

    def _unreachable(self, url: str, error: Exception) -> RegistryUnavailableError:
        late = isinstance(error, TimeoutError | socket.timeout)
        what = f"no answer within {self._settings.seconds:g} s" if late else str(error) or type(error).__name__
        return RegistryUnavailableError(
            f"The schema registry at {url} cannot be reached.",
            detail=f"{what[:1].upper()}{what[1:]}.",
            hint=f"{_ADDRESS} Check that the registry runs and can be reached from the driver.",
        )

    def _unavailable(self, url: str, answer: Answer) -> RegistryUnavailableError:
        return RegistryUnavailableError(
            f"The schema registry at {url} cannot answer now.",
            detail=f"HTTP {answer.status}: {answer.words}",
            hint="Look into the log of the registry.",
        )

    def _tls_failed(self, url: str, error: ssl.SSLError) -> RegistryRefusedError:
        return RegistryRefusedError(
            f"The TLS handshake with the schema registry at {url} failed.",
            detail=f"{error.reason or error}".replace("_", " ").capitalize() + _verification(error) + ".",
            hint="Check 'ssl.truststore.location', 'ssl.keystore.location' and the host name in 'url'.",
        )

    def _refused(self, answer: Answer, what: str) -> RegistryRefusedError:
        fact, hint = _REFUSED.get(answer.status, ("refused a request", ""))
        return RegistryRefusedError(
            f"The schema registry at {self._settings.urls[0]} {fact}.",
            detail=f"{what} → HTTP {answer.status}: {answer.words}",
            hint=hint,
        )


_REFUSED = {
    401: ("refused the login", "Check 'basic-auth.user-info' or 'bearer-auth.token'."),
    404: ("does not know what is asked for", f"It may be no schema registry. {_ADDRESS}"),
    403: ("does not allow a request", "Ask for the permission, or check which user or token is used."),
    409: (
        "does not accept the schema: it is not compatible with those that the subject has",
        "Change the table's columns, or the compatibility rule of the subject.",
    ),
    422: ("does not accept the schema", "Check the option 'schema'."),
}


def _says_not_found(answer: Answer) -> bool:
    """A registry says so in its own words; any other server may say 404."""
    code = answer.body.get("error_code") if isinstance(answer.body, Mapping) else None
    return answer.status == 404 and code in _NOT_FOUND


def _stored(body: Mapping[str, Any], schema_id: int) -> Stored:
    references = tuple((str(r["subject"]), int(r["version"])) for r in body.get("references") or ())
    return Stored(schema_id, str(body["schema"]), str(body.get("schemaType") or "AVRO"), references)


def _verification(error: ssl.SSLError) -> str:
    text = getattr(error, "verify_message", "")
    return f": {text}" if text else ""


def _quoted(subject: str) -> str:
    return quote(subject, safe="")
