"""The walls between the rooms: which part of Headwater may import what. Read from the source; nothing is executed."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import headwater
from headwater.options.legacy import OLD_KEYS

SOURCE = Path(headwater.__file__).parent


@dataclass(frozen=True)
class Wall:
    """Modules that `applies_to` selects import nothing that `forbids` selects; both are given dotted names."""

    sentence: str
    applies_to: Callable[[str], bool]
    forbids: Callable[[str], bool]


def within(*packages: str) -> Callable[[str], bool]:
    return lambda name: any(name == package or name.startswith(f"{package}.") for package in packages)


def outside(*packages: str) -> Callable[[str], bool]:
    inside = within(*packages)
    return lambda name: not inside(name)


def all_but_base(package: str) -> Callable[[str], bool]:
    """The package itself and its modules, except `base`."""
    inside, base = within(package), within(f"{package}.base")
    return lambda name: inside(name) and not base(name)


WALLS = (
    Wall("operators know nothing of Spark", within("headwater.changelog"), within("pyspark")),
    Wall("plans know nothing of Spark", within("headwater.plan"), within("pyspark")),
    Wall("what runs parses no SQL", within("headwater.runtime"), within("sqlglot")),
    Wall("connectors meet formats at their base", within("headwater.connectors"), all_but_base("headwater.formats")),
    Wall("formats meet connectors at their base", within("headwater.formats"), all_but_base("headwater.connectors")),
    Wall("only the command line knows typer", outside("headwater.cli"), within("typer")),
    Wall("only the command line knows rich", outside("headwater.cli"), within("rich")),
    Wall("nothing depends on the command line", outside("headwater.cli"), within("headwater.cli")),
)


def imported(source: str) -> Iterator[tuple[int, str]]:
    """Line and dotted name of every import, wherever it stands. `from a import b` counts as `a.b`."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)


def breaches(wall: Wall, module: str, source: str) -> list[str]:
    if not wall.applies_to(module):
        return []
    return [f"{module}:{line} imports {name}" for line, name in imported(source) if wall.forbids(name)]


def modules() -> dict[str, str]:
    """Every module of Headwater with its source text."""
    found = {}
    for path in SOURCE.rglob("*.py"):
        name = ".".join(("headwater", *path.relative_to(SOURCE).with_suffix("").parts))
        found[name.removesuffix(".__init__")] = path.read_text(encoding="utf-8")
    return found


@pytest.mark.parametrize("wall", WALLS, ids=lambda wall: wall.sentence)
def test_wall_stands(wall: Wall) -> None:
    assert [breach for module, source in modules().items() for breach in breaches(wall, module, source)] == []


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("headwater.changelog.join", "import pyspark.sql"),
        ("headwater.plan", "def f():\n    from pyspark import sql"),
        ("headwater.runtime.job", "from sqlglot import exp"),
        ("headwater.connectors.kafka.source", "from headwater.formats import json"),
        ("headwater.connectors.kafka.source", "from headwater.formats.json import decode"),
        ("headwater.formats.json", "import headwater.connectors.kafka"),
        ("headwater.testing.runner", "from rich.console import Console"),
        ("headwater.session", "import typer"),
        ("headwater.session", "from headwater.cli import app"),
    ],
)
def test_a_breach_is_seen(module: str, source: str) -> None:
    assert any(breaches(wall, module, source) for wall in WALLS)


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("headwater.connectors.kafka.source", "from headwater.formats.base import Format"),
        ("headwater.connectors.kafka.source", "from headwater.formats import base"),
        ("headwater.formats.json", "from headwater.formats.raw import encode"),
        ("headwater.planner", "import pyspark"),
        ("headwater.cli.run", "import typer"),
    ],
)
def test_a_door_is_open(module: str, source: str) -> None:
    assert not any(breaches(wall, module, source) for wall in WALLS)


def test_every_module_is_looked_at() -> None:
    assert {"headwater", "headwater.errors", "headwater.runtime.jars"} <= modules().keys()


def test_old_keys_are_in_one_table() -> None:
    """What users wrote years ago is known to `options.legacy` alone; docstrings may mention it."""
    keys = {old.key.removesuffix("*") for old in OLD_KEYS} | {"update-mode"}
    found = {
        f"{module}: {text}"
        for module, source in modules().items()
        if module != "headwater.options.legacy"
        for text in literals(source)
        if any(key in text for key in keys)
    }
    assert found == set()


def literals(source: str) -> list[str]:
    """All strings of a module but its docstrings."""
    tree = ast.parse(source)
    documented = [n for n in ast.walk(tree) if isinstance(n, ast.Module | ast.ClassDef | ast.FunctionDef)]
    docstrings = {id(n.body[0].value) for n in documented if n.body and isinstance(n.body[0], ast.Expr)}
    strings = [n for n in ast.walk(tree) if isinstance(n, ast.Constant) and isinstance(n.value, str)]
    return [str(n.value) for n in strings if id(n) not in docstrings]
