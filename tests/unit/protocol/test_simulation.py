"""The protocol under thousands of schedules, and the proof that with any of its fixes taken out it would fail."""

from __future__ import annotations

import os

import pytest
from mutations import MUTATIONS
from simulated_job import Wrong
from simulation import Schedule, run_seeds

FOUND_WITHIN = 3000
"""So many schedules find any fix that is taken out."""
SEEDS = int(os.environ.get("HEADWATER_SIMULATION_SEEDS", "10000"))
PART = 1000
PARTS = [range(start, min(start + PART, SEEDS)) for start in range(0, SEEDS, PART)]
KNOWN = (2574, 1560, 550, 395, 141, 134, 129, 104, 74, 55)
"""Schedules that have found what the first few did not: tried first, or the search takes a minute."""


@pytest.mark.parametrize("seeds", PARTS, ids=lambda seeds: f"{seeds.start}-{seeds.stop}")
def test_nothing_is_lost_or_doubled(seeds: range) -> None:
    """A failing seed tells its story with `python tests/unit/protocol/simulation.py SEED`."""
    failed = run_seeds(seeds)
    assert failed == []


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_fix_that_is_taken_out_is_missed(name: str) -> None:
    with MUTATIONS[name]() as wrong:
        assert any(finds(seed, wrong) for seed in (*KNOWN, *range(FOUND_WITHIN)))


def finds(seed: int, wrong: Wrong) -> bool:
    """Whether a check of this schedule fails. What else a broken log leads to, it finds by chance."""
    try:
        Schedule(seed, wrong).run()
    except AssertionError:
        return True
    except Exception:  # noqa: BLE001 - see above
        return False
    return False


def test_a_seed_replays_exactly() -> None:
    def trace(seed: int) -> list[str]:
        schedule = Schedule(seed, traced=True)
        schedule.run()
        return schedule.world.trace or []

    assert all(trace(seed) == trace(seed) for seed in range(50))
    assert len({tuple(trace(seed)) for seed in range(50)}) == 50
