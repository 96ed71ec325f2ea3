"""The choice among boxes at the end of a detector, cut off and described for the application that makes it."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np

from vitrify import ops
from vitrify.ir import Graph, Model, Node, Tensor
from vitrify.passes.targets.catalogue import fix
from vitrify.passes.targets.codes import FLOAT, UNSUPPORTED

APPLICATION = "vitrify.application"
"""The file's entry that says what is left to the application."""
_KINDS = frozenset({"TFLite_Detection_PostProcess", "NON_MAX_SUPPRESSION_V4", "NON_MAX_SUPPRESSION_V5"})


@fix("detection-heads", mends=(*UNSUPPORTED, *FLOAT, "vip8000.custom-operator"), whole=True,
     asked=True, cuts=True,
     says="ends the file before it decodes and suppresses boxes; the entry 'vitrify.application' of its metadata lists "
     "these operators with their options, anchors and thresholds, and the scales of what they take",
     wins="no operator of the CPU behind the NPU; the application chooses among boxes, as it likes")
def detection_heads(model: Model) -> int:
    """What they take becomes the outputs; other outputs stay."""
    graph = model.main
    heads = [node for node in graph if node.op.kind in _KINDS]
    if not heads or model.interface is not None:
        return 0
    behind = _behind(graph, heads)
    inside = set(behind)
    sources = list(dict.fromkeys(t for node in behind for t in node.inputs if t is not None and t.data is None
                                 and t.producer not in inside))
    if any(t.producer is None for t in sources):
        return 0
    before = graph.outputs
    kept = [t for t in before if t.producer not in inside]
    model.metadata[APPLICATION] = msgspec.json.encode([_described(node) for node in behind])
    after = list(dict.fromkeys([*kept, *sources]))
    graph.set_outputs(after)
    for signature in (s for s in model.signatures if s.graph == 0):
        names = {before[position]: name for name, position in signature.outputs.items()}
        signature.outputs.clear()
        signature.outputs |= {names.get(t, t.name): i for i, t in enumerate(after)}
    model.extras.pop("tensors", None)
    for node in reversed(behind):
        graph.remove(node)
    return len(behind)


def _behind(graph: Graph, heads: list[Node]) -> list[Node]:
    """The heads, all that their results reach, and what makes floats for them alone, in order."""
    found = set(heads)
    for node in graph:
        if any(t is not None and t.producer in found for t in node.inputs):
            found.add(node)
    found |= {node for node in graph.nodes_of(ops.Dequantize) if node.output.users and node.output not in graph.outputs
              and found.issuperset(node.output.users)}
    return [node for node in graph if node in found]


def _described(node: Node) -> dict[str, Any]:
    return {"operator": node.op.kind, "name": node.name, "options": _options(node),
            "inputs": [None if t is None else _tensor(t) for t in node.inputs],
            "outputs": [t.name for t in node.outputs]}


def _options(node: Node) -> dict[str, Any]:
    if not isinstance(node.op, ops.Custom):
        return {}
    from flatbuffers import flexbuffers

    try:
        found = flexbuffers.Loads(node.op.custom_options)
    except (ValueError, IndexError, TypeError):      # whatever else the options are
        return {"bytes": node.op.custom_options.hex()}
    return dict(found) if isinstance(found, dict) else {"value": found}


def _tensor(tensor: Tensor) -> dict[str, Any]:
    found: dict[str, Any] = {"name": tensor.name, "shape": list(tensor.shape), "type": tensor.dtype.label}
    if tensor.quantization is not None:
        found["scale"] = [float(value) for value in tensor.quantization.scale]
        found["zero_point"] = [int(value) for value in tensor.quantization.zero_point]
    if tensor.data is not None:
        found["values"] = np.asarray(tensor.data).tolist()
    return found
