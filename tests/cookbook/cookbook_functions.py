"""Functions of the recipes."""

from __future__ import annotations

from collections.abc import Iterator

import headwater


@headwater.udf(result_type="DOUBLE")
def to_fahr(celsius: float | None) -> float | None:
    return None if celsius is None else celsius * 1.8 + 32


@headwater.udtf(result_type="ROW<word STRING, length INT>")
def words(text: str | None) -> Iterator[tuple[str, int]]:
    for word in (text or "").split():
        yield word, len(word)
