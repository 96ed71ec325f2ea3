"""SiLU as GELU, which an NPU has as one table: x * sigmoid(x) is nearly k * gelu(x / k).

No number changes: only scales do. Where values between convolutions are called k times smaller than they are, the
convolutions before and behind are called that much weaker or stronger, and compute the same integers.
Of a YOLOv8n trained for 18 classes, on 8 pictures, the boxes' outputs go from 26.3, 26.9 and 24.1 dB against the float
model to 24.1, 25.5 and 23.4; with k of 1.65 or 1.75 to 1 to 2 dB less, the smallest boxes excepted.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from vitrify import ops
from vitrify.ir import DType, Exactness, Graph, Model, Node, Operator, Quantization, Tensor
from vitrify.passes.graphs import sweep
from vitrify.passes.targets.catalogue import fix

FACTOR = 1.702
"""k. Source: D. Hendrycks and K. Gimpel, Gaussian error linear units (2016), section 2."""
_KEEPING: tuple[type[Operator], ...] = (
    ops.Abs, ops.Add, ops.AddN, ops.AveragePool2D, ops.BatchToSpaceND, ops.BroadcastTo, ops.Concatenation,
    ops.DepthToSpace, ops.ExpandDims, ops.Gather, ops.LeakyRelu, ops.Maximum, ops.MaxPool2D, ops.Mean, ops.Minimum,
    ops.MirrorPad, ops.Neg, ops.Pack, ops.Pad, ops.Prelu, ops.Quantize, ops.ReduceMax, ops.ReduceMin, ops.Relu,
    ops.Reshape, ops.ResizeBilinear, ops.ResizeNearestNeighbor, ops.ReverseV2, ops.Slice, ops.SpaceToBatchND,
    ops.SpaceToDepth, ops.Split, ops.SplitV, ops.Squeeze, ops.StridedSlice, ops.Sub, ops.Sum, ops.Tile, ops.Transpose,
    ops.Unpack)
"""k times larger inputs make k times larger outputs."""
_WEIGHTED: tuple[type[Operator], ...] = (ops.Conv2D, ops.DepthwiseConv2D, ops.FullyConnected, ops.TransposeConv)
_SCALABLE = (ops.Activation.NONE, ops.Activation.RELU)


@fix("silu-as-gelu", ops.Mul, whole=True, cheaper=True, exactness=Exactness.APPROXIMATE,
     says="computes x * sigmoid(x) as 1.702 * gelu(x / 1.702), with the factor in the scales of the weights",
     wins="GELU is a table that is part of the convolution before it; LOGISTIC and MUL are two passes over the values")
def silu_as_gelu(model: Model) -> int:
    """All of the main graph whose factor convolutions can take on both sides."""
    return sum(_Scaled(graph).run() for graph in model.graphs)


class _Scaled:
    """The values of a graph in groups that must share a factor, and which groups get one."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.root: dict[Tensor, Tensor] = {}
        self.fixed: set[Tensor] = set()
        self.products = {node: x for node in graph.nodes_of(ops.Mul) if (x := _silu(node)) is not None}
        self.gates = {_gate(node, x) for node, x in self.products.items()}

    def run(self) -> int:
        """Join, choose, rewrite, rescale; returns the SiLUs that became GELU."""
        for tensor in (*self.graph.inputs, *self.graph.outputs):
            self._fix(tensor)
        for node in self.graph:
            self._look(node)
        pinned = {self._find(tensor) for tensor in self.fixed}
        chosen = {node: x for node, x in self.products.items() if self._find(x) not in pinned}
        groups = {self._find(x) for x in chosen.values()}
        if not chosen:
            return 0
        scaled = {t for t in self.graph.tensors() if t.data is None and self._find(t) in groups}
        for node in list(self.graph):
            self._absorb(node, scaled)
        for tensor in scaled:
            tensor.quantization = _times(tensor.quantization, 1 / FACTOR)
        for node, x in chosen.items():
            gate = _gate(node, x).output
            self.graph.replace_node(node, ops.Gelu(), [x], origin=node.origin)
            sweep(self.graph, gate)
        return len(chosen)

    def _find(self, tensor: Tensor) -> Tensor:
        while (parent := self.root.get(tensor, tensor)) is not tensor:
            self.root[tensor] = self.root.get(parent, parent)
            tensor = parent
        return tensor

    def _join(self, tensors: list[Tensor]) -> None:
        for one, other in pairwise(tensors):
            self.root[self._find(one)] = self._find(other)

    def _fix(self, *tensors: Tensor) -> None:
        self.fixed.update(tensors)

    def _look(self, node: Node) -> None:
        """Say what a node asks of the factors of its values."""
        values = list(_values(node))
        if node in self.products:
            self._join([self.products[node], node.output])
        elif node in self.gates:
            return
        elif isinstance(node.op, _WEIGHTED):
            rule = node.op.int8
            constant = rule is not None and rule.weight is not None and node.input(rule.weight).data is not None
            if not constant or len(values) != 2:
                self._fix(*values)
            elif not _scalable(node.op):
                self._fix(node.output)
        elif isinstance(node.op, ops.Mul) and _scalable(node.op):
            self._look_at_product(node, values)
        elif isinstance(node.op, _KEEPING) and _scalable(node.op):
            self._join(values)
        else:
            self._fix(*values)

    def _look_at_product(self, node: Node, values: list[Tensor]) -> None:
        """A product has the factor of one of its inputs; the other, a gate or a constant, has none."""
        computed = [t for t in values if t is not node.output]
        gates = [t for t in computed if t.producer is not None and isinstance(t.producer.op, ops.Logistic)]
        if len(computed) == 2 and len(gates) == 1:
            self._fix(*gates)
            computed.remove(gates[0])
        if len(computed) == 1:
            self._join([computed[0], node.output])
        else:
            self._fix(*values)

    def _absorb(self, node: Node, scaled: set[Tensor]) -> None:
        """Give the constants of a node the scales with which it computes what it did."""
        if isinstance(node.op, _WEIGHTED):
            rule = node.op.int8
            assert rule is not None
            assert rule.weight is not None
            before = FACTOR if _value(node) in scaled else 1.0
            after = FACTOR if node.output in scaled else 1.0
            self._rescale(node, rule.weight, before / after)
            if rule.bias is not None:
                self._rescale(node, rule.bias, 1 / after)
        elif isinstance(node.op, _KEEPING) and node.outputs[0] in scaled:
            for index, tensor in enumerate(node.inputs):
                if tensor is not None and tensor.data is not None and tensor.quantization is not None:
                    self._rescale(node, index, 1 / FACTOR)

    def _rescale(self, node: Node, index: int, factor: float) -> None:
        tensor = node.optional(index)
        if tensor is None or tensor.data is None or factor == 1.0:
            return
        name = tensor.name if tensor.use_count == 1 else f"{tensor.name}/{node.name}"
        copy = Tensor(name, tensor.dtype, tensor.shape, data=tensor.data, origin=tensor.origin,
                      quantization=_times(tensor.quantization, factor))
        self.graph.set_input(node, index, copy)


