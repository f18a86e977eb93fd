"""Values as the print connector shows them."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

from headwater.connectors.print_ import show_value


def test_an_instant_is_shown_in_utc_whatever_zone_it_comes_in() -> None:
    berlin = timezone(timedelta(hours=2))
    assert show_value(datetime(2024, 6, 1, 12, 0, 1, tzinfo=berlin)) == "2024-06-01T10:00:01Z"
    assert show_value(datetime(2024, 6, 1, 12, 0, 1)) == "2024-06-01T12:00:01"  # noqa: DTZ001 - a TIMESTAMP has none
