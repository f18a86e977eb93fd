"""Scripts on both engines: topics are filled once for all scripts that read them, every result is compared."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby

from engines import EngineProcess
from generate import fill
from harness import WARM_UPS, Engines, in_turn
from jobs import TOPICS
from nexmark_scripts import NEXMARK
from outputs import create_topic, drop_topic
from report import Measured
from scripts import Recount, Script

__all__ = ["Runs", "ScriptBench"]


@dataclass(frozen=True)
class Runs:
    """How often a script runs. Of Nexmark's twenty queries each has one timed run after one to warm up, so that all of
    them take no more than a quarter of an hour; they share much code, and what counts is their mean."""

    timed: int
    warm_ups: int = WARM_UPS

    def of(self, script: Script) -> Runs:
        return Runs(1, min(self.warm_ups, 1)) if script.name in NEXMARK else self


class ScriptBench:
    def __init__(self, servers: str, engines: Engines, rows: int, runs: Runs) -> None:
        self._servers = servers
        self._engines = engines
        self._rows = rows
        self._runs = runs

    def compare(self, scripts: Iterable[Script]) -> Iterator[tuple[str, Measured]]:
        """Scripts over the same topic follow each other. One that fails is left out, and the others are measured."""
        for _, group in groupby(scripts, key=lambda script: script.topics[0]):
            some = list(group)
            with self._filled({name for script in some for name in script.topics}) as recount:
                for script in some:
                    try:
                        yield script.name, self._measured(script, recount)
                    except RuntimeError as error:
                        print(f"{script.name}: {error}", file=sys.stderr, flush=True)

    def _measured(self, script: Script, recount: Recount) -> Measured:
        print(f"{script.name}: {script.title}", flush=True)
        messages: dict[str, int] = {}
        runs = self._runs.of(script)

        def timed(engine: EngineProcess) -> float:
            sink = f"{script.name}-{engine.name}-result"
            create_topic(self._servers, sink)
            try:
                places = {name: name for name in script.topics}
                seconds = engine.run(script.statements(engine.name, {"kafka": self._servers, "sink": sink, **places}))
                messages[engine.name] = recount.check(engine.name, script, self._servers, sink)
            finally:
                drop_topic(self._servers, sink)
            return seconds

        measured = in_turn(self._engines, runs.timed, timed, runs.warm_ups)
        measured.messages.update(messages)
        return measured

    @contextmanager
    def _filled(self, names: set[str]) -> Iterator[Recount]:
        """The topics with their messages, and the same in DuckDB."""
        began = time.perf_counter()
        topics = {name: TOPICS[name] for name in sorted(names)}
        for name, topic in topics.items():
            create_topic(self._servers, name)
            fill(self._servers, name, topic.generated, topic.rows(self._rows))
        recount = Recount(topics, self._rows)
        print(f"{', '.join(topics)}: filled in {time.perf_counter() - began:.1f} s", flush=True)
        try:
            yield recount
        finally:
            recount.close()
            for name in topics:
                drop_topic(self._servers, name)
