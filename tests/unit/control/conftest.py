"""Jobs that do not run: what they report is said by the test."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

from headwater.execution.job import Job, JobSettings
from headwater.session.definitions import Definitions
from headwater.sql.parser import parse_script

SCRIPT = """
CREATE TABLE orders (who STRING, price INT) WITH (
  'connector' = 'kafka', 'topic' = 'orders', 'properties.bootstrap.servers' = '127.0.0.1:9', 'format' = 'json');
CREATE TABLE totals (who STRING, n BIGINT, PRIMARY KEY (who) NOT ENFORCED) WITH (
  'connector' = 'upsert-kafka', 'topic' = 'totals', 'properties.bootstrap.servers' = '127.0.0.1:9',
  'key.format' = 'raw', 'value.format' = 'json');
SET 'pipeline.name' = '{name}';
INSERT INTO totals SELECT who, COUNT(*) FROM orders GROUP BY who;
"""

MakeJob = Callable[..., Job]


@pytest.fixture
def make_job(tmp_path: Path) -> MakeJob:
    def make(name: str = "totals") -> Job:
        definitions = Definitions()
        statements = parse_script(SCRIPT.format(name=name), "totals.sql")
        (planned,) = [job for statement in statements for job in definitions.apply(statement)]
        return Job(name, planned.plan, cast(Any, None), str(tmp_path / "state" / name), JobSettings())

    return make


@pytest.fixture(autouse=True)
def runtime_directory(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Of this test alone."""
    directory = tmp_path_factory.mktemp("run")
    monkeypatch.setenv("HEADWATER_RUNTIME_DIR", str(directory))
    return directory
