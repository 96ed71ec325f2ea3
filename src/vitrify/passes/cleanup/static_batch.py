"""Free dimensions."""

from __future__ import annotations

from vitrify.core.errors import VitrifyError
from vitrify.ir import Graph, Node
from vitrify.passes.base import Pass


class PinFreeDimensions(Pass):
    """Pin the dimensions that a file leaves free to the extents that it gives as defaults (batch 1).

    Before:  %x: int8[1,4,4,8] with signature [-1,4,4,8]
    After:   %x: int8[1,4,4,8]
    A dimension that depends on values, as of a SLICE with a computed size, stays free: runtimes size it in every run.
    """

    name = "pin-free-dimensions"

    def run(self, graph: Graph) -> int:
        """Forget the signatures of what is fixed; returns the number of inputs, and of values fixed later."""
        pinned = []
        for tensor in graph.inputs:
            if -1 in tensor.shape_signature:
                pinned.append(f"'{tensor.name}' {_shown(tensor.shape_signature)} -> {_shown(tensor.shape)}")
                tensor.shape_signature = ()
        later = 0
        for node in graph:
            free = [tensor for tensor in node.outputs if -1 in tensor.shape_signature]
            if free and not _depends_on_values(node):
                later += 1
                for tensor in free:
                    tensor.shape_signature = ()
        if pinned:
            self.note = "pinned " + ", ".join(pinned)
        return len(pinned) or later


def _depends_on_values(node: Node) -> bool:
    """True when the shape of an output is known at run time only."""
    if any(t is not None and -1 in t.shape_signature for t in node.inputs):
        return True
    try:
        node.op.infer(node.inputs)
    except VitrifyError as error:
        return any(finding.code == "ops.dynamic" for finding in error.findings)
    return False


def _shown(shape: tuple[int, ...]) -> str:
    return f"[{','.join(map(str, shape))}]"