def _scalable(op: Operator) -> bool:
    """True where a fused activation, if any, has no limit besides zero."""
    return getattr(op, "fused_activation_function", ops.Activation.NONE) in _SCALABLE


def _values(node: Node) -> Iterator[Tensor]:
    """The computed values that a node takes and gives, without indices and the like."""
    for tensor in (*node.inputs, *node.outputs):
        if tensor is not None and tensor.data is None and (tensor.quantization is not None or tensor.dtype.is_float):
            yield tensor


def _value(node: Node) -> Tensor | None:
    """The computed input of an operator with weights."""
    return next((t for t in node.inputs if t is not None and t.data is None), None)


def _silu(node: Node) -> Tensor | None:
    """x of x * sigmoid(x) in 8 bits."""
    assert isinstance(node.op, ops.Mul)
    if node.op.fused_activation_function is not ops.Activation.NONE or node.output.dtype is not DType.INT8:
        return None
    for one, other in (node.inputs, node.inputs[::-1]):
        maker = None if one is None else one.producer
        if one is not None and other is not None and other.data is None and maker is not None \
                and isinstance(maker.op, ops.Logistic) and maker.input(0) is other and one.use_count == 1 \
                and other.dtype is DType.INT8 and not one.is_output:
            return other
    return None


def _gate(node: Node, x: Tensor) -> Node:
    gate = node.input(1) if node.input(0) is x else node.input(0)
    assert gate.producer is not None
    return gate.producer


def _times(scales: Quantization | None, factor: float) -> Quantization | None:
    if scales is None:
        return None
    return Quantization((scales.scale * factor).astype(scales.scale.dtype), scales.zero_point, scales.axis)
