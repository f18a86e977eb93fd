"""What holds for the rows of every sink."""

from __future__ import annotations

from pyspark.sql import DataFrame

from headwater.catalog.tables import Table
from headwater.changelog.kinds import KIND

__all__ = ["RAISED", "checked_not_null"]

RAISED = "HEADWATER_RAISED"


def checked_not_null(rows: DataFrame, table: Table) -> DataFrame:
    """The same rows; a NULL in a NOT NULL column stops the job. A delete needs nothing but its key."""
    strict = {c.name for c in table.written_columns if not c.type.nullable}
    if not strict:
        return rows
    items = []
    for name in rows.columns:
        quoted = "`" + name.replace("`", "``") + "`"
        if name not in strict:
            items.append(quoted)
            continue
        text = f"Column '{name}' of table '{table.name}' is NOT NULL, however, a null value is being written into it."
        raised = f'raise_error("{RAISED}{text}")'
        exempt = f"{KIND} IN (1, 3) OR " if KIND in rows.columns and name not in table.primary_key else ""
        items.append(f"IF({exempt}{quoted} IS NOT NULL, {quoted}, {raised}) AS {quoted}")
    return rows.selectExpr(*items)
