"""The documentation's tables are what the declarations say, and say it in full."""

from __future__ import annotations

from pathlib import Path

import pytest

from headwater.reference.docs import rewritten
from headwater.reference.options import option_tables

DOCS = Path(__file__).parents[3] / "docs"


@pytest.mark.parametrize("page", sorted(DOCS.rglob("*.md")), ids=lambda path: path.name)
def test_generated_tables_are_current(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert rewritten(text) == text, "run `make docs`"


def test_every_table_is_in_the_documentation() -> None:
    pages = "".join(page.read_text(encoding="utf-8") for page in DOCS.rglob("*.md"))
    missing = [t for t in option_tables() if f"<!-- options: {t.split('.')[0]} -->" not in pages and t != "session"]
    assert missing == []


def test_every_option_says_what_it_means() -> None:
    for table in option_tables().values():
        for row in table.rows:
            assert row.meaning.endswith("."), f"{table.name}: {row.key}"
            assert row.type


def test_tables_have_names() -> None:
    table = option_tables()["upsert-kafka"]
    assert [row.key for row in table.rows if row.required] == [
        "connector",
        "properties.bootstrap.servers",
        "key.format",
        "value.format",
    ]
