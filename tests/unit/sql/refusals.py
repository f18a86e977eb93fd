"""Where a text is refused, and with which fact."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from headwater.errors import SqlError


def refused_at(parse: Callable[[str], object], text: str) -> tuple[int, int, int, str]:
    """Line, column and length of what is wrong, and what is said of it."""
    with pytest.raises(SqlError) as caught:
        parse(text)
    position = caught.value.position
    assert position is not None
    return position.line, position.column, position.length, caught.value.fact
