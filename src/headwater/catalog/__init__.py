"""Tables and views by name, checked once when they are created."""

from headwater.catalog.catalog import Catalog
from headwater.catalog.tables import Table, View

__all__ = ["Catalog", "Table", "View"]
