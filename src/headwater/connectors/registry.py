"""All connectors, by identifier."""

from __future__ import annotations

from collections.abc import Mapping

from headwater.connectors.base import Connector
from headwater.connectors.blackhole import BLACKHOLE
from headwater.connectors.datagen import DATAGEN
from headwater.connectors.kafka.connector import KAFKA, UPSERT_KAFKA
from headwater.connectors.print_ import PRINT

__all__ = ["CONNECTORS"]

CONNECTORS: Mapping[str, Connector] = {
    connector.identifier: connector for connector in (KAFKA, UPSERT_KAFKA, DATAGEN, PRINT, BLACKHOLE)
}
