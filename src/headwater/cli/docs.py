"""`headwater docs`: the documentation of the installed version, which comes along with the package."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Annotated

import typer

__all__ = ["docs", "pages"]

_INSTALLED = "share/doc/headwater"
_LEFT_OUT = ("decisions", "images")


def docs(
    page: Annotated[str, typer.Argument(metavar="[PAGE]", help="Its name: joins, connectors/kafka, …")] = "",
) -> None:
    """Read a page of the documentation.

    Without a page: a list of all.

    \b
    Examples:
      headwater docs
      headwater docs limits
    """
    from headwater.errors import ValidationError
    from headwater.options.closest import did_you_mean

    found = pages()
    if not page:
        width = max(map(len, found), default=0)
        for name, file in found.items():
            typer.echo(f"{name:<{width}}  {_title(file)}")
        return
    name = page.removeprefix("docs/").removesuffix(".md")
    if name not in found:
        hint = did_you_mean(name, found) or "'headwater docs' lists all pages."
        raise ValidationError(f"There is no page '{page}'.", hint=hint)
    _show(found[name].read_text(encoding="utf-8"))


def pages() -> dict[str, Path]:
    """The files of all pages but those about the making of Headwater, by name."""
    root = _directory()
    if root is None:
        return {}
    named = {file.relative_to(root).with_suffix("").as_posix(): file for file in root.rglob("*.md")}
    return {name: named[name] for name in sorted(named) if not name.startswith(_LEFT_OUT)}


def _directory() -> Path | None:
    """In a clone the files themselves; otherwise those that the package has brought along."""
    from importlib.metadata import PackageNotFoundError, files

    cloned = Path(__file__).parents[3] / "docs"
    if (cloned / "index.md").exists():
        return cloned
    try:
        known = files("headwater") or []
    except PackageNotFoundError:
        return None
    found = [Path(str(file.locate())) for file in known if file.as_posix().endswith(f"{_INSTALLED}/index.md")]
    return found[0].resolve().parent if found else None


def _title(file: Path) -> str:
    with file.open(encoding="utf-8") as lines:
        return next((line.removeprefix("# ").strip() for line in lines if line.startswith("# ")), "")


def _show(text: str) -> None:
    """Laid out on a terminal, through its pager; as it was written elsewhere."""
    plain = re.sub(r"<!--.*?-->\n?", "", text, flags=re.DOTALL)
    if not sys.stdout.isatty():
        typer.echo(plain, nl=False)
        return
    from rich.markdown import Markdown

    from headwater.cli.style import console

    screen = console()
    os.environ.setdefault("LESS", "-FRX")  # colours are colours, and a short page needs no key
    with screen.pager(styles=True):
        screen.print(Markdown(plain, hyperlinks=False))
