"""`blackhole`: takes every change and forgets it, to see how fast a query alone is."""

from __future__ import annotations

from headwater.connectors.base import CONNECTOR, Accepts, Connector

__all__ = ["BLACKHOLE"]


class BlackholeConnector(Connector):
    identifier = "blackhole"
    summary = "Takes every row and forgets it."
    options = (CONNECTOR,)
    accepts = Accepts.ALL


BLACKHOLE = BlackholeConnector()
