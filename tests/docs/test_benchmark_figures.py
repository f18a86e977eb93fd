"""Figures in the README and the documentation are those of the last benchmark."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks" / "RESULTS.md"
PART = re.compile(r"<!-- benchmarks: start.*?-->(.*?)<!-- benchmarks: end -->", re.DOTALL)


def figures(text: str) -> set[tuple[str, ...]]:
    """Of each row of a table, its times and ratio."""
    cells = [[cell.strip(" *") for cell in line.strip("|").split("|")] for line in text.splitlines() if line[:1] == "|"]
    found = (tuple(cell for cell in row if re.fullmatch(r"[\d.]+( s)?", cell)) for row in cells)
    return {row for row in found if row}


@pytest.mark.parametrize("page", ["README.md", "docs/benchmarks.md"])
def test_they_are_those_of_the_benchmark(page: str) -> None:
    part = PART.search((ROOT / page).read_text(encoding="utf-8"))
    assert part is not None
    shown = figures(part[1])
    assert shown
    assert sorted(shown - figures(RESULTS.read_text(encoding="utf-8"))) == []
