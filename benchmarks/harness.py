"""What every benchmark beside Flink does around its measurements: a broker, both engines, warm-up, runs in turn."""

from __future__ import annotations

import shutil
import signal
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from engines import EngineProcess, start_flink, start_headwater
from report import Measured

from headwater.broker import Broker
from headwater.errors import HeadwaterError

__all__ = ["WARM_UPS", "Engines", "in_turn", "with_engines"]

WARM_UPS = 2  # both engines are JVMs, which go on compiling in a second run

Engines = tuple[EngineProcess, EngineProcess]
"""Both engines, ours first."""


def with_engines(measure: Callable[[str, Engines], None]) -> int:
    """Start a broker and both engines, and call `measure` with the broker's address and them; the exit code. Nothing is
    left behind, but logs where it failed."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that everything started here is stopped then, too
    directory = Path(tempfile.mkdtemp(prefix="headwater-bench-"))
    try:
        with (
            Broker.start(directory / "broker", port=0, die_with_parent=True) as broker,
            start_headwater(directory) as ours,
            start_flink(directory) as theirs,
        ):
            measure(broker.bootstrap_servers, (ours, theirs))
    except (HeadwaterError, RuntimeError) as error:
        shutil.rmtree(directory / "broker" / "data", ignore_errors=True)
        print(f"{error}\nLogs: {directory}", file=sys.stderr)
        return 1
    except (KeyboardInterrupt, SystemExit):
        shutil.rmtree(directory)
        raise
    shutil.rmtree(directory)
    return 0


def in_turn(engines: Engines, runs: int, timed: Callable[[EngineProcess], float], warm_ups: int = WARM_UPS) -> Measured:
    """Warm both engines up, and time them in turn: ours first in one run, Flink first in the next."""
    measured = Measured()
    for number in range(warm_ups + runs):
        warm = number >= warm_ups
        for engine in engines if number % 2 else engines[::-1]:
            seconds = timed(engine)
            print(f"  {engine.name:<10} {seconds:6.2f} s{'' if warm else '  (warm-up)'}", flush=True)
            if warm:
                getattr(measured, engine.name).append(seconds)
    return measured
