"""Text for Spark's parser: whatever characters a name or a string has, it stays one name and one string."""

from __future__ import annotations

import pytest

from headwater.sql.spark_text import field_of, quote_name, string_literal


@pytest.mark.parametrize(
    ("name", "quoted"), [("a", "`a`"), ("a`b", "`a``b`"), ("a.b", "`a.b`"), ("'\"\\", "`'\"\\`"), ("", "``")]
)
def test_names(name: str, quoted: str) -> None:
    assert quote_name(name) == quoted
    assert field_of("s", name) == f"s.{quoted}"


@pytest.mark.parametrize(
    ("value", "literal"),
    [("a", "'a'"), ("it's", "'it\\'s'"), ("a\\b", "'a\\\\b'"), ("${x}", "'\\u0024{x}'"), ("\n\t\0", "'\\n\\t\\u0000'")],
)
def test_strings(value: str, literal: str) -> None:
    assert string_literal(value) == literal
