"""An entry of the log: a record, who wrote it, and where the newest commit and intent are.

    {"format": 2, "kind": "intent", "sequence": 42, "run": "…", "id": "…",
     "commits": [37, 39, 41], "pending": 42, "claims": [1, 35], "content": {…}, "digest": "…"}

The pointers make the newest entry sufficient: `commits` are the kept ones, oldest first, the last of them the newest;
`pending` is an intent without a commit; `claims` are the entries that are kept only to keep their numbers taken.
`id` is unique, so that a writer knows its own entry again.
"""

from __future__ import annotations

import json
import re
import uuid
from dataclasses import dataclass, field
from typing import Any

from headwater.errors import IncompatibleCheckpointError
from headwater.protocol.records import FORMAT_VERSION, Json, canonical
from headwater.protocol.storage import Storage, damaged, digest_of

__all__ = ["LOG", "Entry", "Pointers", "entry_name", "entry_numbers", "parse_entry"]

LOG = "log/"
_NAME = re.compile(r"log/(\d{20})\.json")


@dataclass(frozen=True)
class Pointers:
    """What an entry says about the others."""

    commits: tuple[int, ...]
    pending: int | None = None
    claims: tuple[int, ...] = ()


@dataclass(frozen=True)
class Entry:
    kind: str  # genesis, claim, intent, commit
    sequence: int
    run: str
    pointers: Pointers
    content: Json
    id: str = field(default_factory=lambda: uuid.uuid4().hex)

    def to_bytes(self) -> bytes:
        fields: Json = {"format": FORMAT_VERSION, **vars(self), **vars(self.pointers)}
        del fields["pointers"]
        text = canonical(fields)
        # The digest is the last field: whoever checks it cuts the text off there, and need not write JSON to the letter
        # as we do.
        return b'%s,"digest":"%s"}' % (text[:-1], digest_of(text).encode())

    @property
    def name(self) -> str:
        return entry_name(self.sequence)


def entry_name(sequence: int) -> str:
    return f"{LOG}{sequence:020d}.json"


def entry_numbers(names: list[str]) -> list[int]:
    """In order. Other files (leftovers of writers that crashed) are no entries."""
    return sorted(int(match[1]) for match in map(_NAME.fullmatch, names) if match)


def parse_entry(content: bytes, sequence: int, storage: Storage) -> Entry:
    """Any version of the format says its number in the same place, so that it can be refused by it."""
    name = entry_name(sequence)
    try:
        fields: dict[str, Any] = json.loads(content)
        version, digest = fields.pop("format"), fields.pop("digest", "")
    except (ValueError, KeyError, AttributeError, TypeError):
        raise damaged(name, "is no entry of a log", storage) from None
    if version != FORMAT_VERSION:
        raise _other_version(version, storage)
    text = content.rpartition(b',"digest":')[0] + b"}"
    if digest_of(text) != digest or fields["sequence"] != sequence:
        raise damaged(name, "has another content than was written", storage)
    pointers = Pointers(tuple(fields.pop("commits")), fields.pop("pending"), tuple(fields.pop("claims")))
    return Entry(pointers=pointers, **fields)


def _other_version(version: Any, storage: Storage) -> IncompatibleCheckpointError:
    return IncompatibleCheckpointError(
        f"The checkpoint has format version {version}; this version of Headwater reads and writes {FORMAT_VERSION}.",
        detail=f"Checkpoint: {storage}",
        hint="Run the job with the version of Headwater that wrote the checkpoint, or start with a new --checkpoint "
        "directory (the job then reads its input again).",
    )
