"""Nexmark's events in one topic, from a seed: of fifty events one is a person, three are auctions, 46 are bids.

Sizes and skew are those that Nexmark describes: half of the bids go to the hottest auction, three quarters of them come
from the hottest bidder, and events have some 200 (persons), 500 (auctions) and 100 bytes (bids) beside their names.
One event happens in a millisecond, and no two prices among some thousand bids are equal, so that ranks have no ties.
Events arrive up to three seconds out of order.
"""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.json as pa_json
from changelog_topics import moment
from generate import PARTITIONS, Columns, Message, Messages, rows_of
from scripts import BLOCK_BYTES, Topic

__all__ = ["NEXMARK_TOPICS"]

PERSONS, AUCTIONS, TOGETHER = 1, 3, 50
FIRST = 1_000
CATEGORIES = 5
DISORDER = 3_000
HOT_EVERY = 100
ACTIVE_PERSONS, OPEN_AUCTIONS = 1_000, 100
SIDE_KEYS = 10_000
GOLDEN = 0.6180339887498949  # its multiples keep apart modulo 1

_STATES = (b"AZ", b"CA", b"ID", b"OR", b"WA", b"WY")
_CITIES = (b"Phoenix", b"Los Angeles", b"San Francisco", b"Boise", b"Portland", b"Bend", b"Redmond", b"Seattle")
_NAMES = (b"Peter", b"Paul", b"Luke", b"John", b"Saul", b"Vicky", b"Kate", b"Julie", b"Sarah", b"Deiter", b"Walter")
_FAMILIES = (b"Shultz", b"Abrams", b"Spencer", b"White", b"Bartels", b"Walton", b"Smith", b"Jones", b"Noris")
_CHANNELS = (b"Google", b"Facebook", b"Baidu", b"Apple")

_WORDS = [bytes(row) for row in np.random.default_rng(20).integers(97, 123, (1_000, 10), dtype=np.uint8)]

_PERSON = (
    b'{"event_type":0,"person":{"id":%d,"name":"%s %s","emailAddress":"%s@%s.com","creditCard":"%04d %04d %04d %04d",'
    b'"city":"%s","state":"%s","dateTime":"%s","extra":"%s"},"auction":null,"bid":null}'
)
_AUCTION = (
    b'{"event_type":1,"person":null,"auction":{"id":%d,"itemName":"%s","description":"%s","initialBid":%d,"reserve":%d,'
    b'"dateTime":"%s","expires":"%s","seller":%d,"category":%d,"extra":"%s"},"bid":null}'
)
_BID = (
    b'{"event_type":2,"person":null,"auction":null,"bid":{"auction":%d,"bidder":%d,"price":%d,"channel":"%s",'
    b'"url":"https://www.nexmark.com/%s/%s/item.htm?query=1%s","dateTime":"%s","extra":"%s"}}'
)


