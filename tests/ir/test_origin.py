"""Origins of what was made from very many nodes."""

from __future__ import annotations

from vitrify.ir import Origin
from vitrify.ir.origin import MOST_SOURCES, join


def test_a_chain_of_thousands_keeps_both_ends() -> None:
    whole = Origin.of("first")
    for number in range(1000):
        whole = join([whole, Origin.of(f"n{number}")], by="fuse")
    assert len(whole.sources) == MOST_SOURCES
    assert (whole.sources[0].name, whole.sources[-1].name) == ("first", "n999")
    assert whole.passes == ("fuse",)
