"""The one direction of imports: which room of Headwater may import which. Read from the source; nothing is executed."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

import headwater
from headwater.options.legacy import LEGACY_OPTIONS

SOURCE = Path(headwater.__file__).parent

# Each room with the rooms it may import, from the bottom up: a room never names one that comes after it, so there can
# be no cycle. Modules beside the packages are rooms of their own; what a session is made of shares one.
_BASE = ("errors", "error_markers", "spark_internals", "dates")
_SESSION = ("session", "results")
DIRECTION: Mapping[str, tuple[str, ...]] = {
    "errors": (),
    "error_markers": (),
    "spark_internals": (),
    "dates": (),
    "key_stores": _BASE,
    "plugins": _BASE,  # names connectors and formats as text
    "install": _BASE,
    "broker": (*_BASE, "install"),
    "sql": (*_BASE, "plugins"),
    "python_functions": (*_BASE, "sql"),
    "options": (*_BASE, "plugins", "sql"),
    "state": _BASE,
    "catalog": (*_BASE, "plugins", "sql", "python_functions", "options"),
    "changelog": (*_BASE, "state"),
    "protocol": (*_BASE, "options", "state"),
    "plan": (*_BASE, "sql", "options", "catalog"),
    "formats": (*_BASE, "key_stores", "plugins", "sql", "options", "changelog"),
    "reference": (*_BASE, "plugins", "sql", "options", "formats"),
    "connectors": (*_BASE, "key_stores", "sql", "options", "state", "catalog", "changelog", "protocol", "formats"),
    "execution": (
        *_BASE, "install", "sql", "python_functions", "options", "state", "catalog", "changelog", "protocol", "plan",
        "connectors",
    ),
    "control": (*_BASE, "install", "options", "protocol", "plan", "execution"),
    "session": (
        *_BASE, "sql", "python_functions", "options", "catalog", "changelog", "protocol", "plan", "connectors",
        "execution", "control",
    ),
    "ui": (*_BASE, "plan", "control"),
    "testing": (
        *_BASE, "install", "broker", "sql", "options", "catalog", "protocol", "plan", "formats", "connectors",
        "execution", "session",
    ),
    "demo": (*_BASE, "broker", "execution", "session"),
    "cli": (
        *_BASE, "install", "plugins", "broker", "sql", "options", "catalog", "protocol", "plan", "formats",
        "connectors", "reference", "execution", "control", "session", "ui", "testing", "demo",
    ),
    "__main__": ("cli",),
}  # fmt: skip

# Where types alone are named: the registry knows what it holds by text.
_TYPES_ONLY = {("plugins", "catalog"), ("plugins", "formats")}


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


PURE = ("headwater.changelog", "headwater.state", "headwater.protocol", "headwater.plan", "headwater.catalog")
WALLS = (
    Wall("operators, state, protocol and plans know nothing of Spark", within(*PURE), within("pyspark")),
    Wall("the protocol knows nothing of Arrow", within("headwater.protocol"), within("pyarrow")),
    Wall("what runs parses no SQL", within("headwater.execution"), within("sqlglot")),
    Wall("connectors meet formats at their base", within("headwater.connectors"), all_but_base("headwater.formats")),
    Wall("only the command line knows typer", outside("headwater.cli"), within("typer")),
    Wall("only the command line knows rich", outside("headwater.cli"), within("rich")),
)


@cache
def imported(source: str) -> list[tuple[int, str]]:
    """Line and dotted name of every import, wherever it stands. `from a import b` counts as `a.b`."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found += [(node.lineno, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            found += [(node.lineno, f"{node.module}.{alias.name}") for alias in node.names]
    return found


def room_of(module: str) -> str:
    """'headwater.sql.types' → 'sql'."""
    room = module.split(".")[1] if "." in module else ""
    return "session" if room in _SESSION else room


def wrong_directions(module: str, source: str) -> list[str]:
    room = room_of(module)
    if not room:  # the package itself hands on its public names
        return []
    found = []
    for line, name in imported(source):
        other = room_of(name) if within("headwater")(name) else room
        if room == "cli" and not other:  # the command line is a user of the package like any other
            continue
        allowed = other in (room, *DIRECTION[room]) or (room, other) in _TYPES_ONLY
        if not allowed:
            found.append(f"{module}:{line} imports {name}")
    return found


def breaches(wall: Wall, module: str, source: str) -> list[str]:
    if not wall.applies_to(module):
        return []
    return [f"{module}:{line} imports {name}" for line, name in imported(source) if wall.forbids(name)]


@cache
def modules() -> dict[str, str]:
    """Every module of Headwater with its source text."""
    found = {}
    for path in SOURCE.rglob("*.py"):
        name = ".".join(("headwater", *path.relative_to(SOURCE).with_suffix("").parts))
        found[name.removesuffix(".__init__")] = path.read_text(encoding="utf-8")
    return found


def test_every_module_is_looked_at() -> None:
    assert {"headwater", "headwater.errors", "headwater.install.jars"} <= modules().keys()


def test_every_room_has_a_place_and_the_direction_has_no_cycle() -> None:
    assert {room_of(module) for module in modules()} - {""} == set(DIRECTION)
    below: set[str] = set()
    for room, allowed in DIRECTION.items():
        assert set(allowed) <= below, f"'{room}' names a room that comes after it"
        below.add(room)


def test_imports_go_one_way() -> None:
    assert [wrong for module, source in modules().items() for wrong in wrong_directions(module, source)] == []


@pytest.mark.parametrize("wall", WALLS, ids=lambda wall: wall.sentence)
def test_wall_stands(wall: Wall) -> None:
    assert [breach for module, source in modules().items() for breach in breaches(wall, module, source)] == []


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("headwater.options.parsing", "from headwater.connectors.kafka import table"),
        ("headwater.catalog.catalog", "def f():\n    import headwater.formats.json"),
        ("headwater.connectors.kafka.read.source", "from headwater.execution.worker import TaskBatch"),
        ("headwater.connectors.runtime", "from headwater.plan.nodes import Scan"),
        ("headwater.sql.parser.parser", "from headwater.plan import nodes"),
        ("headwater.session", "from headwater.cli import app"),
        ("headwater.formats.json", "import headwater.connectors.kafka"),
    ],
)
def test_a_wrong_direction_is_seen(module: str, source: str) -> None:
    assert wrong_directions(module, source)


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("headwater.changelog.join", "import pyspark.sql"),
        ("headwater.plan", "def f():\n    from pyspark import sql"),
        ("headwater.execution.job", "from sqlglot import exp"),
        ("headwater.connectors.kafka.read.source", "from headwater.formats import json"),
        ("headwater.connectors.kafka.read.source", "from headwater.formats.json import decode"),
        ("headwater.testing.runner", "from rich.console import Console"),
        ("headwater.session", "import typer"),
    ],
)
def test_a_breach_is_seen(module: str, source: str) -> None:
    assert any(breaches(wall, module, source) for wall in WALLS)


def test_old_keys_are_in_one_table() -> None:
    """What users wrote years ago is known to `options.legacy` alone; docstrings may mention it."""
    keys = {old.key.removesuffix("*") for old in LEGACY_OPTIONS} | {"update-mode"}
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
