"""The recipes of Flink's SQL cookbook, written out from their descriptions over Kafka: which of them `check` takes."""

from __future__ import annotations

from pathlib import Path

import pytest

from headwater.session import Session

HERE = Path(__file__).parent
RECIPES = sorted(HERE.glob("*.sql"))

NOT_YET = {
    "match_recognize": "patterns of rows",
    "sorting": "ORDER BY",
}
"""What `check` refuses. The table is strict: who makes a recipe pass takes it out of here."""


def _marked(path: Path) -> object:
    reason = NOT_YET.get(path.stem)
    marks = [pytest.mark.xfail(reason=reason, strict=True)] if reason is not None else []
    return pytest.param(path, id=path.stem, marks=marks)


@pytest.mark.parametrize("path", [_marked(path) for path in RECIPES])
def test_recipe(path: Path) -> None:
    assert Session(variables={"kafka": "k:9092"}).check(path.read_text(encoding="utf-8"), str(path))


def test_the_table_names_recipes() -> None:
    assert set(NOT_YET) <= {path.stem for path in RECIPES}
