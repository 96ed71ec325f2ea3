"""Model, Graph, Node and Tensor: linked both ways, editable while walked.

Design rule: a link has two ends and both are kept by this module alone. Passes create, remove and redirect through
``Graph``; they never assign ``producer`` or touch the lists behind ``users``.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from operator import attrgetter
from typing import Any, NamedTuple, TypeVar

import numpy as np

from vitrify.ir.dtypes import DType
from vitrify.ir.interface import Interface
from vitrify.ir.operator import Operator
from vitrify.ir.origin import Origin
from vitrify.ir.quantization import Quantization

Array = np.ndarray[Any, np.dtype[Any]]
Op = TypeVar("Op", bound=Operator)

_RANK = attrgetter("_rank")
_STEP = 1 << 60      # between the ranks of neighbours, so that some 600 nodes find room at one place
_PARTS = 16


class TensorType(NamedTuple):
    """An element type and a static shape."""

    dtype: DType
    shape: tuple[int, ...]

    def __str__(self) -> str:
        return f"{self.dtype.label}[{','.join(map(str, self.shape))}]"


class Tensor:
    """Any value between nodes; a constant when it holds ``data``.

    ``shape_signature`` (with -1 for free dimensions) and ``extras`` (sparsity and the like, by schema name) are kept
    from a file and empty otherwise. ``data`` of a type numpy does not have is raw uint8 bytes.
    """

    __slots__ = ("_output_count", "_uses", "data", "dtype", "extras", "is_variable", "name", "origin", "producer",
                 "quantization", "shape", "shape_signature")

    def __init__(self, name: str, dtype: DType, shape: Sequence[int], *, data: Array | None = None,
                 quantization: Quantization | None = None, origin: Origin = Origin(),
                 is_variable: bool = False) -> None:
        self.name = name
        self.dtype = dtype
        self.shape: tuple[int, ...] = tuple(int(d) for d in shape)
        self.data = np.asarray(data) if isinstance(data, np.generic) else data   # told apart by address in a file
        self.quantization = quantization
        self.origin = origin
        self.is_variable = is_variable
        self.shape_signature: tuple[int, ...] = ()
        self.extras: dict[str, Any] = {}
        self.producer: Node | None = None
        self._uses: dict[tuple[int, int], tuple[Node, int]] = {}
        self._output_count = 0

    @property
    def type(self) -> TensorType:
        """Element type and shape."""
        return TensorType(self.dtype, self.shape)

    @property
    def is_constant(self) -> bool:
        """True when the data is in the model."""
        return self.data is not None

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)      # exact: sizes in a hostile file overflow 64 bits

    @property
    def nbytes(self) -> int:
        """Bytes of the dense tensor (sub-byte types packed)."""
        return -(-self.size * self.dtype.bits // 8)

    @property
    def uses(self) -> list[tuple[Node, int]]:
        """The (node, input position) pairs that read this tensor; a copy, so editing while walking is safe."""
        return list(self._uses.values())

    @property
    def use_count(self) -> int:
        """The number of places that read this tensor."""
        return len(self._uses)

    def is_read_by(self, node: Node, index: int) -> bool:
        """True when the tensor knows that it is this input of this node."""
        return (id(node), index) in self._uses

    @property
    def users(self) -> list[Node]:
        """The nodes that read this tensor, each once."""
        return list(dict.fromkeys(node for node, _ in self._uses.values()))

    @property
    def is_output(self) -> bool:
        """True when the tensor is an output of its graph."""
        return self._output_count > 0

    @property
    def is_used(self) -> bool:
        """True when a node reads it or the graph gives it out."""
        return bool(self._uses) or self._output_count > 0

    def __repr__(self) -> str:
        return f"<{'const ' if self.is_constant else ''}{self.name}: {self.type}>"


class Node:
    """One use of an operator. Created by ``Graph.add`` only.

    ``name`` is what messages call it: the user's own node name where there is one.
    ``extras`` keeps what a file says besides (custom options, intermediates), by schema name.
    """

    __slots__ = ("_next", "_previous", "_rank", "extras", "graph", "inputs", "name", "op", "origin", "outputs")

    def __init__(self, op: Operator, inputs: tuple[Tensor | None, ...], outputs: tuple[Tensor, ...], name: str,
                 origin: Origin) -> None:
        self.op = op
        self.inputs = inputs
        self.outputs = outputs
        self.name = name
        self.origin = origin
        self.extras: dict[str, Any] = {}
        self.graph: Graph | None = None
        self._next: Node | None = None
        self._previous: Node | None = None
        self._rank = 0

    @property
    def output(self) -> Tensor:
        """The first output."""
        return self.outputs[0]

    def input(self, index: int) -> Tensor:
        """The input at ``index``; raises IndexError when it is absent or omitted."""
        found = self.inputs[index]
        if found is None:
            raise IndexError(f"{self} has no input {index}")
        return found

    def optional(self, index: int) -> Tensor | None:
        """The input at ``index``, None when absent or omitted."""
        return self.inputs[index] if index < len(self.inputs) else None

    def __repr__(self) -> str:
        return f"<{self.op.kind} '{self.name}'>"


class Graph:
    """One computation: inputs, outputs and nodes in an order in which they can run."""

    def __init__(self, name: str = "main") -> None:
        self.name = name
        self.inputs: list[Tensor] = []
        self._outputs: tuple[Tensor, ...] = ()
        self._first: Node | None = None
        self._last: Node | None = None
        self._count = 0
        self._by_kind: dict[type[Operator], dict[Node, None]] = {}

    # walking

    def __iter__(self) -> Iterator[Node]:
        """Walk the nodes in order. Nodes may be added and removed meanwhile; nodes added behind are visited."""
        node = self._first
        while node is not None:
            if node.graph is self:
                yield node
            node = node._next

    @property
    def nodes(self) -> list[Node]:
        """A copy of the nodes in order."""
        return list(self)

    def __len__(self) -> int:
        return self._count

    def nodes_of(self, *kinds: type[Operator]) -> list[Node]:
        """The nodes whose operator is one of ``kinds``, in order. Costs what they are, not what the graph is."""
        return self.in_order(node for kind, nodes in self._by_kind.items() if issubclass(kind, kinds) for node in nodes)

    def count(self, *kinds: type[Operator]) -> int:
        """The number of nodes whose operator is one of ``kinds``, without a walk."""
        return sum(len(nodes) for kind, nodes in self._by_kind.items() if issubclass(kind, kinds))

    @staticmethod
    def in_order(nodes: Iterable[Node]) -> list[Node]:
        """Nodes of one graph in its order, without a walk over the graph."""
        return sorted(nodes, key=_RANK)

    @property
    def outputs(self) -> tuple[Tensor, ...]:
        """The tensors the graph gives out."""
        return self._outputs

    def set_outputs(self, outputs: Iterable[Tensor]) -> None:
        """Replace the list of outputs."""
        for tensor in self._outputs:
            tensor._output_count -= 1
        self._outputs = tuple(outputs)
        for tensor in self._outputs:
            tensor._output_count += 1

    def tensors(self) -> list[Tensor]:
        """Every tensor that the graph holds, each once: inputs, then in order of the nodes, then outputs."""
        of_nodes = chain.from_iterable(node.inputs + node.outputs for node in self)
        seen: dict[Tensor | None, None] = dict.fromkeys(chain(self.inputs, of_nodes, self._outputs))
        return [tensor for tensor in seen if tensor is not None]

    # building

    def add(self, op: Operator, inputs: Sequence[Tensor | None], outputs: Sequence[Tensor] | None = None, *,
            name: str = "", origin: Origin | None = None, before: Node | None = None, after: Node | None = None,
            output_names: Sequence[str] = ()) -> Node:
        """Add a node at the end, or beside an existing one.

        Without ``outputs`` the operator's shape inference makes them, named ``output_names`` or after the node.
        """
        if outputs is None:
            types = op.infer(inputs)
            base = name or (inputs[0].name if inputs and inputs[0] is not None else op.kind)
            names = [*output_names, *(f"{base}_{op.kind.lower()}_{i}" if i else f"{base}_{op.kind.lower()}"
                                      for i in range(len(output_names), len(types)))]
            outputs = [Tensor(n, t.dtype, t.shape, origin=origin or Origin())
                       for n, t in zip(names, types, strict=False)]
        node = Node(op, tuple(inputs), tuple(outputs), name or outputs[0].name if outputs else name, origin or Origin())
        for tensor in node.outputs:
            if tensor.producer is not None:
                raise ValueError(f"{tensor!r} is already made by {tensor.producer!r}")
        for tensor in node.outputs:
            tensor.producer = node
        for index, used in enumerate(node.inputs):
            if used is not None:
                used._uses[(id(node), index)] = (node, index)
        self._link(node, before, after)
        return node

    def _link(self, node: Node, before: Node | None, after: Node | None) -> None:
        previous = after if after is not None else (before._previous if before is not None else self._last)
        following = before if before is not None else (after._next if after is not None else None)
        node.graph, node._previous, node._next = self, previous, following
        if previous is None:
            self._first = node
        else:
            previous._next = node
        if following is None:
            self._last = node
        else:
            following._previous = node
        self._count += 1
        self._by_kind.setdefault(type(node.op), {})[node] = None
        self._set_rank(node, behind=after is not None)

    def _set_rank(self, node: Node, behind: bool) -> None:
        """Give a new node a number between its neighbours'; all nodes get new ones where there is no room.

        Nodes are often added one after another before (or behind) the same node, so most of the room is left there.
        """
        previous, following = node._previous, node._next
        if following is None:
            node._rank = previous._rank + _STEP if previous is not None else 0
            return
        low = previous._rank if previous is not None else following._rank - _STEP
        room = following._rank - low
        if room > 1:
            part = max(1, room // _PARTS)
            node._rank = following._rank - part if behind else low + part
            return
        for number, one in enumerate(self):
            one._rank = number * _STEP

    # editing

    def remove(self, node: Node) -> None:
        """Remove a node whose outputs nobody uses.

        Raises:
            ValueError: an output is still used; names the users.
        """
        for tensor in node.outputs:
            if tensor.is_used:
                users = ", ".join(f"'{u.name}'" for u in tensor.users) or "the graph's outputs"
                raise ValueError(f"cannot remove '{node.name}': its output '{tensor.name}' is used by {users}")
        self._unlink(node)
        for index, used in enumerate(node.inputs):
            if used is not None:
                del used._uses[(id(node), index)]
        for tensor in node.outputs:
            tensor.producer = None
        node.graph = None      # its _next stays, so that a walk standing on it goes on

    def _unlink(self, node: Node) -> None:
        if node._previous is None:
            self._first = node._next
        else:
            node._previous._next = node._next
        if node._next is None:
            self._last = node._previous
        else:
            node._next._previous = node._previous
        self._count -= 1
        del self._by_kind[type(node.op)][node]

    def set_input(self, node: Node, index: int, tensor: Tensor | None) -> None:
        """Make ``node`` read ``tensor`` at ``index`` (appending when it is one past the end)."""
        inputs = list(node.inputs)
        if index == len(inputs):
            inputs.append(None)
        old = inputs[index]
        if old is not None:
            del old._uses[(id(node), index)]
        inputs[index] = tensor
        node.inputs = tuple(inputs)
        if tensor is not None:
            tensor._uses[(id(node), index)] = (node, index)

    def set_inputs(self, node: Node, inputs: Sequence[Tensor | None]) -> None:
        """Replace all inputs of ``node``."""
        for index, used in enumerate(node.inputs):
            if used is not None:
                del used._uses[(id(node), index)]
        node.inputs = tuple(inputs)
        for index, used in enumerate(node.inputs):
            if used is not None:
                used._uses[(id(node), index)] = (node, index)

    def replace_uses(self, old: Tensor, new: Tensor) -> None:
        """Make every user of ``old``, and the graph's outputs, use ``new`` instead.

        The name of a graph output moves with its place: the new tensor takes the old one's name unless it is an
        input, a constant, or an output already.
        """
        for node, index in old.uses:
            self.set_input(node, index, new)
        if old.is_output:
            if new.producer is not None and not new.is_output:
                old.name, new.name = new.name, old.name
                new.origin = old.origin if old.origin.sources else new.origin
            self.set_outputs(new if t is old else t for t in self._outputs)

    def replace_node(self, node: Node, op: Operator, inputs: Sequence[Tensor | None], *,
                     origin: Origin | None = None) -> Node:
        """Put another operator in the place of ``node``, keeping its output tensors, their names and users."""
        outputs = node.outputs
        for tensor in outputs:
            tensor.producer = None
        self._unlink(node)
        for index, used in enumerate(node.inputs):
            if used is not None:
                del used._uses[(id(node), index)]
        previous, following = node._previous, node._next
        node.graph = None
        return self.add(op, inputs, outputs, name=node.name, origin=origin or node.origin,
                        after=previous, before=following if previous is None else None)

    def sort(self) -> None:
        """Reorder the nodes so that each comes after what it reads, otherwise keeping their order.

        Raises:
            ValueError: the graph has a cycle; names some nodes on it.
        """
        nodes = self.nodes
        waiting = {id(n): len({id(t.producer) for t in n.inputs if t is not None and t.producer is not None
                               and t.producer.graph is self}) for n in nodes}
        position = {id(n): i for i, n in enumerate(nodes)}
        ready = [i for i, n in enumerate(nodes) if waiting[id(n)] == 0]
        ordered: list[Node] = []
        while ready:
            node = nodes[heapq.heappop(ready)]
            ordered.append(node)
            for user in dict.fromkeys(u for t in node.outputs for u in t.users):
                waiting[id(user)] -= 1
                if waiting[id(user)] == 0:
                    heapq.heappush(ready, position[id(user)])
        if len(ordered) != len(nodes):
            stuck = [n.name for n in nodes if waiting[id(n)] > 0][:5]
            raise ValueError(f"the graph '{self.name}' has a cycle through {', '.join(map(repr, stuck))}")
        self._first = self._last = None
        self._count = 0
        self._by_kind = {}
        for node in ordered:
            self._link(node, None, None)

    def remove_dead(self, keep: Callable[[Node], bool] = lambda node: False) -> int:
        """Remove nodes whose outputs nobody uses, from the end backwards; returns how many."""
        removed = 0
        for node in reversed(self.nodes):
            if node.outputs and not any(t.is_used for t in node.outputs) and not keep(node):
                self.remove(node)
                removed += 1
        return removed

    def __repr__(self) -> str:
        return f"<Graph '{self.name}': {len(self)} nodes>"


@dataclass
class Signature:
    """A named entry point of a TFLite model: names of inputs and outputs, as positions in the graph's lists."""

    key: str
    graph: int
    inputs: dict[str, int]
    outputs: dict[str, int]


@dataclass
class Model:
    """A file's content: graphs (the first is the main one), signatures and metadata.

    ``interface`` says how the source model's inputs and outputs are made up; None when nothing was recorded.
    ``extras`` keeps what a file says besides, by schema name.
    """

    graphs: list[Graph] = field(default_factory=list)
    signatures: list[Signature] = field(default_factory=list)
    metadata: dict[str, bytes] = field(default_factory=dict)
    description: str = ""
    interface: Interface | None = None
    source: str = ""
    extras: dict[str, Any] = field(default_factory=dict)

    @property
    def main(self) -> Graph:
        """The graph that runs when the model is invoked."""
        return self.graphs[0]
