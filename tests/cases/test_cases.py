"""Every case file, played every way it can be, on one broker and one Spark."""

from __future__ import annotations

from pathlib import Path

import pytest

from headwater.testing import CaseRunner, Way, read_case, ways_of

HERE = Path(__file__).parent
FILES = sorted(HERE.rglob("*.case"))
PLAYS = [(path, way) for path in FILES for way in ways_of(read_case(path))]


@pytest.mark.parametrize(
    ("path", "way"), PLAYS, ids=[f"{path.relative_to(HERE).with_suffix('')}-{way.value}" for path, way in PLAYS]
)
def test_case(path: Path, way: Way, case_runner: CaseRunner) -> None:
    case = read_case(path)
    case_runner.play(case, way)
    if case.not_yet:
        pytest.xfail(case.not_yet)
