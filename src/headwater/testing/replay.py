"""One case in one replay mode: steps in, or a CaseFailure out."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import cycle, zip_longest

from headwater.errors import HeadwaterError
from headwater.session.definitions import Definitions, JobPlan
from headwater.sql.parser import parse_script
from headwater.testing.case import (
    Block,
    Case,
    Expect,
    ExpectError,
    ExpectMode,
    ExpectPlan,
    ExpectTable,
    Message,
    Produce,
    Restart,
    Sql,
    Topic,
)
from headwater.testing.catch_up import NotCaughtUp, await_caught_up, await_failure
from headwater.testing.codec import Codec, codec_of
from headwater.testing.compare import Mismatch, compare, compare_outcome, difference
from headwater.testing.engine import Engine, EngineJob, StatementFailed
from headwater.testing.faults import Fault
from headwater.testing.kafka import Kafka
from headwater.testing.replay_modes import Combined, ReplayMode, ReplayOutcome, Step, settings_of_runs, steps

__all__ = ["CaseFailure", "Edit", "Replay", "in_memory"]

MakeEngine = Callable[[str, dict[str, str], Mapping[str, str]], Engine]
"""Gives an engine on a checkpoint directory, with variables for its script and settings of its session."""

SECONDS = 60.0
_SHARED_MEMORY = "/dev/shm"
_ROOM = 1 << 30  # containers often have 64 MB there, which a case may well fill


class CaseFailure(AssertionError):
    """A case did not go as written: where, and what came instead."""


Edit = tuple[Block, tuple[str, ...]]
"""Lines of the file that `--rewrite` replaces."""


class Replay:
    """`edits` collects what differs if `rewriting`, else the first difference raises."""

    def __init__(
        self,
        case: Case,
        mode: ReplayMode,
        kafka: Callable[[], Kafka],
        make_engine: MakeEngine,
        *,
        rewriting: bool = False,
    ) -> None:
        self.edits: list[Edit] = []
        self._case = case
        self._replay_mode = mode
        self._rewriting = rewriting
        self._make_engine = make_engine
        self._directory = tempfile.mkdtemp(prefix="headwater-case-", dir=in_memory())
        self._kafka = kafka() if case.topics else None
        # Topics of its own for every replay: deleting a topic takes time, and its name is not free at once.
        suffix = uuid.uuid4().hex[:8]
        self._names = {topic.name: f"{topic.name}-{suffix}" for topic in case.topics}
        self._partitions = {self._names[topic.name]: topic.partitions for topic in case.topics}
        self._seen: dict[str, dict[int, int]] = {}
        # All kinds of crash in turn, the hardest first: rows are with the sink, and the checkpoint knows nothing of it.
        self._faults = cycle((Fault.UNCOMMITTED, Fault.UNWRITTEN, Fault.INTENDED))
        self._settings = settings_of_runs(mode)
        self._engine = self._new_engine()
        self._definitions = Definitions()
        self._script: list[Sql] = []
        self._plan = ""
        self._refused: StatementFailed | None = None
        self._caught_up = True

    def run(self) -> None:
        try:
            self._create_topics()
            plan = steps(self._case, self._replay_mode)
            for step, following in zip_longest(plan, plan[1:]):
                self._step(step, following)
            self._finish()
        finally:
            self._engine.stop()
            if self._kafka is not None:
                self._kafka.delete(list(self._names.values()))
            shutil.rmtree(self._directory, ignore_errors=True)

    def _step(self, step: Step, following: Step | None) -> None:
        if self._refused is not None and not isinstance(step, ExpectError):
            raise self._failure(self._script[-1].line if self._script else step.line, str(self._refused.error))
        match step:
            case Topic():
                return
            case Sql():
                self._run_sql(step)
            case Produce():
                self._produce((step,))
            case Combined():
                self._produce(step.blocks)
            case Restart():
                self._catch_up(step.line)
                (self._engine.kill if step.kill else self._engine.stop)()
                self._start_again([] if isinstance(following, Sql) else self._script)
            case ExpectError():
                self._expect_error(step)
            case Expect():
                self._expect(step)
            case ExpectTable():
                self._expect_table(step)
            case ExpectPlan():
                got = tuple(self._plan.splitlines())
                self._verdict(step, None if self._plan == step.text else Mismatch(tuple(step.text.splitlines()), got))
            case ReplayOutcome():
                self._expect_outcome(step)

    def _create_topics(self) -> None:
        if self._kafka is None:
            return
        for compacted in (False, True):
            topics = [t for t in self._case.topics if t.compacted is compacted]
            self._kafka.create({self._names[t.name]: t.partitions for t in topics}, compacted=compacted)

    def _new_engine(self) -> Engine:
        return self._make_engine(self._directory, self._variables(), next(self._settings))

    def _variables(self) -> dict[str, str]:
        servers = self._kafka.bootstrap_servers if self._kafka is not None else "localhost:9092"
        return {**self._names, "kafka": servers}

    def _run_sql(self, sql: Sql) -> None:
        self._script.append(sql)
        jobs = len(self._engine.jobs())
        try:
            self._engine.run(sql.text, self._case.path)
        except StatementFailed as refused:
            self._refused = refused
        if len(self._engine.jobs()) > jobs:
            self._caught_up = False
        # Planned a second time, apart from the engine, which may be in another process and has no plans to show.
        with contextlib.suppress(HeadwaterError):  # a refused statement is refused here too, behind those that are not
            self._plan = "\n".join(job.explain() for job in self._planned(sql.text))

    def _planned(self, script: str) -> Iterator[JobPlan]:
        for statement in parse_script(script, self._case.path, self._variables()):
            yield from self._definitions.apply(statement)

    def _produce(self, blocks: Sequence[Produce]) -> None:
        assert self._kafka is not None, "a block names a topic of the case"
        self._catch_up(blocks[0].line)
        if self._replay_mode is ReplayMode.KILLS:
            self._engine.crash_next(next(self._faults))
        # Held still while messages are produced, so that all of a block are seen in one batch.
        self._engine.pause()
        for block in blocks:
            codec = self._codec(block.topic)
            try:
                self._kafka.produce(map(codec.record, block.messages))
            except ValueError as error:
                raise self._failure(block.line, str(error)) from error
        self._caught_up = False
        self._engine.resume()
        if self._replay_mode is ReplayMode.KILLS and self._script:
            self._catch_up(blocks[0].line)
            self._engine.kill()
            self._start_again(self._script)

    def _start_again(self, script: Sequence[Sql]) -> None:
        """A new engine, in which this script is run."""
        self._engine = self._new_engine()
        self._script = []
        self._definitions = Definitions()
        for sql in script:
            self._run_sql(sql)
            self._refused = None  # if it was, that was expected the first time

    def _catch_up(self, line: int) -> None:
        if self._caught_up:
            return
        try:
            await_caught_up(self._engine, self._kafka, self._partitions, SECONDS)
        except NotCaughtUp as error:
            raise self._failure(line, str(error)) from error
        self._caught_up = True

    def _expect_error(self, step: ExpectError) -> None:
        if step.phase == "run":
            text = self._failed_job(step).error
            self._caught_up = True
        else:
            refused, self._refused = self._refused, None
            if refused is None or refused.phase not in {step.phase, "parse"}:
                came = "was taken" if refused is None else f"was refused at {refused.phase}: {refused.error}"
                raise self._failure(step.line, f"The SQL above was to be refused at {step.phase}, but it {came}.")
            text = str(refused.error)
        missing = [text_ for text_ in step.wanted if _squeezed(text_) not in _squeezed(text)]
        if missing:
            self._verdict(step, Mismatch(step.wanted, tuple(line for line in text.splitlines() if line.strip())))

    def _failed_job(self, step: ExpectError) -> EngineJob:
        try:
            return await_failure(self._engine, SECONDS)
        except NotCaughtUp as error:
            raise self._failure(step.line, str(error)) from error

    def _expect(self, step: Expect) -> None:
        self._catch_up(step.line)
        arrived = self._arrived(step.topic, {} if step.mode is ExpectMode.FINAL else None)
        self._verdict(step, compare(step.messages, arrived, step.mode))

    def _expect_table(self, step: ExpectTable) -> None:
        self._catch_up(step.line)
        expected = tuple(sorted(" | ".join(row) for row in step.rows))
        got = tuple(sorted(" | ".join(row) for row in self._engine.table(step.table)))
        if self._replay_mode is ReplayMode.KILLS and not self._definitions.catalog.table(step.table).primary_key:
            # A log may repeat itself after a crash.
            expected, got = tuple(sorted(set(expected))), tuple(sorted(set(got)))
        self._verdict(step, None if expected == got else Mismatch(expected, got))

    def _expect_outcome(self, step: ReplayOutcome) -> None:
        self._catch_up(step.line)
        mismatch = compare_outcome(step, self._arrived(step.topic, {}), repeats=self._replay_mode is ReplayMode.KILLS)
        if mismatch is not None:
            raise self._failure(step.line, f"Topic '{step.topic}' amounts to something else:\n{difference(mismatch)}")

    def _arrived(self, topic: str, start: Mapping[int, int] | None = None) -> list[Message]:
        """The messages from these offsets on ({}: all of them), or since the last look."""
        assert self._kafka is not None, "a block names a topic of the case"
        name = self._names[topic]
        ends = {p: offset for (_, p), offset in self._kafka.ends({name: self._partitions[name]}).items()}
        since = self._seen.get(topic, {}) if start is None else start
        self._seen[topic] = ends
        return [self._codec(topic).message(record) for record in self._kafka.read(name, since, ends)]

    def _codec(self, topic: str) -> Codec:
        return codec_of(self._names[topic], self._definitions.catalog.tables())

    def _finish(self) -> None:
        """Nothing is refused in silence, and every topic that was looked at is exhausted."""
        if self._refused is not None:
            raise self._failure(self._script[-1].line, str(self._refused.error))
        self._catch_up(self._case.directives[-1].line if self._case.directives else 1)
        for topic in list(self._seen) if self._replay_mode is ReplayMode.AS_WRITTEN else ():
            mismatch = compare((), self._arrived(topic), ExpectMode.EXACT)
            if mismatch is not None:
                text = f"Topic '{topic}' has more messages than were expected:\n{difference(mismatch)}"
                raise self._failure(len(self._case.text.splitlines()), text)

    def _verdict(self, step: Expect | ExpectTable | ExpectPlan | ExpectError, mismatch: Mismatch | None) -> None:
        if mismatch is None:
            return
        if self._rewriting:
            self.edits.append((step.body, mismatch.got))
            return
        raise self._failure(step.line, difference(mismatch))

    def _failure(self, line: int, text: str) -> CaseFailure:
        lines = self._case.text.splitlines()
        directive = lines[line - 1] if 0 < line <= len(lines) else "end"
        return CaseFailure(f"{self._case.path}:{line}: {directive.strip()} ({self._replay_mode.value})\n{text}")


def in_memory() -> str | None:
    """A file system in memory, if there is one with room: syncing files takes no time there, and a checkpoint that ends
    with its case need not survive the machine."""
    try:
        roomy = shutil.disk_usage(_SHARED_MEMORY).free >= _ROOM and os.access(_SHARED_MEMORY, os.W_OK | os.X_OK)
    except OSError:
        return None
    return _SHARED_MEMORY if roomy else None


def _squeezed(text: str) -> str:
    """Runs of white space as one blank: an error may break its lines where it likes."""
    return " ".join(text.split())
