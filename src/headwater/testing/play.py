"""One case, played one way: steps in, or a CaseFailure out."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
import uuid
from collections.abc import Callable, Sequence
from itertools import cycle, zip_longest

from headwater.errors import HeadwaterError
from headwater.plan.explain import explain
from headwater.session import Session
from headwater.testing.case import (
    Block,
    Case,
    Expect,
    ExpectError,
    ExpectPlan,
    ExpectTable,
    Message,
    Mode,
    Produce,
    Restart,
    Sql,
    Topic,
)
from headwater.testing.compare import Mismatch, compare, compare_outcome, difference
from headwater.testing.engine import Engine, JobStatus, StatementFailed
from headwater.testing.faults import Fault
from headwater.testing.kafka import Kafka
from headwater.testing.settle import NotSettled, await_failure, settle
from headwater.testing.ways import Outcome, Step, Together, Way, steps
from headwater.testing.wire import Codec, codec_of

__all__ = ["CaseFailure", "Edit", "Play"]

MakeEngine = Callable[[str, dict[str, str]], Engine]
"""Gives an engine on a checkpoint directory, with variables for its script."""

SECONDS = 60.0


class CaseFailure(AssertionError):
    """A case did not go as written: where, and what came instead."""


Edit = tuple[Block, tuple[str, ...]]
"""Lines of the file that `--rewrite` replaces."""


class Play:
    """`edits` collects what differs if `rewriting`, else the first difference raises."""

    def __init__(
        self, case: Case, way: Way, kafka: Callable[[], Kafka], make_engine: MakeEngine, rewriting: bool = False
    ) -> None:
        self.edits: list[Edit] = []
        self._case = case
        self._way = way
        self._rewriting = rewriting
        self._make_engine = make_engine
        self._directory = tempfile.mkdtemp(prefix="headwater-case-")
        self._kafka = kafka() if case.topics else None
        suffix = uuid.uuid4().hex[:8]
        self._names = {topic.name: f"{topic.name}-{suffix}" for topic in case.topics}
        self._partitions = {self._names[topic.name]: topic.partitions for topic in case.topics}
        self._seen: dict[str, dict[int, int]] = {}
        self._faults = cycle((Fault.UNCOMMITTED, Fault.UNWRITTEN, Fault.INTENDED))
        self._engine = self._new_engine()
        self._definitions = self._new_definitions()
        self._script: list[Sql] = []
        self._plan = ""
        self._refused: StatementFailed | None = None
        self._settled = True

    def run(self) -> None:
        try:
            self._create_topics()
            plan = steps(self._case, self._way)
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
            case Together():
                self._produce(step.blocks)
            case Restart():
                self._settle(step.line)
                self._restart(step.kill, script_follows=isinstance(following, Sql))
            case ExpectError():
                self._expect_error(step)
            case Expect():
                self._expect(step)
            case ExpectTable():
                self._expect_table(step)
            case ExpectPlan():
                got = tuple(self._plan.splitlines())
                self._verdict(step, None if self._plan == step.text else Mismatch(tuple(step.text.splitlines()), got))
            case Outcome():
                self._expect_outcome(step)

    def _create_topics(self) -> None:
        if self._kafka is None:
            return
        for compacted in (False, True):
            topics = [t for t in self._case.topics if t.compacted is compacted]
            self._kafka.create({self._names[t.name]: t.partitions for t in topics}, compacted=compacted)

    def _new_engine(self) -> Engine:
        return self._make_engine(self._directory, self._variables())

    def _new_definitions(self) -> Session:
        """A session that only defines: it knows the tables and plans of the script and runs nothing."""
        return Session(variables=self._variables())

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
            self._settled = False
        with contextlib.suppress(HeadwaterError):  # a refused statement is refused here too, behind those that are not
            self._plan = "\n".join(explain(plan) for plan in self._definitions.check(sql.text, self._case.path))

    def _produce(self, blocks: Sequence[Produce]) -> None:
        assert self._kafka is not None, "a block names a topic of the case"
        self._settle(blocks[0].line)
        if self._way is Way.KILLS:
            self._engine.crash_next(next(self._faults))
        self._engine.pause()
        for block in blocks:
            codec = self._codec(block.topic)
            try:
                self._kafka.produce(map(codec.record, block.messages))
            except ValueError as error:
                raise self._failure(block.line, str(error)) from error
        self._settled = False
        self._engine.resume()
        if self._way is Way.KILLS and self._script:
            self._settle(blocks[0].line)
            self._restart(kill=True, script_follows=False)

    def _restart(self, kill: bool, script_follows: bool) -> None:
        if kill:
            self._engine.kill()
        else:
            self._engine.stop()
        self._engine = self._new_engine()
        script, self._script = self._script, []
        self._definitions = self._new_definitions()
        for sql in () if script_follows else script:
            self._run_sql(sql)
            self._refused = None  # if it was, that was expected the first time

    def _settle(self, line: int) -> None:
        if self._settled:
            return
        try:
            settle(self._engine, self._kafka, self._partitions, SECONDS)
        except NotSettled as error:
            raise self._failure(line, str(error)) from error
        self._settled = True

    def _expect_error(self, step: ExpectError) -> None:
        if step.phase == "run":
            text = self._failed_job(step).error
            self._settled = True
        else:
            refused, self._refused = self._refused, None
            if refused is None or refused.phase not in {step.phase, "parse"}:
                came = "was taken" if refused is None else f"was refused at {refused.phase}: {refused.error}"
                raise self._failure(step.line, f"The SQL above was to be refused at {step.phase}, but it {came}.")
            text = str(refused.error)
        missing = [wanted for wanted in step.texts if _squeezed(wanted) not in _squeezed(text)]
        if missing:
            self._verdict(step, Mismatch(step.texts, tuple(line for line in text.splitlines() if line.strip())))

    def _failed_job(self, step: ExpectError) -> JobStatus:
        try:
            return await_failure(self._engine, SECONDS)
        except NotSettled as error:
            raise self._failure(step.line, str(error)) from error

    def _expect(self, step: Expect) -> None:
        self._settle(step.line)
        self._verdict(step, compare(step.messages, self._arrived(step.topic, step.mode is Mode.FINAL), step.mode))

    def _expect_table(self, step: ExpectTable) -> None:
        self._settle(step.line)
        expected = tuple(sorted(" | ".join(row) for row in step.rows))
        got = tuple(sorted(" | ".join(row) for row in self._engine.table(step.table)))
        if self._way is Way.KILLS and not self._definitions.catalog.table(step.table).primary_key:
            # A log may repeat itself after a crash.
            expected, got = tuple(sorted(set(expected))), tuple(sorted(set(got)))
        self._verdict(step, None if expected == got else Mismatch(expected, got))

    def _expect_outcome(self, step: Outcome) -> None:
        self._settle(step.line)
        mismatch = compare_outcome(step, self._arrived(step.topic, True), repeats=self._way is Way.KILLS)
        if mismatch is not None:
            raise self._failure(step.line, f"Topic '{step.topic}' amounts to something else:\n{difference(mismatch)}")

    def _arrived(self, topic: str, from_start: bool) -> list[Message]:
        """The messages since the last look, or all of them."""
        assert self._kafka is not None, "a block names a topic of the case"
        name = self._names[topic]
        ends = {p: offset for (_, p), offset in self._kafka.ends({name: self._partitions[name]}).items()}
        start = {} if from_start else self._seen.get(topic, {})
        self._seen[topic] = ends
        return [self._codec(topic).message(record) for record in self._kafka.read(name, start, ends)]

    def _codec(self, topic: str) -> Codec:
        return codec_of(self._names[topic], self._definitions.catalog.tables())

    def _finish(self) -> None:
        """Nothing is refused in silence, and every topic that was looked at is exhausted."""
        if self._refused is not None:
            raise self._failure(self._script[-1].line, str(self._refused.error))
        self._settle(self._case.directives[-1].line if self._case.directives else 1)
        for topic in list(self._seen) if self._way is Way.AS_WRITTEN else ():
            mismatch = compare((), self._arrived(topic, from_start=False), Mode.EXACT)
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
        return CaseFailure(f"{self._case.path}:{line}: {directive.strip()} ({self._way.value})\n{text}")


def _squeezed(text: str) -> str:
    """Runs of white space as one blank: an error may break its lines where it likes."""
    return " ".join(text.split())
