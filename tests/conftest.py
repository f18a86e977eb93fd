"""What tests share: one real broker and one Spark for the whole run, and topic names nobody else uses."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from headwater.broker import Broker
from headwater.execution.prepared import PreparedPlan
from headwater.testing import CaseRunner
from headwater.testing.registry import SchemaRegistry, start_registry
from object_server import ObjectServer, find_binary

# Those that wait most come first, one after the other: meanwhile the other process of the run has the machine, and
# when all is nearly done, nothing slow is left.
SLOWEST_FIRST = (
    "recovery/test_kill.py",
    "recovery/test_exactly_once.py",
    "property/test_histories.py",
    "recovery/test_outage.py",
    "recovery/test_sink_outage.py",
    "cli/test_run.py",
    "cli/test_run_legacy_options.py",
    "docs/test_examples.py::test_what_is_marked_to_run_runs",
    "kafka/test_security.py",
    "cases/test_runner.py",
    "cases/legacy/",
    "property/",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    gone = [name for name in SLOWEST_FIRST if not (Path(__file__).parent / name.split("::")[0]).exists()]
    assert not gone, f"SLOWEST_FIRST names files that are not there: {gone}"
    places = {f"tests/{name}": place for place, name in enumerate(SLOWEST_FIRST)}
    items.sort(key=lambda item: next((place for name, place in places.items() if name in item.nodeid), len(places)))


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A broker of this test run alone, on a free port; it ends with the run, even if that is killed."""
    quick_start = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
    directory = tmp_path_factory.mktemp("broker")
    with Broker.start(directory, port=0, die_with_parent=True, jvm_options=quick_start) as running:
        yield running


@pytest.fixture(scope="session")
def case_runner(broker: Broker) -> Iterator[CaseRunner]:
    """Plays case files on that broker. Its Spark is started when first needed and is the run's only one."""
    with CaseRunner(broker.bootstrap_servers) as running:
        yield running


@pytest.fixture(scope="session")
def schema_registry() -> Iterator[SchemaRegistry]:
    """A schema registry of this test run alone; it ends with the run, even if that is killed."""
    running = start_registry()
    yield running
    running.stop()


@pytest.fixture(scope="module")
def object_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ObjectServer]:
    """A real object store."""
    server = ObjectServer(find_binary(), tmp_path_factory.mktemp("objects") / "data")
    server.start()
    yield server
    server.stop()


@pytest.fixture(scope="session")
def unique_topic() -> Callable[[str], str]:
    """Makes a topic name of its own from a readable stem; the topic itself is for the test to create."""
    return lambda stem: f"{stem}-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def plans_with_reuse(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Spark's plans that have parts which are computed once, as text, batch by batch."""
    plans: list[str] = []
    reuse = PreparedPlan._with_reuse

    def remembered(self: PreparedPlan, plan: Any) -> Any:
        executed = reuse(self, plan)
        plans.append(executed.treeString())
        return executed

    monkeypatch.setattr(PreparedPlan, "_with_reuse", remembered)
    return plans
