"""Time zones by their names: as Flink's scripts write them, and that of this machine."""

from __future__ import annotations

import os
import re
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from headwater.options.closest import did_you_mean

__all__ = ["machine_time_zone", "time_zone"]

# Java's zones of a fixed offset: GMT+08:00, UTC+8, UT-03:30, +08:00.
_OFFSET = re.compile(r"(?:GMT|UTC|UT)?(?P<sign>[+-])(?P<hours>\d{1,2})(?::?(?P<minutes>[0-5]\d))?", re.IGNORECASE)
_LINK = Path("/etc/localtime")
_FILE = Path("/etc/timezone")


def time_zone(text: str) -> str:
    """The zone as Spark and Python know it. Raises ValueError if there is none."""
    if text.lower() == "default":
        return machine_time_zone()
    if found := _OFFSET.fullmatch(text.strip()):
        return _fixed(text, found)
    if not _is_zone(text):
        near = did_you_mean(text, available_timezones()) or "Write it like 'UTC', 'Europe/Berlin' or 'GMT+08:00'."
        raise ValueError(f"'{text}' is not a time zone. {near}")
    return text


def _fixed(text: str, found: re.Match[str]) -> str:
    hours, minutes = int(found["hours"]), int(found["minutes"] or 0)
    if hours * 60 + minutes > 18 * 60:
        raise ValueError(f"'{text}' is not a time zone: offsets go up to 18 hours.")
    if hours == minutes == 0:
        return "UTC"
    # A name where there is one: the signs of these names are the other way round.
    name = f"Etc/GMT{'-' if found['sign'] == '+' else '+'}{hours}"
    return name if not minutes and _is_zone(name) else f"{found['sign']}{hours:02}:{minutes:02}"


def machine_time_zone() -> str:
    """From TZ, the link /etc/localtime or /etc/timezone. UTC if none of them names a zone, as in most containers.

    A name and not today's offset: it becomes part of what a checkpoint stands for, and offsets change twice a year.
    """
    found = [os.environ.get("TZ", "").lstrip(":")]
    if _LINK.is_symlink():
        found.append(str(_LINK.readlink()))
    if _FILE.is_file():
        found.append(_FILE.read_text(encoding="utf-8").strip())
    names = (text.rpartition("zoneinfo/")[2] for text in found)
    return next((name for name in names if _is_zone(name)), "UTC")


def _is_zone(name: str) -> bool:
    try:
        return bool(name) and ZoneInfo(name) is not None
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return False
