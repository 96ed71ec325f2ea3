"""Free dimensions."""

from __future__ import annotations

from vitrify.ir import Graph
from vitrify.passes.base import Pass


class PinFreeDimensions(Pass):
    """Pin the dimensions that a file leaves free to the extents that it gives as defaults (batch 1).

    Before:  %x: int8[1,4,4,8] with signature [-1,4,4,8]
    After:   %x: int8[1,4,4,8]
    """

    name = "pin-free-dimensions"

    def run(self, graph: Graph) -> int:
        """Forget all signatures; returns the number of inputs that had a free dimension."""
        pinned = []
        for tensor in graph.tensors():
            if tensor in graph.inputs and -1 in tensor.shape_signature:
                pinned.append(f"'{tensor.name}' {_shown(tensor.shape_signature)} -> {_shown(tensor.shape)}")
            if -1 in tensor.shape_signature:
                tensor.shape_signature = ()
        if pinned:
            self.note = "pinned " + ", ".join(pinned)
        return len(pinned)


def _shown(shape: tuple[int, ...]) -> str:
    return f"[{','.join(map(str, shape))}]"
