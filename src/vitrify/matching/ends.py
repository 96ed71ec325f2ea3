"""Which input and output of one graph is which of another's."""

from __future__ import annotations

from collections.abc import Sequence

from vitrify.ir import Tensor
from vitrify.matching.items import extents, plain_name


def match_ends(left: Sequence[Tensor], right: Sequence[Tensor], batches: tuple[int, int]) -> list[tuple[int, int]]:
    """Return pairs of positions: by name, then by extents in order, then by order where only one way is left."""
    pairs: dict[int, int] = {}
    named = {plain_name(t.name): j for j, t in reversed(list(enumerate(right)))}
    for i, tensor in enumerate(left):
        j = named.get(plain_name(tensor.name))
        if j is not None and j not in pairs.values():
            pairs[i] = j
    taken = set(pairs.values())
    for i, tensor in enumerate(left):
        if i not in pairs:
            size = extents(tensor, batches[0])
            j = next((j for j, t in enumerate(right) if j not in taken and extents(t, batches[1]) == size), None)
            if j is not None:
                pairs[i] = j
                taken.add(j)
    rest = [i for i in range(len(left)) if i not in pairs]
    free = [j for j in range(len(right)) if j not in taken]
    if len(rest) == len(free):
        pairs.update(zip(rest, free, strict=True))
    return sorted(pairs.items())