def _events(rows: int, partition: int) -> Columns:
    random = np.random.default_rng([21, partition])
    number = np.arange(partition, rows, PARTITIONS)
    number = number[np.argsort(number + random.integers(0, DISORDER, len(number)), kind="stable")]
    person = FIRST + number // TOGETHER
    auction = FIRST + number // TOGETHER * AUCTIONS + np.clip(number % TOGETHER - PERSONS, 0, AUCTIONS - 1)
    hot = random.random((2, len(number)))
    recent = [random.integers(0, size, len(number)) for size in (OPEN_AUCTIONS, ACTIVE_PERSONS)]
    bid_on = np.where(hot[0] < 0.5, auction // HOT_EVERY * HOT_EVERY, auction - recent[0])
    someone = np.where(hot[1] < 0.75, person // HOT_EVERY * HOT_EVERY, person - recent[1])
    return {
        "number": number,
        "person": person,
        "auction": auction,
        "bid_on": np.maximum(bid_on, FIRST),
        "someone": np.maximum(someone, FIRST),
        "price": np.round(10 ** (number * GOLDEN % 1.0 * 6 + 3)).astype(np.int64),
        "chance": random.integers(0, 2**40, len(number)),
    }


def _event_messages(columns: Columns) -> Iterator[Message]:
    names = ("number", "person", "auction", "bid_on", "someone", "price", "chance")
    for number, person, auction, bid_on, someone, price, chance in rows_of(columns, *names):
        rest = number % TOGETHER
        if rest >= PERSONS + AUCTIONS:
            yield None, _bid(number, bid_on, someone, price, chance)
        elif rest >= PERSONS:
            yield None, _auction(number, auction, someone, price, chance)
        else:
            yield None, _person(number, person, chance)


def _bid(number: int, auction: int, bidder: int, price: int, chance: int) -> bytes:
    kind = chance % 20_000
    channel = _CHANNELS[kind % 4] if kind < 10_000 else b"channel-%d" % (kind - 10_000)
    parameter = b"" if kind < 11_000 else b"&channel_id=%d" % (kind - 10_000)
    first, second, extra = _word(chance, 3), _word(chance >> 8, 3), _word(chance >> 3, 8) * 5
    return _BID % (auction, bidder, price, channel, first, second, parameter, moment(number), extra)


def _auction(number: int, auction: int, seller: int, price: int, chance: int) -> bytes:
    expires = moment(number + 1_000 + chance % 20_000)
    item, text, extra = _word(chance, 10), _word(chance >> 5, 10) * 5, _word(chance >> 9, 10) * 30
    numbers = (seller, 10 + chance % CATEGORIES)
    return _AUCTION % (auction, item, text, price, price + chance % 1_000_000, moment(number), expires, *numbers, extra)


def _person(number: int, person: int, chance: int) -> bytes:
    name, family = _NAMES[chance % len(_NAMES)], _FAMILIES[chance // 11 % len(_FAMILIES)]
    card = [(chance >> shift) % 10_000 for shift in (0, 8, 16, 24)]
    city, state = _CITIES[chance // 99 % len(_CITIES)], _STATES[chance // 792 % len(_STATES)]
    mail, extra = (_word(chance, 7), _word(chance >> 7, 5)), _word(chance >> 2, 10) * 8
    return _PERSON % (person, name, family, *mail, *card, city, state, moment(number), extra)


def _word(chance: int, length: int) -> bytes:
    """One of a thousand words, the same for the same number."""
    return _WORDS[chance % len(_WORDS)][:length]


def _side(_: int, partition: int) -> Columns:
    return {"key": np.arange(partition, SIDE_KEYS, PARTITIONS)}


def _side_messages(columns: Columns) -> Iterator[Message]:
    for (key,) in rows_of(columns, "key"):
        yield b'{"key":%d}' % key, b'{"key":%d,"value":"side %d"}' % (key, key)


_TIMES = ("dateTime", "expires")
_SCHEMA = {
    "person": ("id", "name", "emailAddress", "creditCard", "city", "state", "dateTime", "extra"),
    "auction": (
        *("id", "itemName", "description", "initialBid", "reserve", "dateTime", "expires", "seller", "category"),
        "extra",
    ),
    "bid": ("auction", "bidder", "price", "channel", "url", "dateTime", "extra"),
}
_NUMBERS = {"id", "initialBid", "reserve", "seller", "category", "auction", "bidder", "price"}


def _load_events(database: duckdb.DuckDBPyConnection, rows: int) -> None:
    """Three tables, from the messages themselves."""
    structs = {
        kind: pa.struct([(name, pa.int64() if name in _NUMBERS else pa.string()) for name in names])
        for kind, names in _SCHEMA.items()
    }
    schema = pa.schema([("event_type", pa.int64()), *structs.items()])
    made = _event_messages(_GENERATED.all_columns(rows))
    lines = pa.BufferReader(b"\n".join(value for _, value in made if value is not None))
    options = pa_json.ParseOptions(explicit_schema=schema)
    database.register("events", pa_json.read_json(lines, pa_json.ReadOptions(block_size=BLOCK_BYTES), options))
    for kind, names in _SCHEMA.items():
        fields = ", ".join(
            f'CAST({kind}."{name}" AS TIMESTAMP) AS "{name}"' if name in _TIMES else f'{kind}."{name}" AS "{name}"'
            for name in names
        )
        database.execute(f"CREATE TABLE {kind} AS SELECT {fields} FROM events WHERE {kind} IS NOT NULL")
    database.unregister("events")


def _load_side(database: duckdb.DuckDBPyConnection, _: int) -> None:
    database.execute(f"CREATE TABLE side AS SELECT range AS key, 'side ' || range AS \"value\" FROM range({SIDE_KEYS})")


_GENERATED = Messages(_events, _event_messages)

NEXMARK_TOPICS = {
    "events": Topic(_GENERATED, 0.5, _load_events),
    "side": Topic(Messages(_side, _side_messages), 1.0, _load_side),
}
"""Half of the rows, so that twenty queries take no more than a quarter of an hour."""
