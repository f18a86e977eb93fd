"""The route of a batch: which tasks read, keep and write its rows. An intent has it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from headwater.catalog.tables import Table
from headwater.options.secrets import is_secret
from headwater.plan.fingerprint import Fingerprint

__all__ = ["Route", "route_digest"]


@dataclass(frozen=True)
class Route:
    """How rows come from the splits to the writers: all that decides which task reads, keeps and writes a row. It is
    part of every intent, because a batch that was written in part must be finished by the same route.

    tasks       per source, how many tasks read it
    partitions  of the state, and so of everything behind an operator
    plan        a digest of the plan and of the options of its tables
    """

    tasks: tuple[int, ...]
    partitions: int
    plan: str

    def __str__(self) -> str:
        return f"{'+'.join(map(str, self.tasks))} reading tasks, {self.partitions} state partitions"

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "tasks": list(self.tasks)}

    @staticmethod
    def from_json(content: Mapping[str, Any]) -> Route:
        return Route(tuple(content["tasks"]), content["partitions"], content["plan"])


def route_digest(fingerprint: Fingerprint, sink: Table) -> str:
    """Of what decides which rows there are, how they become messages, and which writer gets them."""
    # Addresses and logins may change between two runs; they do not decide which message goes where.
    given = {k: v for k, v in sink.raw_options.items() if not k.startswith("properties.") and not is_secret(k)}
    options = hashlib.sha256(json.dumps(sorted(given.items())).encode()).hexdigest()[:16]
    return f"{fingerprint.rows}-{options}"
