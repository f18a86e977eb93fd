"""Scripts that run in Flink 2.2 and here, over topics with the same messages: types and final rows are equal, which for
inserts are all rows.

`make test-flink` runs both. Flink is installed when it is first needed, as for the benchmarks (about 800 MB). Its
answers are kept in answers/, with which `make test-long` compares without Flink; `HEADWATER_FLINK_RECORD=1` has them
written instead of compared.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from answers import difference, record, recorded
from flink_process import start_flink
from flink_scripts import Script, read_scripts
from laboratory import HeadwaterSide, Laboratory

from headwater.testing import CaseRunner

pytestmark = pytest.mark.timeout(600)

FILES = {file.area: file for file in read_scripts()}
SCRIPTS = [
    pytest.param(script, id=f"{script.area}: {script.name}") for file in FILES.values() for script in file.scripts
]
RECORDING = bool(os.environ.get("HEADWATER_FLINK_RECORD"))


@pytest.fixture(scope="module")
def headwater_side(case_runner: CaseRunner) -> Iterator[HeadwaterSide]:
    with closing(HeadwaterSide(case_runner)) as side:
        yield side


@pytest.fixture(scope="module")
def headwater_alone(case_runner: CaseRunner, headwater_side: HeadwaterSide) -> Laboratory:
    return Laboratory(case_runner.kafka(), headwater_side)


@pytest.fixture(scope="module")
def flink_alone(case_runner: CaseRunner, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Laboratory]:
    directory: Path = tmp_path_factory.mktemp("flink")
    with start_flink(directory) as flink:
        yield Laboratory(case_runner.kafka(), flink)


@pytest.mark.flink
@pytest.mark.parametrize("script", SCRIPTS)
def test_flink_answers_as_recorded(script: Script, flink_alone: Laboratory) -> None:
    answer = flink_alone.answer(script, FILES[script.area])
    assert script.differs or not answer.failed, answer.failed
    assert script.differs or answer.rows, "a script without rows shows nothing"
    known = recorded(script.area)
    if RECORDING:
        names = [other.name for other in FILES[script.area].scripts]
        record(script.area, {name: a for name, a in {**known, script.name: answer}.items() if name in names})
    else:
        assert known.get(script.name) == answer, "what Flink answers is not what is recorded"


@pytest.mark.long
@pytest.mark.flink
@pytest.mark.parametrize("script", SCRIPTS)
def test_headwater_answers_the_same(script: Script, headwater_alone: Laboratory) -> None:
    answer = headwater_alone.answer(script, FILES[script.area])
    found = difference(recorded(script.area)[script.name], answer)
    if script.differs:
        assert found, f"there is no difference any more: {script.differs}"
    else:
        assert not found, f"\n{found}"
