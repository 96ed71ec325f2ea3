"""Which nodes of one graph are which of another, many to many, whatever formats and names the two come from."""

from vitrify.matching.items import Item, Side
from vitrify.matching.match import Group, Matching, match
from vitrify.matching.sources import Mapped, SourceEntry, map_sources

__all__ = ["Group", "Item", "Mapped", "Matching", "Side", "SourceEntry", "map_sources", "match"]
