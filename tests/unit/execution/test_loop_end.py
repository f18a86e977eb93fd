"""How a run ends: everything is closed, and the checkpoint is free, also where something fails to close."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from headwater.execution.inputs import Inputs
from headwater.execution.loop import Loop
from headwater.protocol.checkpoint import Checkpoint
from headwater.protocol.storage import open_storage


def test_a_client_that_fails_to_close_does_not_keep_the_checkpoint(tmp_path: Path) -> None:
    """As one does that has lost the JVM: until Python ended, the job was told that another run holds its checkpoint."""
    closed: list[str] = []

    def closing(name: str, *, fails: bool = False) -> Any:
        def close() -> None:
            closed.append(name)
            if fails:
                raise ConnectionError(name)

        return SimpleNamespace(close=close)

    loop, inputs = Loop.__new__(Loop), Inputs.__new__(Inputs)
    inputs.sources = [closing("first"), closing("second", fails=True)]
    loop.inputs, loop.sink = inputs, closing("sink", fails=True)
    loop.executor = SimpleNamespace(compactor=closing("compactor"))  # type: ignore[assignment]
    loop.checkpoint = Checkpoint(open_storage(str(tmp_path)))
    loop.checkpoint.storage.lock()
    with pytest.raises(ConnectionError):
        loop._close()
    assert closed == ["compactor", "second", "first", "sink"]
    open_storage(str(tmp_path)).lock()
