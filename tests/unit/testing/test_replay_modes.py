"""The replay modes of a case, and what its expectations amount to."""

from __future__ import annotations

from itertools import islice

from headwater.testing import ReplayMode, parse_case, replay_modes_of
from headwater.testing.case import Case, Expect, ExpectTable, Message, Produce, Restart, Sql, Topic
from headwater.testing.replay_modes import Combined, outcomes, settings_of_runs, steps

HEAD = "topic in\ntopic out\n\nsql\nSHOW TABLES;\n\n"
CASE = (
    HEAD
    + """\
produce in
a => 1
b => 2

expect out per-key
a => 1
b => 2

table t
1

restart kill

produce in
a => null

expect out per-key
a => null

table t
2
"""
)


def kinds(case: Case, mode: ReplayMode) -> list[str]:
    return [type(step).__name__ for step in steps(case, mode)]


def test_as_written_is_the_case() -> None:
    case = parse_case(CASE)
    assert steps(case, ReplayMode.AS_WRITTEN) == case.directives
    assert replay_modes_of(case) == tuple(ReplayMode)


def test_input_is_decoded_in_small_chunks_and_again_in_large_ones() -> None:
    small: dict[str, str] = {"headwater.source.chunk-rows": "2"}
    as_written, one_batch, kills = (
        list(islice(settings_of_runs(mode), 3))
        for mode in (ReplayMode.AS_WRITTEN, ReplayMode.ONE_BATCH, ReplayMode.KILLS)
    )
    assert as_written == [{}, {}, {}]
    assert one_batch == [small, small, small]
    assert kills == [small, {}, small]


def test_one_by_one_cuts_blocks_and_keeps_lasting_checks() -> None:
    case = parse_case(CASE)
    names = [
        "Topic",
        "Topic",
        "Sql",
        "Produce",
        "Produce",
        "ExpectTable",
        "Restart",
        "Produce",
        "ExpectTable",
        "ReplayOutcome",
    ]
    assert kinds(case, ReplayMode.ONE_BY_ONE) == names
    cut = [step for step in steps(case, ReplayMode.ONE_BY_ONE) if isinstance(step, Produce)]
    assert [len(block.messages) for block in cut] == [1, 1, 1]
    assert [block.line for block in cut] == [8, 9, 21]


def test_one_batch_puts_all_input_together_and_drops_what_comes_too_early() -> None:
    case = parse_case(CASE)
    assert kinds(case, ReplayMode.ONE_BATCH) == ["Topic", "Topic", "Sql", "Combined", "ExpectTable", "ReplayOutcome"]
    together = next(step for step in steps(case, ReplayMode.ONE_BATCH) if isinstance(step, Combined))
    assert [len(block.messages) for block in together.blocks] == [2, 1]


def test_input_before_the_script_stays_there() -> None:
    case = parse_case("topic in\nproduce in\na => 0\n\nsql\nSHOW TABLES;\n\nproduce in\na => 1\n\nproduce in\na => 2\n")
    assert kinds(case, ReplayMode.ONE_BATCH) == ["Topic", "Produce", "Sql", "Combined"]


def test_kills_keep_blocks_and_restarts() -> None:
    names = ["Topic", "Topic", "Sql", "Produce", "ExpectTable", "Restart", "Produce", "ExpectTable", "ReplayOutcome"]
    assert kinds(parse_case(CASE), ReplayMode.KILLS) == names


def test_a_case_without_input_is_played_once() -> None:
    assert replay_modes_of(parse_case("sql\nSHOW TABLES;\n")) == (ReplayMode.AS_WRITTEN,)


def test_a_failing_job_or_a_marked_case_is_played_once() -> None:
    failing = HEAD + "produce in\na => 1\n\nerror run contains x\n"
    assert replay_modes_of(parse_case(failing)) == (ReplayMode.AS_WRITTEN,)
    assert replay_modes_of(parse_case("marker: notyet x\n" + CASE)) == (ReplayMode.AS_WRITTEN,)


def test_a_changed_script_keeps_its_batches() -> None:
    changed = HEAD + "produce in\na => 1\n\nrestart clean\n\nsql\nSHOW TABLES;\n"
    assert ReplayMode.ONE_BATCH not in replay_modes_of(parse_case(changed))


def expect(mode: str, *lines: str) -> str:
    return f"expect out {mode}\n" + "".join(f"{line}\n" for line in lines) + "\n"


def test_an_outcome_folds_all_expectations() -> None:
    text = HEAD + expect("per-key", "a => 1", "b => 1") + expect("exact", "a => null", "b => 2", "null => x")
    (outcome,) = outcomes(parse_case(text))
    assert outcome.rows == {b"b": Message(b"b", b"2", line=13)}
    assert [message.value for message in outcome.log] == [b"x"]
    assert outcome.topic == "out"


def test_a_final_block_says_it_all() -> None:
    text = HEAD + expect("exact", "a => 1", "null => x") + expect("final", "b => 1")
    (outcome,) = outcomes(parse_case(text))
    assert list(outcome.rows) == [b"b"]
    assert outcome.log == ()


def test_any_order_leaves_repeated_keys_open() -> None:
    (outcome,) = outcomes(parse_case(HEAD + expect("any-order", "a => 1", "a => 2", "b => 1")))
    assert outcome.rows[b"a"] is None
    assert outcome.rows[b"b"] is not None


def test_only_lasting_checks_are_kept() -> None:
    case = parse_case(CASE)
    for mode in (ReplayMode.ONE_BATCH, ReplayMode.ONE_BY_ONE, ReplayMode.KILLS):
        assert not any(isinstance(step, Expect) for step in steps(case, mode))
        assert all(isinstance(step, Topic | Sql) for step in steps(case, mode)[:3])
        assert any(isinstance(step, ExpectTable) for step in steps(case, mode))
    assert not any(isinstance(step, Restart) for step in steps(case, ReplayMode.ONE_BATCH))


def test_batches_that_are_the_same_as_written_are_not_played_twice() -> None:
    block = "produce in\na => 1\n\n"
    assert replay_modes_of(parse_case(HEAD + block)) == (ReplayMode.AS_WRITTEN, ReplayMode.KILLS)
    assert ReplayMode.ONE_BY_ONE not in replay_modes_of(parse_case(HEAD + block + block))
    assert ReplayMode.ONE_BATCH not in replay_modes_of(parse_case(HEAD + "produce in\na => 1\nb => 2\n"))
