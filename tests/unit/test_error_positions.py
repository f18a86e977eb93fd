"""A place in a script, as it is shown on a terminal."""

from __future__ import annotations

import pytest

from headwater.errors import Position, ValidationError
from headwater.options.problems import OptionContext, Problem, problems_error


@pytest.mark.parametrize("before", [0, 10, 60, 500])
@pytest.mark.parametrize("behind", [0, 10, 60, 500])
@pytest.mark.parametrize("length", [1, 20])
def test_the_caret_stays_below_its_place_when_a_line_is_cut(before: int, behind: int, length: int) -> None:
    place = "x" * length
    line = "a" * before + place + "b" * behind
    _, above, below = Position(7, before + 1, line, length).render("s.sql").splitlines()
    assert above[below.index("^") : below.rindex("^") + 1] == place
    assert len(above) <= 80
    assert ("…" in above) == (len(line) > 68)


def test_a_place_that_is_longer_than_the_terminal_is_marked_at_its_beginning() -> None:
    _, above, below = Position(7, 101, "a" * 100 + "x" * 300, 300).render().splitlines()
    assert above[below.index("^")] == "x"
    assert above[below.index("^") - 1] == "a"
    assert len(below) <= 80


def test_a_secret_is_masked_before_a_line_is_cut() -> None:
    secret = "s3cr3t" * 20
    line = f"'properties.sasl.password' = '{secret}', 'topik' = 'x', 'properties.ssl.key.password' = '{secret}'"
    given = {"properties.sasl.password": secret, "topik": "x"}
    place = Position(1, line.index("'topik'") + 1, line, len("'topik' = 'x'"))
    error = problems_error(
        "It", [Problem("", "unsupported", "topik")], OptionContext("kafka", (), given, {"topik": place})
    )
    assert isinstance(error, ValidationError)
    assert "s3cr" not in str(error)
    lines = str(error).splitlines()
    below = next(line for line in lines if "^" in line)
    above = lines[lines.index(below) - 1]
    assert above[below.index("^") : below.rindex("^") + 1] == "'topik' = 'x'"
