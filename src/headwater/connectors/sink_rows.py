"""What holds for the rows of every sink."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from headwater.catalog.tables import Table
from headwater.changelog.kinds import KIND, RETRACTED, UPDATE_AFTER, UPDATE_BEFORE
from headwater.error_markers import RAISED
from headwater.sql.spark_text import quote_name, string_literal

__all__ = ["OLD", "checked_not_null", "with_old_rows"]

OLD = "__hw_old"


def checked_not_null(rows: DataFrame, table: Table) -> DataFrame:
    """The same rows; a NULL in a NOT NULL column stops the job. A delete needs nothing but its key."""
    strict = {c.name for c in table.written_columns if not c.type.nullable}
    if not strict:
        return rows
    # A tombstone has a key and no value: what else was in the row may be NULL.
    deletes = KIND in rows.columns
    return rows.selectExpr(
        *(
            _checked(name, table, unless=RETRACTED if deletes and name not in table.primary_key else "")
            if name in strict
            else quote_name(name)
            for name in rows.columns
        )
    )


def _checked(name: str, table: Table, unless: str) -> str:
    quoted = quote_name(name)
    text = f"Column '{name}' of table '{table.name}' is NOT NULL, however, a null value is being written into it."
    valid = f"{unless} OR {quoted} IS NOT NULL" if unless else f"{quoted} IS NOT NULL"
    return f"IF({valid}, {quoted}, raise_error({string_literal(RAISED + text)})) AS {quoted}"


def with_old_rows(rows: DataFrame, key: Sequence[str]) -> DataFrame:
    """Changes without -U: the row that a +U replaces is beside it as `OLD`. The changes of a key stay in order."""
    names = [quote_name(name) for name in rows.columns]
    # Grows in the order of rows within a task, which is all that is needed: the changes of a key are in one.
    placed = rows.withColumn("__hw_place", F.monotonically_increasing_id())
    of_key = Window.partitionBy(*map(quote_name, key)).orderBy("__hw_place")
    whole = F.struct(*names)
    paired = placed.select(
        *names, F.lag(whole).over(of_key).alias("__hw_previous"), F.lead(KIND).over(of_key).alias("__hw_next")
    )
    kept = paired.where(f"NOT ({KIND} = {UPDATE_BEFORE} AND coalesce(__hw_next = {UPDATE_AFTER}, false))")
    replaces = f"{KIND} = {UPDATE_AFTER} AND __hw_previous.{KIND} = {UPDATE_BEFORE}"
    return kept.selectExpr(*names, f"IF({replaces}, __hw_previous, NULL) AS {OLD}")
