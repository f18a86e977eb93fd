"""The topics of the brokers that a session knows, for completion: asked for in the background, hardly waited for."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping

__all__ = ["KnownTopics"]

_FRESH_SECONDS = 15.0
_ASK_SECONDS = 3.0
_WAIT_SECONDS = 1.0


class KnownTopics:
    """Per set of bootstrap servers what was found last. The first question waits a little; if the answer comes later,
    the next one has it."""

    def __init__(self) -> None:
        self._found: dict[str, tuple[float, list[str]]] = {}
        self._asking: set[str] = set()
        self._lock = threading.Lock()

    def of(self, connection: Mapping[str, str]) -> list[str]:
        """`connection` are options of a table: 'properties.…'."""
        servers = connection.get("properties.bootstrap.servers", "")
        if not servers:
            return []
        with self._lock:
            asked, names = self._found.get(servers, (float("-inf"), []))
            if time.monotonic() - asked > _FRESH_SECONDS and servers not in self._asking:
                self._asking.add(servers)
                asking = threading.Thread(target=self._ask, args=(servers, dict(connection)), daemon=True)
                asking.start()
            else:
                return names
        asking.join(_WAIT_SECONDS)
        with self._lock:
            return self._found.get(servers, (0.0, names))[1]

    def _ask(self, servers: str, connection: dict[str, str]) -> None:
        names = _topics(connection)
        with self._lock:
            self._asking.discard(servers)
            self._found[servers] = (time.monotonic(), names)


def _topics(connection: Mapping[str, str]) -> list[str]:
    from headwater.cli.kafka import Target, admin_of

    try:
        found = admin_of(Target("", connection), _ASK_SECONDS).list_topics(timeout=_ASK_SECONDS).topics
    except Exception:  # noqa: BLE001 - completion says nothing rather than something wrong
        return []
    return sorted(name for name in found if not name.startswith("__"))
