"""`headwater run` and `headwater demo` on a real broker: results, exit codes, clean stops and what is said."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
from run_lab import Clicks, Start, until

pytestmark = pytest.mark.timeout(600)


def test_bounded_input_ends_by_itself(clicks: Clicks, started: Start, tmp_path: Path) -> None:
    with (tmp_path / "totals.sql").open("a", encoding="utf-8") as script:
        script.write("CREATE TABLE screen (who STRING) WITH ('connector' = 'print');\n")
        script.write("INSERT INTO screen SELECT UPPER(who) FROM clicks WHERE who <> 'bob';\nSHOW TABLES;\n")
    clicks.click("ann", "bob", "ann")
    process = started(*clicks.arguments("latest-offset"))
    out, err = process.communicate(timeout=400)
    assert process.returncode == 0, err
    assert clicks.totals() == {"ann": 2, "bob": 1}
    assert sorted(line for line in out.splitlines() if line.startswith("+I")) == ["+I[ANN]", "+I[ANN]"]
    assert "totals" in out
    assert "State ends with this run" in err
    assert "totals  finished  3 rows in, 2 out" in err
    assert " WARN " not in err  # of the JVM


def test_ctrl_c_stops_cleanly_and_the_next_run_continues(clicks: Clicks, started: Start) -> None:
    arguments = [*clicks.arguments("unbounded"), "--checkpoint", "state"]
    clicks.click("ann", "bob", "ann")
    first = started(*arguments)
    until(lambda: clicks.totals() == {"ann": 2, "bob": 1}, first)
    os.killpg(first.pid, signal.SIGINT)  # as a terminal does: to every process of the group
    _, err = first.communicate(timeout=200)
    assert first.returncode == 0, err
    assert "Stopped. State is kept in 'state': run the same command again to continue." in err
    assert "totals  stopped  3 rows in" in err

    clicks.click("ann", "cid")
    second = started(*arguments)
    until(lambda: clicks.totals() == {"ann": 3, "bob": 1, "cid": 1}, second)
    second.terminate()
    _, err = second.communicate(timeout=200)
    assert second.returncode == 0, err
    assert "totals: Continues after batch" in err
    assert "totals  stopped  2 rows in" in err


def test_a_failing_job_says_which_and_why(clicks: Clicks, started: Start) -> None:
    clicks.click("ann")
    clicks.send('{"who": ')
    process = started(*clicks.arguments("latest-offset"))
    out, err = process.communicate(timeout=400)
    assert process.returncode == 1
    assert "Error: INSERT INTO totals failed (totals.sql:9)." in err
    assert f"topic '{clicks.input}', partition" in err
    assert "Hint: " in err
    assert "Traceback" not in out + err
    assert "at org.apache" not in err


def test_a_second_ctrl_c_ends_at_once() -> None:
    up = "print('up', flush=True); time.sleep(30)"
    waiting = f"import time; from headwater.cli.signals import Stop\nwith Stop():\n  {up}"
    process = subprocess.Popen([sys.executable, "-c", waiting], stdout=subprocess.PIPE, text=True)
    with process:
        assert process.stdout is not None
        process.stdout.readline()
        began = time.monotonic()
        while process.poll() is None:
            with suppress(ProcessLookupError):
                process.send_signal(signal.SIGINT)
            time.sleep(0.2)
        assert process.returncode == 130
        assert time.monotonic() - began < 10


def test_the_demo_proves_itself(started: Start) -> None:
    process = started("demo", "--seconds", "5", "--rate", "500")
    out, err = process.communicate(timeout=500)
    assert process.returncode == 0, out + err
    assert out.startswith("Headwater demo")
    for table in ("pageviews_per_region", "pageviews_per_region_db"):
        assert f"✓ {table}: 9 regions, " in out
    assert "equal to a recount of the input" in out
    assert err == ""
