"""Where the checkpoint of a case lies."""

from __future__ import annotations

from pathlib import Path

import pytest

from headwater.testing import replay


def test_in_memory_if_there_is_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replay, "_SHARED_MEMORY", str(tmp_path))
    monkeypatch.setattr(replay, "_ROOM", 1)
    assert replay.in_memory() == str(tmp_path)
    monkeypatch.setattr(replay, "_ROOM", 1 << 80)
    assert replay.in_memory() is None


def test_elsewhere_where_there_is_no_such_thing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replay, "_SHARED_MEMORY", str(tmp_path / "missing"))
    assert replay.in_memory() is None
