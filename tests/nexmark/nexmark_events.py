"""Persons, auctions and bids as Nexmark describes them: of fifty events one is a person, three are auctions, 46 bids.

Deterministic: the same seed and number give the same event, on every machine and in any order. What Nexmark leaves
open is made small: names from short lists, prices that spread over powers of ten, auctions that hot bidders prefer.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from typing import Any

PERSONS, AUCTIONS, TOGETHER = 1, 3, 50
FIRST_PERSON = FIRST_AUCTION = 1000
FIRST_CATEGORY, CATEGORIES = 10, 5
_STATES = ("AZ", "CA", "ID", "OR", "WA", "WY")
_CITIES = ("Phoenix", "Los Angeles", "San Francisco", "Boise", "Portland", "Bend", "Redmond", "Seattle", "Kent")
_NAMES = ("Peter", "Paul", "Luke", "John", "Saul", "Vicky", "Kate", "Julie", "Sarah", "Deiter", "Walter")
_FAMILIES = ("Shultz", "Abrams", "Spencer", "White", "Bartels", "Walton", "Smith", "Jones", "Noris")
_CHANNELS = ("Google", "Facebook", "Baidu", "Apple")
_HOT = 2  # of three sellers, bidders and auctions so many are the most recent ones


@dataclass(frozen=True)
class Nexmark:
    """`rate` is events per second of event time; `out_of_order` how many seconds an event may be late."""

    seed: int = 1
    rate: int = 1000
    start: datetime = field(default=datetime(2024, 1, 1, tzinfo=timezone.utc))
    out_of_order: float = 0.0

    def events(self, count: int, first: int = 0) -> Iterator[dict[str, Any]]:
        """Events `first` … `first + count - 1`, as rows of the table `events`."""
        return (self.event(number) for number in range(first, first + count))

    def messages(self, count: int, first: int = 0) -> Iterator[bytes]:
        """The same as JSON."""
        return (json.dumps(event, separators=(",", ":")).encode() for event in self.events(count, first))

    def event(self, number: int) -> dict[str, Any]:
        chance = random.Random(f"{self.seed}/{number}")
        kind = self.kind(number)
        late = timedelta(seconds=chance.random() * self.out_of_order)
        moment = self.start + timedelta(seconds=number / self.rate) - late
        made: dict[str, Any] = {"event_type": kind, "person": None, "auction": None, "bid": None}
        make = (self._person, self._auction, self._bid)[kind]
        made[("person", "auction", "bid")[kind]] = make(number, moment, chance)
        return made

    @staticmethod
    def kind(number: int) -> int:
        """0 for a person, 1 for an auction, 2 for a bid."""
        rest = number % TOGETHER
        return 0 if rest < PERSONS else 1 if rest < PERSONS + AUCTIONS else 2

    def _person(self, number: int, moment: datetime, chance: random.Random) -> dict[str, Any]:
        name = f"{chance.choice(_NAMES)} {chance.choice(_FAMILIES)}"
        return {
            "id": self._persons(number),
            "name": name,
            "emailAddress": f"{_letters(chance, 7)}@{_letters(chance, 5)}.com",
            "creditCard": " ".join(f"{chance.randrange(10000):04}" for _ in range(4)),
            "city": chance.choice(_CITIES),
            "state": chance.choice(_STATES),
            "dateTime": _written(moment),
            "extra": _letters(chance, 10),
        }

    def _auction(self, number: int, moment: datetime, chance: random.Random) -> dict[str, Any]:
        price = _price(chance)
        return {
            "id": self._auctions(number),
            "itemName": _letters(chance, 8),
            "description": _letters(chance, 20),
            "initialBid": price,
            "reserve": price + _price(chance),
            "dateTime": _written(moment),
            "expires": _written(moment + timedelta(seconds=1 + chance.randrange(20))),
            "seller": _recent(chance, FIRST_PERSON, self._persons(number)),
            "category": FIRST_CATEGORY + chance.randrange(CATEGORIES),
            "extra": _letters(chance, 10),
        }

    def _bid(self, number: int, moment: datetime, chance: random.Random) -> dict[str, Any]:
        channel = chance.choice(_CHANNELS) if chance.random() < 0.5 else f"channel-{chance.randrange(10000)}"
        address = f"https://www.nexmark.com/{_letters(chance, 3)}/{_letters(chance, 3)}/item.htm?query=1"
        if not channel[0].isupper() and chance.random() < 0.9:
            address += f"&channel_id={channel.rpartition('-')[2]}"
        return {
            "auction": _recent(chance, FIRST_AUCTION, self._auctions(number)),
            "bidder": _recent(chance, FIRST_PERSON, self._persons(number)),
            "price": _price(chance),
            "channel": channel,
            "url": address,
            "dateTime": _written(moment),
            "extra": _letters(chance, 10),
        }

    @staticmethod
    def _persons(number: int) -> int:
        """The id of the last person up to this event."""
        return FIRST_PERSON + number // TOGETHER

    @staticmethod
    def _auctions(number: int) -> int:
        """The id of the last auction up to this event; the first event comes before all auctions."""
        whole, rest = divmod(number, TOGETHER)
        return FIRST_AUCTION + max(whole * AUCTIONS + min(rest - PERSONS, AUCTIONS - 1), 0)


def _recent(chance: random.Random, first: int, last: int) -> int:
    """Often one of the last few, sometimes any."""
    if chance.randrange(3) < _HOT:
        return max(first, last - chance.randrange(4))
    return chance.randint(first, last)


def _price(chance: random.Random) -> int:
    return round(10 ** (chance.random() * 6) * 100)


def _letters(chance: random.Random, length: int) -> str:
    return "".join(chance.choices("abcdefghijklmnopqrstuvwxyz", k=length))


def _written(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%d %H:%M:%S.") + f"{moment.microsecond // 1000:03}"
