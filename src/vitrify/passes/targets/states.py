"""Variables of a streaming model as inputs and outputs, for NPUs that hold none."""

from __future__ import annotations

import numpy as np

from vitrify import ops
from vitrify.ir import Graph, Model, Node, Tensor
from vitrify.passes.targets.catalogue import fix


@fix("state-ports", mends=("ethos-u.unsupported-operator",), whole=True, asked=True,
     says="makes each variable an input and an output: who runs the model hands the state on, and starts with zeros",
     wins="a streaming model that runs on the NPU in one call; the small cores hold no variables")
def state_ports(model: Model) -> int:
    """All variables, or none: each read once before it is assigned once, and starting at zero."""
    graph = model.main
    handles = {node.output: node for node in graph.nodes_of(ops.VarHandle)}
    starts = graph.nodes_of(ops.CallOnce)
    if not handles or len(starts) > 1 or model.interface is not None:
        return 0
    pairs = [_pair(graph, handle) for handle in handles]
    initial = _initial(model, starts[0]) if starts else {}
    for node, pair in zip(handles.values(), pairs, strict=True):
        if pair is None or not _is_zero(initial.get(_name(node)), pair[0].output):
            return 0
    for node, pair in zip(handles.values(), pairs, strict=True):
        if pair is not None:
            _open(model, node, *pair)
    for start in starts:
        _drop_start(model, start)
    return len(handles)


def _name(handle: Node) -> str:
    assert isinstance(handle.op, ops.VarHandle)
    return handle.op.shared_name or ""


def _pair(graph: Graph, handle: Tensor) -> tuple[Node, Node] | None:
    """The node that reads a variable and the one that assigns it, None where there are others or another order."""
    users = Graph.in_order(handle.users)
    if len(users) != 2 or not isinstance(users[0].op, ops.ReadVariable) \
            or not isinstance(users[1].op, ops.AssignVariable):
        return None
    value = users[1].input(1)
    return (users[0], users[1]) if value.producer is not None and value.type == users[0].output.type \
        and value.quantization == users[0].output.quantization else None


def _initial(model: Model, start: Node) -> dict[str, Tensor]:
    """What the graph that runs once assigns, by variable."""
    assert isinstance(start.op, ops.CallOnce)
    once = model.graphs[start.op.init_subgraph_index]
    return {_name(producer): node.input(1) for node in once.nodes_of(ops.AssignVariable)
            if (producer := node.input(0).producer) is not None and isinstance(producer.op, ops.VarHandle)}


def _is_zero(value: Tensor | None, state: Tensor) -> bool:
    """True for a constant that stands for real zeros."""
    if value is None or value.data is None or state.quantization is None or state.quantization.is_per_axis:
        return False
    return bool((np.asarray(value.data) == state.quantization.zero_point[0]).all())


def _open(model: Model, handle: Node, read: Node, assign: Node) -> None:
    graph, old, value = model.main, read.output, assign.input(1)
    given = Tensor(f"{_name(handle)}/before", old.dtype, old.shape, quantization=old.quantization, origin=old.origin)
    graph.inputs.append(given)
    graph.replace_uses(old, given)
    graph.set_outputs([*graph.outputs, value])
    for signature in (s for s in model.signatures if s.graph == 0):
        signature.inputs[given.name] = len(graph.inputs) - 1
        signature.outputs[f"{_name(handle)}/after"] = len(graph.outputs) - 1
    for node in (assign, read, handle):
        graph.remove(node)


def _drop_start(model: Model, start: Node) -> None:
    """Remove the call, and its graph where nothing else can refer to it."""
    assert isinstance(start.op, ops.CallOnce)
    index = start.op.init_subgraph_index
    model.main.remove(start)
    if index == len(model.graphs) - 1 and index > 0 and all(s.graph != index for s in model.signatures):
        model.graphs.pop()
        model.extras.pop("tensors", None)
