"""What tests share: one real broker for the whole run, and topic names nobody else uses."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator

import pytest

from headwater.broker import Broker


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A broker of this test run alone, on a free port; it ends with the run, even if that is killed."""
    quick_start = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
    directory = tmp_path_factory.mktemp("broker")
    with Broker.start(directory, port=0, die_with_parent=True, jvm_options=quick_start) as running:
        yield running


@pytest.fixture
def unique_topic() -> Callable[[str], str]:
    """Makes a topic name of its own from a readable stem; the topic itself is for the test to create."""
    return lambda stem: f"{stem}-{uuid.uuid4().hex[:8]}"
