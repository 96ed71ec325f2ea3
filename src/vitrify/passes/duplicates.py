"""The same computation done twice."""

from __future__ import annotations

from typing import Any

from vitrify.ir import Graph, Node, Tensor
from vitrify.passes.base import Pass
from vitrify.passes.graphs import is_pure

SMALL = 4096
"""Constants up to this many bytes are compared by content, larger ones by identity."""


class Duplicates(Pass):
    """Compute once what several nodes compute alike.

    Before:  %1 = TRANSPOSE(%x, p);  %2 = TRANSPOSE(%x, p)
    After:   %1 = TRANSPOSE(%x, p)       (readers of %2 read %1)
    """

    name = "duplicates"

    def run(self, graph: Graph) -> int:
        """Walk in order, so that duplicates of duplicates meet."""
        seen: dict[Any, Node] = {}
        changed = 0
        for node in graph:
            if not is_pure(node) or not node.outputs:
                continue
            key = (node.op, tuple(map(_key, node.inputs)), tuple((t.type, t.quantization) for t in node.outputs))
            first = seen.setdefault(key, node)
            if first is node or any(t.is_output for t in node.outputs):
                continue
            for old, new in zip(node.outputs, first.outputs, strict=True):
                graph.replace_uses(old, new)
            self.touch(str(node.origin) if node.origin.sources else "")
            graph.remove(node)
            changed += 1
        return changed


def _key(tensor: Tensor | None) -> Any:
    """What tells one input from another."""
    if tensor is None or tensor.data is None or tensor.data.nbytes > SMALL:
        return id(tensor)
    return tensor.type, tensor.quantization, tensor.data.tobytes()
