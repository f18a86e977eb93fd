"""What is known of a registry. Schemas never change, so what was asked for once is known for good, and jobs go on while
the registry is away. All on the driver.

A decoder has one branch for every schema it knows, so each reader has a list of those that its messages may have: the
newest versions of its subject, those that appear later, and those that its messages turned out to have.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from headwater.errors import RegistryUnavailableError
from headwater.formats.confluent.client import Client, Stored
from headwater.formats.confluent.options import Settings
from headwater.formats.confluent.types import AvroType, SchemaProblem, parse_schema

__all__ = ["Schemas", "schemas_of"]

NEWEST = 20  # of a subject's versions are known from the beginning
LOOK_SECONDS = 1.0  # between two looks for new versions
AWAY_SECONDS = 30.0  # the same, while the registry does not answer
ABSENT_SECONDS = 60.0  # a schema that is not there is asked for again
LARGEST_ID = 0x7FFFFFFF

ReaderKey = tuple[tuple[str, ...], str]


@dataclass
class _Reader:
    """The schemas of one reader's messages, newest first; which versions of its subject have been seen; and when to
    look again."""

    ids: dict[int, None] = field(default_factory=dict)
    versions: set[int] = field(default_factory=set)
    again_at: float = float("-inf")


class Schemas:
    """One registry. A schema is its type, or a sentence that says why it has none. Nobody waits for another's request:
    the lock is held only while something is looked up or noted here."""

    def __init__(self, client: Client, clock: Callable[[], float] = time.monotonic) -> None:
        self._client = client
        self._clock = clock
        self._lock = threading.RLock()
        self._known: dict[int, AvroType | str] = {}
        self._absent: dict[int, float] = {}
        self._written: dict[tuple[str, str], int] = {}
        self._readers: dict[ReaderKey, _Reader] = {}

    def used(self, reader: ReaderKey) -> dict[int, AvroType | str]:
        """The schemas of a reader, newest first."""
        with self._lock:
            now = self._clock()
            found: dict[int, AvroType | str] = {}
            for schema_id in self._of(reader).ids:
                if schema_id in self._known:
                    found[schema_id] = self._known[schema_id]
                # An id that the registry does not know is remembered for a while, or a bad message would mean a request
                # with every batch; not for good, because registration may lag behind the first message.
                elif now < self._absent.get(schema_id, now) + ABSENT_SECONDS:
                    found[schema_id] = f"The registry has no schema with the id {schema_id}."
            return found

    def look(self, reader: ReaderKey, subject: str) -> None:
        """See whether the subject has new versions. If the registry does not answer, what is known must do."""
        with self._lock:
            state = self._of(reader)
            if not subject or self._clock() < state.again_at:
                return
            # Requests are made outside of the lock, with what was known when they began.
            first, seen = not state.ids, frozenset(state.versions)
        try:
            versions = self._client.versions(subject, "retries" if first else "once")
            new = [version for version in sorted(versions, reverse=True) if version not in seen]
            # The newest ones: a subject may have hundreds of versions, and messages mostly have one of the last. Others
            # are learned when a message names them.
            stored = [self._client.version(subject, version) for version in new[:NEWEST]]
            for one in stored:
                self._keep(one)
        except RegistryUnavailableError:
            if first:
                raise
            with self._lock:
                state.again_at = self._clock() + AWAY_SECONDS
            return
        with self._lock:
            state.ids = dict.fromkeys((*(one.id for one in stored if one is not None), *state.ids))
            state.versions.update(new)
            state.again_at = self._clock() + LOOK_SECONDS

    def learn(self, reader: ReaderKey, ids: Sequence[int]) -> None:
        """These are the schemas of the messages of this batch."""
        with self._lock:
            missing = [schema_id for schema_id in ids if schema_id not in self._known]
        for schema_id in missing:
            stored = self._client.schema(schema_id) if schema_id <= LARGEST_ID else None
            self._keep(stored)
            if stored is None:
                with self._lock:
                    self._absent[schema_id] = self._clock()
        with self._lock:
            state = self._of(reader)
            state.ids = dict.fromkeys((*(i for i in state.ids if i in self._known), *ids))

    def registered(self, subject: str, schema: str) -> int:
        """The id of a schema, which is registered if it is not there."""
        if (subject, schema) not in self._written:
            self._written[subject, schema] = self._client.register(subject, schema)
        return self._written[subject, schema]

    def looked_up(self, subject: str, schema: str) -> int | None:
        """The id of a schema; None if it is not there."""
        if (subject, schema) not in self._written:
            found = self._client.look_up(subject, schema)
            # Not remembered: somebody may register it at any time.
            if found is None:
                return None
            self._written[subject, schema] = found
        return self._written[subject, schema]

    def _of(self, reader: ReaderKey) -> _Reader:
        return self._readers.setdefault(reader, _Reader())

    def _keep(self, stored: Stored | None) -> None:
        if stored is not None and stored.id not in self._known:
            parsed = self._parsed(stored)
            with self._lock:
                self._known[stored.id] = parsed
                self._absent.pop(stored.id, None)

    def _parsed(self, stored: Stored) -> AvroType | str:
        if stored.kind != "AVRO":
            return f"Schema {stored.id} of the registry is {stored.kind}, not Avro."
        try:
            return parse_schema(stored.text, [s.text for s in self._references(stored, [])])
        except SchemaProblem as problem:
            return f"Schema {stored.id} of the registry cannot be used. {problem}"

    def _references(self, stored: Stored, found: list[Stored]) -> list[Stored]:
        """All schemas it refers to, those first that others refer to."""
        for subject, version in stored.references:
            other = self._client.version(subject, version)
            # Two schemas may refer to the same one: it is parsed once, and before both.
            if other is not None and other.id not in {s.id for s in found}:
                self._references(other, found)
                found.append(other)
        return found


_lock = threading.Lock()


def schemas_of(settings: Settings) -> Schemas:
    with _lock:
        return _schemas(settings)


@lru_cache(maxsize=64)
def _schemas(settings: Settings) -> Schemas:
    return Schemas(Client(settings))
