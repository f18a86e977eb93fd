"""The protocol under thousands of schedules, and the proof that with any of its fixes taken out it would fail."""

from __future__ import annotations

import os

import pytest
from mutations import MUTATIONS
from simulation import Schedule, run_seeds

SEEDS = int(os.environ.get("HEADWATER_SIMULATION_SEEDS", "10000"))
FOUND_WITHIN = 3000
PARTS = 8


@pytest.mark.parametrize("part", range(PARTS))
def test_nothing_is_lost_or_doubled(part: int) -> None:
    """A failing seed tells its story with `python tests/unit/protocol/simulation.py SEED`."""
    failed = run_seeds(range(part, SEEDS, PARTS))
    assert failed == []


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_fix_that_is_taken_out_is_missed(name: str) -> None:
    with MUTATIONS[name]() as wrong:
        assert first_failure(wrong) is not None


def first_failure(wrong: object) -> int | None:
    for seed in range(FOUND_WITHIN):
        try:
            Schedule(seed, wrong).run()  # type: ignore[arg-type]
        except AssertionError:  # found by a check, not by chance
            return seed
        except Exception:  # noqa: BLE001 - what else a broken log leads to
            continue
    return None


def test_a_seed_replays_exactly() -> None:
    def trace(seed: int) -> list[str]:
        schedule = Schedule(seed, traced=True)
        schedule.run()
        return schedule.world.trace or []

    assert all(trace(seed) == trace(seed) for seed in range(50))
    assert len({tuple(trace(seed)) for seed in range(50)}) == 50
