"""Functions that PyFlink's own decorators have made: the tests of the unit tests' directory, run where PyFlink is."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from flink_process import flink_packages

TESTS = Path(__file__).parents[1] / "unit/python_functions/test_pyflink_objects.py"


@pytest.mark.flink
@pytest.mark.timeout(900)
def test_functions_that_pyflink_has_decorated() -> None:
    """In a process of its own, so that no other test finds PyFlink."""
    command = [sys.executable, "-m", "pytest", "--quiet", "-p", "no:cacheprovider", str(TESTS)]
    environment = {**os.environ, "HEADWATER_PYFLINK": flink_packages()}
    done = subprocess.run(command, env=environment, check=False, capture_output=True, text=True)
    # If PyFlink were not found, all of them would be skipped.
    assert done.returncode == 0, done.stdout + done.stderr
    assert int(re.findall(r"(\d+) passed", done.stdout)[-1]) >= 15
