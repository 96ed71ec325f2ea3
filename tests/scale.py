"""How many examples the property tests try: the number they name, times VITRIFY_FUZZ (`make fuzz` sets it)."""

from __future__ import annotations

import os


def examples(count: int) -> int:
    """Return ``count``, multiplied where more is asked for."""
    return count * int(os.environ.get("VITRIFY_FUZZ", "1"))
