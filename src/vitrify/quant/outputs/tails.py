"""Tails: what lies between the last layers with weights and the outputs, and could be computed behind the file.

Decoding boxes, choosing the best of them, turning an angle into a rotation: arithmetic, moves and choices that only the
outputs depend on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from vitrify import ops
from vitrify.ir import DType, Graph, Node, Operator, Tensor
from vitrify.quant.rules import has_kernel, is_real, makes_real, touches_reals

ARITHMETIC: tuple[type[Operator], ...] = (
    ops.Add, ops.Sub, ops.Mul, ops.Div, ops.Neg, ops.Abs, ops.Exp, ops.Log, ops.Sqrt, ops.Rsqrt, ops.Square,
    ops.SquaredDifference, ops.Pow, ops.Sin, ops.Cos, ops.Atan2, ops.Floor, ops.Ceil, ops.Round, ops.Sign, ops.FloorDiv,
    ops.FloorMod, ops.Maximum, ops.Minimum, ops.Cast, ops.Select, ops.SelectV2, ops.Less, ops.LessEqual, ops.Greater,
    ops.GreaterEqual, ops.Equal, ops.NotEqual, ops.LogicalAnd, ops.LogicalOr, ops.LogicalNot)
CHOICES: tuple[type[Operator], ...] = (
    ops.TopKV2, ops.ArgMax, ops.ArgMin, ops.ReduceMax, ops.ReduceMin, ops.Gather, ops.GatherND, ops.OneHot,
    ops.NonMaxSuppressionV4, ops.NonMaxSuppressionV5)
MOVES: tuple[type[Operator], ...] = (
    ops.Concatenation, ops.Pack, ops.Unpack, ops.Reshape, ops.Transpose, ops.Squeeze, ops.ExpandDims, ops.Slice,
    ops.StridedSlice, ops.Split, ops.SplitV, ops.Tile, ops.BroadcastTo)

LAYERS: tuple[type[Operator], ...] = (ops.Conv2D, ops.DepthwiseConv2D, ops.FullyConnected)

LARGEST_CUT = 16
"""The tensors at a cut may hold this many times the values of the outputs that they make: four times the bytes, as they
are int8 in the place of floats. A detector of one class gives 64 values for the box in the place of 4."""

FEW_WEIGHTS = 256
"""A mean over choices, as DFL takes of 16 distances, has as many weights as choices."""

GIVEN = (DType.FLOAT32, DType.INT32, DType.BOOL)
"""What a file can give out in the place of an output."""


@dataclass(frozen=True)
class Tail:
    """The nodes that make ``outputs`` from ``sources`` by arithmetic, choices and moves alone, in order."""

    outputs: tuple[Tensor, ...]
    nodes: tuple[Node, ...]
    sources: tuple[Tensor, ...]

    @property
    def computes(self) -> bool:
        """True when it holds arithmetic or choices, not only moves."""
        return any(not isinstance(n.op, MOVES) for n in self.nodes)

    @property
    def is_movable(self) -> bool:
        """True when the graph can give out the sources instead."""
        return bool(self.sources) and all(t.producer is not None and t.dtype in GIVEN for t in self.sources)

    @property
    def is_light(self) -> bool:
        """True when the sources are not much more to give out than the outputs, or all of them is what is chosen from.
        """
        return any(isinstance(n.op, CHOICES) for n in self.nodes) or \
            sum(t.size for t in self.sources) <= LARGEST_CUT * sum(t.size for t in self.outputs)

    @property
    def unquantizable(self) -> tuple[Node, ...]:
        """The nodes that have no int8 kernel; a table in the place of one costs the file more than the host."""
        return tuple(n for n in self.nodes if touches_reals(n) and not has_kernel(n))

    @property
    def discrete(self) -> tuple[Node, ...]:
        """The nodes that turn class numbers or indices into reals: a scale would blur them."""
        return tuple(n for n in self.nodes if makes_real(n) or (isinstance(n.op, ops.Cast) and n in self.unquantizable))


def find_tails(graph: Graph) -> list[Tail]:
    """Collect what only outputs depend on, as far back as arithmetic, choices and moves reach; connected nodes in one.
    """
    inside: dict[Node, None] = {}
    given = set(graph.outputs)
    for node in reversed(graph.nodes):
        wanted = isinstance(node.op, ARITHMETIC + CHOICES + MOVES) or _takes_mean(node) or _is_choice(node, inside)
        if wanted and _serves_only(node, given, inside):
            inside[node] = None
    nodes = [n for n in graph if n in inside]
    parts = _connected(nodes)
    return [_tail(graph, [n for n in nodes if n in part]) for part in parts]


def _serves_only(node: Node, given: set[Tensor], inside: Mapping[Node, None]) -> bool:
    used = [t for t in node.outputs if t.is_used]
    return bool(used) and all((t in given or bool(t.users)) and all(u in inside for u in t.users) for t in used)


def _takes_mean(node: Node) -> bool:
    """True for a layer that takes the mean over the shares of a softmax: 256 steps of a share are too few for it."""
    if not isinstance(node.op, ops.Conv2D | ops.FullyConnected) or not node.input(1).is_constant:
        return False
    weights, tensor = node.input(1), node.input(0)
    if weights.shape[0] != 1 or weights.size > FEW_WEIGHTS or weights.size != weights.shape[-1]:
        return False
    while tensor.producer is not None and isinstance(tensor.producer.op, ops.Transpose | ops.Reshape):
        tensor = tensor.producer.input(0)
    return tensor.producer is not None and isinstance(tensor.producer.op, ops.Softmax)


def _is_choice(node: Node, inside: Mapping[Node, None]) -> bool:
    """True for a softmax whose mean the host takes."""
    if not isinstance(node.op, ops.Softmax):
        return False
    waiting = list(node.output.users)
    while waiting:
        user = waiting.pop()
        if user in inside and _takes_mean(user):
            return True
        if user in inside and isinstance(user.op, ops.Transpose | ops.Reshape):
            waiting += user.output.users
    return False


def _connected(nodes: list[Node]) -> list[set[Node]]:
    """Sort nodes into those that read what others of them make."""
    home: dict[Node, set[Node]] = {}
    for node in nodes:
        mine = {node}
        for tensor in node.inputs:
            made = tensor.producer if tensor is not None else None
            if made is not None and made in home and home[made] is not mine:
                mine |= home[made]
        for member in mine:
            home[member] = mine
    return list({id(part): part for part in home.values()}.values())


def _tail(graph: Graph, nodes: list[Node]) -> Tail:
    made = {t for n in nodes for t in n.outputs}
    read = [t for n in nodes for t in n.inputs if t is not None and not t.is_constant and t not in made]
    return Tail(tuple(t for t in dict.fromkeys(graph.outputs) if t in made), tuple(nodes), tuple(dict.fromkeys(read)))


def must_leave(tail: Tail) -> bool:
    """True for a tail that int8 cannot hold at all, whatever its values, and that the host can compute."""
    return tail.is_movable and bool(tail.unquantizable or tail.discrete)


def leaving(graph: Graph) -> set[Node]:
    """The nodes that go to the host whatever calibration sees."""
    return {node for tail in find_tails(graph) if must_leave(tail) for node in tail.nodes}


def exacting(tail: Tail) -> set[Node]:
    """The layers whose outputs a tail computes with, rather than moving them or choosing among them.

    A box is a few steps of 8 bits from the next: what is multiplied by a stride of 32 pixels has to be finer.
    """
    computed: set[Tensor] = set()
    for node in reversed(tail.nodes):
        if not isinstance(node.op, MOVES + CHOICES) or any(t in computed for t in node.outputs):
            computed |= {t for t in node.inputs if t is not None}
    return {n for t in tail.sources if t in computed and is_real(t) for n in _layer_of(t)}


def _layer_of(tensor: Tensor) -> list[Node]:
    """The layer that makes a tensor, with what cuts or turns its output on the way; nothing where there is none."""
    found: list[Node] = []
    node = tensor.producer
    while node is not None and isinstance(node.op, MOVES):
        sources = [t for t in node.inputs if is_real(t) and t is not None]
        if len(sources) != 1:
            return []
        found.append(node)
        node = sources[0].producer
    return [*found, node] if node is not None and isinstance(node.op, LAYERS) else []
