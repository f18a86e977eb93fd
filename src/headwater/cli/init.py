"""`headwater init`: the folder of a new project."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from headwater.errors import HeadwaterError

__all__ = ["init"]

_TEMPLATES = Path(__file__).parent / "project"
_FILES = {
    "headwater.toml": "headwater.toml",
    "tables.sql": "tables.sql",
    "totals.sql": "totals.sql",
    "tests/totals.case": "totals.case",
    ".gitignore": "gitignore",
}
_NEXT = """
  cd {name}
  headwater broker start                      # a Kafka broker on this machine
  headwater topic create orders
  headwater topic create totals --compacted
  headwater topic write orders '{{"order_id":"o1","customer":"ann","amount":9}}'
  headwater run tables.sql totals.sql         # runs until Ctrl-C
  headwater sql tables.sql                    # a shell: SELECT * FROM totals;
  headwater test tests                        # tests it, also with crashes
"""


def init(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The directory; none of the files may exist in it.")],
) -> None:
    """Make a project folder: tables, a script and a test of it.

    With headwater.toml and .gitignore.

    \b
    Example:
      headwater init shop
    """
    folder = Path(name)
    there = [file for file in _FILES if (folder / file).exists()]
    if there:
        raise HeadwaterError(f"'{folder / there[0]}' already exists.", hint="Give another name.")
    try:
        for file, template in _FILES.items():
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            (folder / file).write_text((_TEMPLATES / template).read_text(encoding="utf-8"), encoding="utf-8")
            typer.echo(f"Created {folder / file}")
    except OSError as error:
        raise HeadwaterError(f"'{folder}' cannot be written.", detail=str(error.strerror)) from None
    typer.echo(_NEXT.format(name=name))
