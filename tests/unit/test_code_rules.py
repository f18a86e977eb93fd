"""Rules of the source that no linter knows: boolean parameters, names of classes. Read from the source alone."""

from __future__ import annotations

import ast
from collections import defaultdict
from functools import cache
from pathlib import Path

import headwater

SOURCE = Path(headwater.__file__).parent
MOST_BOOLEANS = 48


@cache
def trees() -> dict[str, ast.Module]:
    paths = sorted(SOURCE.rglob("*.py"))
    return {str(path.relative_to(SOURCE)): ast.parse(path.read_text(encoding="utf-8")) for path in paths}


def is_boolean(parameter: ast.arg) -> bool:
    return parameter.annotation is not None and ast.unparse(parameter.annotation) in {"bool", "bool | None"}


def boolean_parameters(tree: ast.Module) -> tuple[list[str], list[str]]:
    """Those that can be passed by position, and those that cannot."""
    positional, keyword = [], []
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            given = (*node.args.posonlyargs, *node.args.args)
            positional += [f"{node.name}({p.arg})" for p in given if is_boolean(p)]
            keyword += [f"{node.name}({p.arg})" for p in node.args.kwonlyargs if is_boolean(p)]
    return positional, keyword


def test_boolean_parameters_are_seen() -> None:
    tree = ast.parse("def f(a: bool, b: int, *, c: bool = True, d: bool | None = None) -> bool: ...")
    assert boolean_parameters(tree) == (["f(a)"], ["f(c)", "f(d)"])


def test_no_boolean_is_passed_by_position_and_few_by_name() -> None:
    """`scan(table, True)` says nothing to a reader. What selects a way of working is two functions or a Literal; a flag
    that is data (`nullable`) is passed by name."""
    found = {module: boolean_parameters(tree) for module, tree in trees().items()}
    assert {module: positional for module, (positional, _) in found.items() if positional} == {}
    assert sum(len(keyword) for _, keyword in found.values()) <= MOST_BOOLEANS


def test_a_class_name_means_one_thing() -> None:
    places = defaultdict(list)
    for module, tree in trees().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(module)
    assert {name: modules for name, modules in places.items() if len(modules) > 1} == {}
