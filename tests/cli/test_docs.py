"""`headwater docs`: the pages are there, and those that errors point to are among them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from headwater.cli import app
from headwater.cli.docs import pages
from headwater.errors import ValidationError

SOURCES = Path(__file__).parents[2] / "src" / "headwater"


def test_all_pages_are_listed_with_their_titles() -> None:
    listed = CliRunner().invoke(app, ["docs"]).stdout.splitlines()
    assert [line.split()[0] for line in listed] == list(pages())
    assert any(re.fullmatch(r"connectors/upsert-kafka +upsert-kafka", line) for line in listed)
    assert not any(line.startswith("decisions") for line in listed)


@pytest.mark.parametrize("name", ["limits", "docs/limits.md"])
def test_a_page_is_shown_as_it_was_written(name: str) -> None:
    assert CliRunner().invoke(app, ["docs", name]).stdout.startswith("# Limits\n")


def test_marks_of_generated_parts_are_not_shown() -> None:
    assert "<!--" not in CliRunner().invoke(app, ["docs", "connectors/kafka"]).stdout


def test_a_page_that_is_not_there() -> None:
    error = CliRunner().invoke(app, ["docs", "limit"]).exception
    assert isinstance(error, ValidationError)
    assert (error.fact, error.hint) == ("There is no page 'limit'.", "Did you mean 'limits'?")


def test_errors_point_to_pages_that_are_there() -> None:
    named = {
        name
        for file in SOURCES.rglob("*.py")
        for name in re.findall(r"'headwater docs ([a-z/-]+)'", file.read_text(encoding="utf-8"))
    }
    assert {"limits", "functions"} <= named <= pages().keys()
