"""What holds rows is for its owner alone, whatever the umask."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from headwater.broker.files import BrokerFiles
from headwater.session import Session
from headwater.session.definitions import Definitions
from headwater.sql.parser import parse_script


@pytest.fixture(autouse=True)
def generous_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


def test_the_checkpoints_of_a_session_that_keeps_none() -> None:
    definitions = Definitions()
    script = "CREATE TABLE t (a INT) WITH ('connector' = 'print'); INSERT INTO t VALUES (1);"
    [job] = [job for statement in parse_script(script) for job in definitions.apply(statement)]
    with Session() as session:
        place = Path(session._location(job)).parent
        assert place.stat().st_mode & 0o777 == 0o700
    assert not place.exists()


def test_the_directory_of_a_broker(tmp_path: Path) -> None:
    assert BrokerFiles.created(tmp_path / "broker").directory.stat().st_mode & 0o777 == 0o700
