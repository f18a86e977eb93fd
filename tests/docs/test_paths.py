"""Files that the contributors' pages and the source itself name are there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "headwater"
PAGES = [ROOT / "docs" / "architecture.md", ROOT / "CONTRIBUTING.md"]
PATH = re.compile(r"`((?:[\w-]+/)+(?:[\w-]+\.(?:py|md))?)`")
TESTS = re.compile(r"\btests/[\w/]+\.py\b")


def exists(path: str) -> bool:
    return any((start / path).exists() for start in (ROOT, SOURCE))


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_paths_on_a_page(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert [path for path in PATH.findall(text) if not exists(path)] == []


def test_every_package_is_in_the_architecture() -> None:
    text = PAGES[0].read_text(encoding="utf-8")
    packages = sorted(path.parent.name for path in SOURCE.glob("*/__init__.py"))
    assert [name for name in packages if f"`{name}/`" not in text] == []


def test_tests_that_docstrings_name() -> None:
    found = {
        f"{path.relative_to(SOURCE)}: {named}"
        for path in SOURCE.rglob("*.py")
        for named in TESTS.findall(path.read_text(encoding="utf-8"))
        if not exists(named)
    }
    assert found == set()
