"""The same computation done twice."""

from __future__ import annotations

from typing import Any

import numpy as np

from vitrify.ir import Graph, Node, Tensor
from vitrify.passes.base import Pass
from vitrify.passes.graphs import is_pure

SMALL = 4096
"""Inputs of nodes up to this many bytes are compared by content, larger ones by identity."""
SAMPLE = 256
"""Elements that are compared before the whole content is."""


class Duplicates(Pass):
    """Compute once what several nodes compute alike.

    Before:  %1 = TRANSPOSE(%x, p);  %2 = TRANSPOSE(%x, p)
    After:   %1 = TRANSPOSE(%x, p)       (readers of %2 read %1)
    """

    name = "duplicates"

    def run(self, graph: Graph) -> int:
        """Walk in order, so that duplicates of duplicates meet."""
        alone: dict[Any, Node] = {}
        seen: dict[Any, Node] = {}
        changed = 0
        for node in graph:
            if not is_pure(node) or not node.outputs:
                continue
            # Constants are read only where operator and computed inputs agree already, which is rare.
            coarse = (type(node.op), *(id(t) for t in node.inputs if t is not None and t.data is None))
            other = alone.setdefault(coarse, node)
            if other is node:
                continue
            seen.setdefault(_key(other), other)
            first = seen.setdefault(_key(node), node)
            if first is node or any(t.is_output for t in node.outputs):
                continue
            for old, new in zip(node.outputs, first.outputs, strict=True):
                graph.replace_uses(old, new)
            self.touch(str(node.origin) if node.origin.sources else "")
            graph.remove(node)
            changed += 1
        return changed


class SharedConstants(Pass):
    """Keep one of several large constants with the same content.

    Before:  %1 = CONV_2D(%x, w);  %2 = CONV_2D(%y, v)       w and v hold the same values
    After:   %1 = CONV_2D(%x, w);  %2 = CONV_2D(%y, w)
    Small ones (biases, operands) are left: their int8 scales depend on the nodes that read them.
    """

    name = "shared-constants"

    def run(self, graph: Graph) -> int:
        """Compare the content of constants of the same type only."""
        alike: dict[Any, dict[Tensor, None]] = {}
        for node in graph:
            for tensor in node.inputs:
                if tensor is not None and tensor.data is not None and not tensor.is_output and tensor.nbytes > SMALL:
                    alike.setdefault((tensor.type, tensor.quantization), {})[tensor] = None
        return sum(self._share(graph, list(tensors)) for tensors in alike.values() if len(tensors) > 1)

    def _share(self, graph: Graph, tensors: list[Tensor]) -> int:
        first: dict[bytes, Tensor] = {}
        changed = 0
        for tensor in tensors:
            assert tensor.data is not None
            flat = tensor.data.ravel(order="K")      # as it lies in memory: transposed weights are not copied
            # A sample tells almost all apart, so that large weights are not read just to be found different.
            kept = first.setdefault(flat[::max(1, flat.size // SAMPLE)].tobytes(), tensor)
            assert kept.data is not None
            if kept is not tensor and kept.extras == tensor.extras and np.array_equal(kept.data, tensor.data):
                graph.replace_uses(tensor, kept)
                changed += 1
        return changed


def _key(node: Node) -> Any:
    """What tells one computation from another."""
    return node.op, tuple(map(_content, node.inputs)), tuple((t.type, t.quantization) for t in node.outputs)


def _content(tensor: Tensor | None) -> Any:
    """What tells one input from another."""
    if tensor is None or tensor.data is None or tensor.data.nbytes > SMALL:
        return id(tensor)
    return tensor.type, tensor.quantization, tensor.data.tobytes()
