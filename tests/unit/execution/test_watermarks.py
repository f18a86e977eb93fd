"""Watermarks of partitions while they are read, and of sources as the driver decides them."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest

from headwater.changelog.operator import FINAL, OWN_WATERMARK, Time
from headwater.connectors.runtime import PLACE
from headwater.execution import watermark_worker
from headwater.execution import watermarks as watermarks_module
from headwater.execution.watermark_worker import ROW_WATERMARK, WatermarkTask
from headwater.execution.watermarks import END, WatermarkedSource, Watermarks, reported_watermarks, time_of
from headwater.execution.worker import TaskBatch
from headwater.protocol.records import Commit


class Reported(dict[Any, Any]):
    def add(self, report: dict[Any, Any]) -> None:
        self.update(report)


def commit(positions: dict[str, int], watermarks: dict[str, int], bound: dict[str, int] | None = None) -> Commit:
    return Commit(1, "", "", 1, [positions], [bound], [watermarks] if watermarks else [])


def now_of(watermarks: Watermarks, after: Commit) -> int | None:
    ((_, now),) = watermarks.next(after)
    return now


def test_the_slowest_partition_decides() -> None:
    one = Watermarks([WatermarkedSource(list)])
    assert now_of(one, commit({"t:0": 3, "t:1": 0}, {"t:0": 5000})) is None
    assert now_of(one, commit({"t:0": 3, "t:1": 1}, {"t:0": 5000, "t:1": 9000})) == 5000


def test_a_partition_without_messages_is_named() -> None:
    one = Watermarks([WatermarkedSource(list)])
    assert one.waiting(commit({"t:0": 3, "t:1": 0}, {"t:0": 5000})) == {0: ["t:1"]}
    assert one.waiting(commit({"t:0": 0, "t:1": 0}, {})) == {}
    assert Watermarks([WatermarkedSource(list, 1.0)]).waiting(commit({"t:0": 3, "t:1": 0}, {"t:0": 5000})) == {}


def test_a_partition_whose_messages_wait_to_be_read_is_not_idle() -> None:
    """The next batch may not be due yet, or the last one may have taken long."""
    clock = [0.0]
    one = Watermarks([WatermarkedSource(list, 2.0)], clock=lambda: clock[0])
    after = commit({"t:0": 3, "t:1": 3}, {"t:0": 5000, "t:1": 1000})
    for now, ends, expected in (
        (0.0, {"t:0": 3, "t:1": 3}, 1000),
        (3.0, {"t:0": 9, "t:1": 9}, 1000),
        (4.0, {"t:0": 9, "t:1": 3}, 1000),  # a second since its last message
        (6.0, {"t:0": 9, "t:1": 3}, 5000),
    ):
        clock[0] = now
        assert one.next(after, [ends]) == [[None, expected]]


def test_an_idle_partition_holds_nothing_back_and_time_does_not_go_back() -> None:
    clock = [0.0]
    one = Watermarks([WatermarkedSource(list, 2.0)], clock=lambda: clock[0])
    first = commit({"t:0": 3, "t:1": 0}, {"t:0": 5000})
    assert now_of(one, first) is None
    clock[0] = 2.5
    assert now_of(one, commit({"t:0": 4, "t:1": 0}, {"t:0": 6000})) == 6000
    later = Commit(2, "", "", 1, [{"t:0": 4, "t:1": 1}], [None], [{"t:0": 6000, "t:1": 100}], reached=[6000])
    assert now_of(one, later) == 6000
    clock[0] = 10.0
    assert now_of(one, later) == 6000


def test_the_end_of_bounded_input_is_the_end_of_time() -> None:
    one = Watermarks([WatermarkedSource(list)])
    bound = {"t:0": 3, "t:1": 3}
    half = commit({"t:0": 3, "t:1": 1}, {"t:0": 1000, "t:1": 2000}, bound)
    assert now_of(one, half) == 2000  # what has been read to its end holds nothing back
    assert now_of(one, commit(bound, {"t:0": 1000, "t:1": 2000}, bound)) == END


def test_the_slowest_source_decides_for_an_operator_over_several() -> None:
    watermarks = [[None, 3000], [1000, 9000], [None, None]]
    assert time_of(watermarks, (0, 1), 7).watermark == 3_000_000
    assert time_of(watermarks, (0, 1), 7).watermark_before is None
    assert time_of(watermarks, (1,), 7).watermark_before == 1_000_000
    assert time_of([[5, END]], (0,), 7).watermark == FINAL
    assert time_of([[5, END]], (0,), 7, 2_000) == Time(3_000, FINAL, 7_000), "what is final waits for nothing"
    assert not time_of([], (0,), 7).moved


def test_an_idle_source_goes_along_with_the_others() -> None:
    clock = [0.0]
    two = Watermarks([WatermarkedSource(list, 1.0), WatermarkedSource(list)], clock=lambda: clock[0])
    both = Commit(1, "", "", 1, [{"a:0": 1}, {"b:0": 1}], [None, None], [{"a:0": 1000}, {"b:0": 8000}])
    assert two.next(both) == [[None, 1000], [None, 8000]]
    clock[0] = 1.5
    assert two.next(both) == [[None, 8000], [None, 8000]]


def test_without_a_watermark_there_is_no_time() -> None:
    none = Watermarks([None])
    assert none.next(commit({"t:0": 3}, {})) == []
    assert reported_watermarks([], 1, {}, "a") == []


def test_no_two_batches_have_the_same_processing_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also within a millisecond, and if the clock is set back."""
    clock = iter([5.0, 5.0, 3.0, 9.0])
    monkeypatch.setattr(watermarks_module.time, "time", lambda: next(clock))
    watermarks = Watermarks([])
    assert [watermarks.processing_time([]) for _ in range(4)] == [5000, 5001, 5002, 9000]


