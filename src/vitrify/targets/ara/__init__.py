"""The Ara240, a card with an NPU of its own: nearly nothing is public about which operators its compiler takes."""

from vitrify.targets.ara.operators import basis, operators, row, settle, variant

__all__ = ["basis", "operators", "row", "settle", "variant"]
