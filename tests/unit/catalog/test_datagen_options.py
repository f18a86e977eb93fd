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
        ({"rows-per-second": "0"}, "'rows-per-second' must be greater than zero."),
        ({"scan.parallelism": "-1"}, "'scan.parallelism' must be greater than zero."),
        ({"number-of-rows": "-1"}, "'number-of-rows' must not be negative."),
        ({"fields.id.min": "a"}, "'fields.id.min' = 'a' is no whole number."),
        ({"fields.id.min": "0.5"}, "'fields.id.min' = '0.5' is no whole number."),
        ({"fields.id.max": "2147483648"}, "'fields.id.max' = '2147483648' is no value of INT."),
        ({"fields.id.min": "5", "fields.id.max": "1"}, "'fields.id.min' must not be greater than 'fields.id.max'."),
        ({"fields.id.kind": "sequence", "fields.id.start": "9", "fields.id.end": "x"}, "'x' is no whole number."),
        (
            {"fields.id.kind": "sequence", "fields.id.start": "9", "fields.id.end": "1"},
            "'fields.id.start' must not be greater than 'fields.id.end'.",
        ),
        ({"fields.name.length": "0"}, "'fields.name.length' must be greater than zero."),
        ({"fields.id.null-rate": "2"}, "'fields.id.null-rate' = '2' is no number between 0 and 1."),
        ({"fields.id.null-rate": "nan"}, "'fields.id.null-rate' = 'nan' is no number between 0 and 1."),
        ({"fields.r.x.min": "1"}, "'fields.r.x.min' is for a field inside of a column; only columns have options."),
        ({"fields.p.max": "1000"}, "'fields.p.max' = '1000' is no value of DECIMAL(4, 1)."),
    ],
)
def test_problems(change: dict[str, str], problem: str) -> None:
    with pytest.raises(ValidationError) as raised:
        create("id INT, name STRING, r ROW<x INT>, p DECIMAL(4, 1)", {**DATAGEN, **change})
    assert problem in str(raised.value)


def test_numbers_at_their_limits() -> None:
    ends = {"fields.id.min": "-2147483648", "fields.id.max": "2147483647", "fields.id.null-rate": "1"}
    create("id INT, p DECIMAL(4, 1)", {**DATAGEN, **ends, "fields.p.min": "-999", "fields.p.max": "99.5"})


def test_print_is_written_by_at_least_one_task() -> None:
    with pytest.raises(ValidationError, match="must be greater than zero"):
        create("id INT", {"connector": "print", "sink.parallelism": "0"})