def test_the_time_of_a_batch_lies_behind_the_windows_it_closes(monkeypatch: pytest.MonkeyPatch) -> None:
    """If the clock was set back, a row would fall into a window that is gone."""
    monkeypatch.setattr(watermarks_module.time, "time", lambda: 5.0)
    assert Watermarks([], period=1000).processing_time([[8999, 9999]]) == 10_000
    assert Watermarks([], period=1000).processing_time([[4999, END]]) == 5000
    assert Watermarks([WatermarkedSource(list)]).processing_time([[8999, 9999]]) == 5000, "of rows, not of the clock"


def test_a_watermark_that_is_reported_does_not_go_back() -> None:
    reports = {("a", "watermark", "0", "t:0"): 5, ("a", "watermark", "0", "t:1"): 5, ("b", "watermark", "0", "t:1"): 7}
    assert reported_watermarks([{"t:0": 9, "t:2": 1}], 1, reports, "a") == [{"t:0": 9, "t:1": 5, "t:2": 1}]


def test_rows_have_the_watermark_of_their_partition_however_batches_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    """The reference is the running maximum over each partition."""
    output = pa.schema([("n", pa.int64()), (OWN_WATERMARK, pa.timestamp("us"))])
    for seed in range(50):
        rng = random.Random(seed)
        history = [(rng.randrange(3), rng.choice([None, *range(20)])) for _ in range(rng.randrange(1, 30))]
        expected, greatest = [], {}
        for place, value in history:
            before = greatest.get(place)
            expected.append(before)
            if value is not None:
                greatest[place] = value if before is None else max(before, value)
        found: list[int | None] = []
        watermarks: list[dict[str, int]] = []
        rest, number = history, 0
        while rest:
            size, number = rng.randrange(1, len(rest) + 1), number + 1
            batch, rest = rest[:size], rest[size:]
            current = TaskBatch(number, f"a{number}", "", [], watermarks=watermarks)
            monkeypatch.setattr(watermark_worker.TaskBatch, "current", lambda current=current: current)
            reports = Reported()
            found += run(WatermarkTask(0, "t:", reports, output), batch, rng)  # type: ignore[arg-type]
            watermarks = reported_watermarks(watermarks, 1, reports, f"a{number}")
        assert found == expected
        assert (watermarks[0] if watermarks else {}) == {f"t:{k}": v for k, v in greatest.items()}


def run(stage: WatermarkTask, history: list[tuple[int, int | None]], rng: random.Random) -> list[int | None]:
    places, values = zip(*history, strict=True)
    rows = pa.record_batch(
        [
            pa.array(range(len(history))),
            pa.array([None if v is None else 1000 * v for v in values], pa.timestamp("us")),
            pa.array(places, pa.int32()),
        ],
        names=["n", ROW_WATERMARK, PLACE],
    )
    cut = rng.randrange(len(history) + 1)
    out = list(stage([rows.slice(0, cut), rows.slice(cut)]))
    micros = [v for batch in out for v in batch.column(OWN_WATERMARK).cast(pa.int64()).to_pylist()]
    return [None if v is None else v // 1000 for v in micros]
