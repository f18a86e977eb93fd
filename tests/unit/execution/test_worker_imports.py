"""What a worker loads before its first row: not the SQL side of the house, which takes half a second."""

from __future__ import annotations

import subprocess
import sys

import pytest

MODULES = (
    "headwater.execution.worker",
    "headwater.connectors.arrow_chunks",
    "headwater.connectors.kafka.read.reader",
    "headwater.connectors.kafka.write.writer",
)
LOADED = "import sys; import {module}; print(*sys.modules)"


@pytest.mark.parametrize("module", MODULES)
def test_workers_load_no_parser_and_no_catalog(module: str) -> None:
    said = subprocess.run(
        [sys.executable, "-c", LOADED.format(module=module)], capture_output=True, text=True, check=True
    )
    assert not {"sqlglot", "headwater.catalog", "headwater.sql.parser", "pandas"} & set(said.stdout.split())
