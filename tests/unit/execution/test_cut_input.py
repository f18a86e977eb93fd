"""A task whose input breaks off must not take it for whole: a sink would commit a part of a batch as the batch."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PythonException

from headwater.connectors.workers import map_in_arrow
from headwater.testing.spark import spark_of_tests

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("fails", [True, False])
def test_a_task_learns_that_its_input_was_cut_off(tmp_path: Path, fails: bool) -> None:
    """Two steps in one stage, with a projection between them, as reading and writing are."""
    seen = tmp_path / "seen"

    def read(batches: Any) -> Any:
        import numpy as np
        import pyarrow as pa

        for _ in batches:
            pass
        for _ in range(50):
            yield pa.record_batch([pa.array(np.arange(10_000))], names=["id"])
        if fails:
            raise RuntimeError("simulated")

    def write(batches: Any) -> Any:
        rows = 0
        try:
            for batch in batches:
                rows += batch.num_rows
        except BaseException as error:
            seen.write_text(f"{type(error).__name__} after some: {rows > 0}")
            raise
        seen.write_text(f"all {rows}")
        yield from ()

    rows = map_in_arrow(spark_of_tests().range(0, 1, 1, 1), read, "id BIGINT").selectExpr("id + 1 AS id")
    written = map_in_arrow(rows, write, "id BIGINT")
    if fails:
        with pytest.raises(PythonException, match="simulated"):
            written.count()
    else:
        written.count()
    # The task has failed, and its worker learns of it a moment later.
    deadline = time.monotonic() + 30
    while not seen.exists() or not seen.read_text():
        assert time.monotonic() < deadline, "the second step has not ended"
        time.sleep(0.02)
    assert seen.read_text() == ("InputCutError after some: True" if fails else "all 500000")
