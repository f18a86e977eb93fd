"""Every case file, in every replay mode, on one broker and one Spark."""

from __future__ import annotations

from pathlib import Path

import pytest

from headwater.testing import CaseRunner, ReplayMode, read_case, replay_modes_of

HERE = Path(__file__).parent
FILES = sorted(HERE.rglob("*.case"))

QUICK_KILLS = ("recovery/restarts", "sinks/exactly_once", "sinks/kafka_with_primary_key", "sinks/materialized")
"""Every case is played as it is written in every run. Its replays take three times as long as that together, so most of
them are long; these are killed in every run: recovery itself, and each way that a sink has to see a batch again."""
assert all((HERE / f"{name}.case").exists() for name in QUICK_KILLS)


def is_long(path: Path, mode: ReplayMode) -> bool:
    if mode is ReplayMode.KILLS:
        return path.relative_to(HERE).with_suffix("").as_posix() not in QUICK_KILLS
    return mode is not ReplayMode.AS_WRITTEN


REPLAYS = [
    pytest.param(
        path,
        mode,
        id=f"{path.relative_to(HERE).with_suffix('')}-{mode.value}",
        marks=[pytest.mark.long] if is_long(path, mode) else [],
    )
    for path in FILES
    for case in [read_case(path)]
    for mode in replay_modes_of(case)
]


@pytest.mark.parametrize(("path", "mode"), REPLAYS)
def test_case(path: Path, mode: ReplayMode, case_runner: CaseRunner) -> None:
    case = read_case(path)
    case_runner.play(case, mode)
    if case.not_yet:
        pytest.xfail(case.not_yet)
