"""Made-up visitors of a web site: regions of different size, visitors that come back, pages that everybody reads."""

from __future__ import annotations

import random
from datetime import datetime
from typing import TypedDict

__all__ = ["REGIONS", "PageView", "Traffic"]

# Region and its share of the visitors.
REGIONS = {
    "East Asia": 22,
    "Europe": 19,
    "South Asia": 17,
    "North America": 14,
    "Latin America": 10,
    "Southeast Asia": 8,
    "Africa": 5,
    "Middle East": 3,
    "Oceania": 2,
}
_USERS = 40_000
_PAGES = 500


class PageView(TypedDict):
    """A message of the input topic."""

    user_id: int
    page_id: int
    viewtime: str
    user_region: str


class Traffic:
    """Views, one after the other. A few visitors read much, most read little; one view in fifty is made abroad."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        names, shares = list(REGIONS), list(REGIONS.values())
        self._homes = random.Random(0).choices(names, shares, k=_USERS)
        self._names = names

    def view(self, now: datetime) -> PageView:
        user = self._skewed(_USERS)
        abroad = self._random.random() < 0.02
        return {
            "user_id": 100_000 + user,
            "page_id": 1 + self._skewed(_PAGES),
            "viewtime": now.strftime("%Y-%m-%d %H:%M:%S.%f")[:-3],
            "user_region": self._random.choice(self._names) if abroad else self._homes[user],
        }

    def _skewed(self, size: int) -> int:
        return int(size * self._random.random() ** 2)
