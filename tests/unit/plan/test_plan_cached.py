"""Threads that ask nodes of a plan for their properties do not wait for each other."""

from __future__ import annotations

import threading
from typing import Any

from headwater.plan.cached import cached_property
from headwater.plan.nodes import Node, Project, WindowTable


class _Upper:
    def __init__(self, below: Any, meet: threading.Barrier | None = None) -> None:
        self.below, self._meet = below, meet

    @cached_property
    def names(self) -> list[str]:
        if self._meet is not None:
            self._meet.wait(10)
        return [type(self).__name__, *(self.below.names if self.below else [])]


class _Lower(_Upper):
    names = cached_property(_Upper.names.func)  # type: ignore[attr-defined]
    names.__set_name__(None, "names")  # type: ignore[arg-type]


def test_two_threads_ask_nodes_of_two_classes_for_those_below() -> None:
    """With a lock for each class, each thread would hold one and want the other's."""
    meet = threading.Barrier(2)
    found: list[list[str]] = []
    tops = [_Upper(_Lower(None), meet), _Lower(_Upper(None), meet)]
    threads = [threading.Thread(target=lambda top=top: found.append(top.names), daemon=True) for top in tops]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)

    assert sorted(found) == [["_Lower", "_Upper"], ["_Upper", "_Lower"]]
    assert tops[0].names is tops[0].names


def test_nodes_of_plans_use_it() -> None:
    for kind in (Node, Project, WindowTable):
        properties = [value for value in vars(kind).values() if type(value).__name__ == "cached_property"]
        assert properties
        assert all(isinstance(value, cached_property) for value in properties)
