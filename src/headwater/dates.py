"""Arrow columns as Python values, whatever year their dates and timestamps are of. Arrow and Spark know years that
`datetime` does not, which ends with 9999: its own `to_pylist` raises for such a value."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["FarTime", "check_for_pandas", "date_text", "dated_values", "numbered_values"]

_DAY = 86_400_000_000
_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896  # 0001-01-01 and 9999-12-31
_DAYS_OF_400_YEARS = 146_097
_EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001 - of a TIMESTAMP, which has no time zone
_EPOCH_UTC = _EPOCH.replace(tzinfo=dt.timezone.utc)


@dataclass(frozen=True)
class FarTime:
    """A date or a timestamp of a year that Python does not know."""

    date: str
    time: dt.time | None = None

    def __str__(self) -> str:
        return self.date if self.time is None else f"{self.date} {self.time}"

    __repr__ = __str__  # inside of lists and rows it is shown as well


Beyond = Callable[[FarTime], Any]
_Read = Callable[[Any], Any]


def numbered_values(column: pa.Array) -> list[Any]:
    """As `to_pylist`, but dates and timestamps are the numbers that Arrow has: they compare and sort as those do."""
    return column.cast(_without_dates(column.type)).to_pylist()  # type: ignore[no-any-return]


def dated_values(column: pa.Array, beyond: Beyond = lambda far: far, zone: dt.tzinfo | None = None) -> list[Any]:
    """As `to_pylist`, but what Python does not know is what `beyond` makes of it. Instants are in `zone`, if not in
    that of the column."""
    read = _reader(column.type, beyond, zone)
    return column.to_pylist() if read is None else _read_all(read, numbered_values(column))


def check_for_pandas(column: pa.Array, refuse: Beyond) -> None:
    """Before it becomes a column of pandas. That has timestamps of all years, but makes Python's values of all others,
    and ends the process when it shows an instant before the year 1."""
    import pyarrow as pa

    if column.type != pa.timestamp("us") and not _surely_known(column):
        dated_values(column, refuse)


def _surely_known(column: pa.Array) -> bool:
    """Seen without making a Python value of each, which takes longer than most functions of columns."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind, day = column.type, _DAY if pa.types.is_timestamp(column.type) else 1
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        limits = pc.min_max(column.cast(_without_dates(kind))).as_py()
        # A clock is less than a day from UTC.
        return limits["min"] is None or ((_FIRST_DAY + 1) * day <= limits["min"] and limits["max"] < _LAST_DAY * day)
    if pa.types.is_map(kind):
        return _surely_known(column.keys) and _surely_known(column.items)
    if pa.types.is_struct(kind):
        return all(map(_surely_known, column.flatten()))
    return not pa.types.is_list(kind) or _surely_known(column.flatten())


def date_text(days: int) -> str:
    """As Java writes it: years of more than four digits have a sign."""
    cycles, place = divmod(days - _FIRST_DAY, _DAYS_OF_400_YEARS)
    return _text_of(dt.date.fromordinal(place + 1), 400 * cycles)


def _text_of(day: dt.date, years: int) -> str:
    """Of the day so many years later; after 400 years the calendar is the same."""
    year = day.year + years
    return f"{year:04d}{day:-%m-%d}" if 0 <= year <= 9999 else f"{year:+05d}{day:-%m-%d}"


def _without_dates(kind: pa.DataType) -> pa.DataType:
    import pyarrow as pa

    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        return pa.int64() if pa.types.is_timestamp(kind) else pa.int32()
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_without_dates(field.type)) for field in kind])
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_without_dates(kind.value_type)))
    if pa.types.is_map(kind):
        return pa.map_(_without_dates(kind.key_type), kind.item_field.with_type(_without_dates(kind.item_type)))
    return kind


def _reader(kind: pa.DataType, beyond: Beyond, zone: dt.tzinfo | None) -> _Read | None:
    """What makes a value of a numbered one. None if they are the same."""
    import pyarrow as pa

    if pa.types.is_date(kind):
        return lambda days: _date(days, beyond)
    if pa.types.is_timestamp(kind) and kind.tz is None:
        return lambda micros: _timestamp(micros, beyond)
    if pa.types.is_timestamp(kind):
        zone = zone or pa.scalar(0, kind).as_py().tzinfo  # as Arrow reads the name
        return lambda micros: _instant(micros, zone, beyond)
    if pa.types.is_struct(kind):
        return _row_reader({field.name: _reader(field.type, beyond, zone) for field in kind})
    if pa.types.is_list(kind):
        item = _reader(kind.value_type, beyond, zone)
        return None if item is None else partial(_read_all, item)
    if pa.types.is_map(kind):
        key, item = _reader(kind.key_type, beyond, zone), _reader(kind.item_type, beyond, zone)
        return None if key is item is None else lambda pairs: [(_read(key, k), _read(item, v)) for k, v in pairs]
    return None


def _row_reader(fields: dict[str, _Read | None]) -> _Read | None:
    if not any(fields.values()):
        return None
    return lambda row: {name: _read(read, row[name]) for name, read in fields.items()}


def _read(read: _Read | None, value: Any) -> Any:
    return value if read is None or value is None else read(value)


def _read_all(read: _Read, values: list[Any]) -> list[Any]:
    return [None if value is None else read(value) for value in values]


def _date(days: int, beyond: Beyond) -> Any:
    if _FIRST_DAY <= days <= _LAST_DAY:
        return dt.date.fromordinal(days - _FIRST_DAY + 1)
    return beyond(FarTime(date_text(days)))


def _timestamp(micros: int, beyond: Beyond) -> Any:
    try:
        return _EPOCH + dt.timedelta(microseconds=micros)
    except OverflowError:
        return _far(micros, None, beyond)


def _instant(micros: int, zone: dt.tzinfo | None, beyond: Beyond) -> Any:
    try:
        return (_EPOCH_UTC + dt.timedelta(microseconds=micros)).astimezone(zone)
    except OverflowError:
        return _far(micros, zone, beyond)


def _far(micros: int, zone: dt.tzinfo | None, beyond: Beyond) -> Any:
    """By the same day of a year that Python knows, and in which clocks are as far from UTC: the years from 401, or
    those from 9201. The year may be known after all: it is the zone's."""
    cycles = (micros // _DAY - _FIRST_DAY) // _DAYS_OF_400_YEARS
    moved = cycles - (1 if cycles < 1 else 23)
    near = _EPOCH_UTC + dt.timedelta(microseconds=micros - moved * _DAYS_OF_400_YEARS * _DAY)
    local, years = near.replace(tzinfo=None) if zone is None else near.astimezone(zone), 400 * moved
    if dt.MINYEAR <= local.year + years <= dt.MAXYEAR:
        return local.replace(year=local.year + years)
    return beyond(FarTime(_text_of(local, years), local.time()))
