"""Of sqlglot only public names are used, so that a new major version with the same trees needs no change here."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import headwater

SQL = Path(headwater.__file__).parent / "sql"
MODULES = {str(path.relative_to(SQL.parent)): path.read_text(encoding="utf-8") for path in SQL.rglob("*.py")}
# Parsing is Headwater's own; quoting and writing are sqlglot's documented extension points.
ALLOWED = {"sqlglot.exp"}
ALLOWED_IN_WRITER = {
    *ALLOWED,
    *("sqlglot.dialects.dialect.Dialect", "sqlglot.dialects.dialect.NormalizationStrategy"),
    *("sqlglot.generator.Generator", "sqlglot.tokens.Tokenizer"),
}


def private_names(source: str) -> list[str]:
    """Private attributes of anything but the module's own objects, and private imports."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute) and re.match(r"_[a-z]", node.attr):
            owner = node.value.id if isinstance(node.value, ast.Name) else ""
            if owner not in ("self", "cls") or not _defines(source, node.attr):
                found.append(f"{node.lineno}: .{node.attr}")
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("sqlglot"):
            found += [f"{node.lineno}: {alias.name}" for alias in node.names if alias.name.startswith("_")]
    return found


def _defines(source: str, name: str) -> bool:
    """Whether the module itself has this method or attribute: it is not inherited from sqlglot then."""
    return re.search(rf"def {name}\(|self\.{name}\b[^=\n]*=[^=]|^    {name}: ", source, re.MULTILINE) is not None


def imports(source: str) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return {name for name in names if name.split(".")[0] == "sqlglot"}


@pytest.mark.parametrize("module", MODULES)
def test_no_private_name_is_used(module: str) -> None:
    assert private_names(MODULES[module]) == []


@pytest.mark.parametrize("module", MODULES)
def test_only_trees_are_imported(module: str) -> None:
    assert imports(MODULES[module]) <= (ALLOWED_IN_WRITER if module == "sql/writer.py" else ALLOWED)


@pytest.mark.parametrize(
    "source",
    [
        "from sqlglot.parser import _helper",
        "node._hash",
        "exp.Select._meta",
        "class P(Parser):\n    def f(self):\n        return self._parse_select()",
        "Tokenizer._init_core",
    ],
)
def test_a_private_name_is_seen(source: str) -> None:
    assert private_names(source) != []
