"""datagen's options per column."""

from __future__ import annotations

import pytest
from catalog_scripts import create

from headwater.errors import ValidationError

DATAGEN = {"connector": "datagen", "number-of-rows": "10"}


def test_columns_have_options_of_their_own() -> None:
    table = create(
        "id INT, name STRING", {**DATAGEN, "fields.id.kind": "sequence", "fields.id.start": "1", "fields.id.end": "9"}
    )
    assert table.options["fields.id.kind"] == "sequence"
    assert table.options["number-of-rows"] == 10


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"fields.idd.kind": "random"}, "is for a column 'idd', which the table does not have. Did you mean 'id'?"),
        ({"fields.id.mni": "1"}, "ends in 'mni'; it can be one of kind, min, max"),
        ({"fields.id.kind": "radnom"}, "Did you mean 'random'?"),
        ({"fields.id.kind": "sequence"}, "Could not find required property 'fields.id.start' for sequence generator."),
        ({"fields.id.length": "x"}, "'x' is not an integer."),
        ({"rows-per-sec": "1"}, "Did you mean 'rows-per-second'?"),
    ],
)
def test_problems(change: dict[str, str], problem: str) -> None:
    with pytest.raises(ValidationError) as raised:
        create("id INT, name STRING", {**DATAGEN, **change})
    assert problem in str(raised.value)
