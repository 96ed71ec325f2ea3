"""What a lowering works with: the values so far, and helpers that put operators into the graph.

A value is an array as long as it is known now (in ONNX's own element type, so that int64 arithmetic is exact) and a
tensor of the graph otherwise. Lowerings ask for one or the other; an array becomes a constant tensor when it is needed.
"""

from __future__ import annotations

import zlib
from collections import defaultdict
from collections.abc import MutableMapping, Sequence
from typing import Any

import numpy as np

import vitrify.ops as ops
from vitrify.core.errors import UnsupportedError
from vitrify.core.findings import Finding
from vitrify.importers.onnx.budget import Budget
from vitrify.importers.onnx.bundles import Absent, Bundle
from vitrify.importers.onnx.elements import graph_dtype
from vitrify.importers.onnx.rules import MOST_ELEMENTS, too_large
from vitrify.importers.onnx.source import Array, SourceNode
from vitrify.ir import DType, Graph, Operator, Origin, Quantization, Source, Tensor
from vitrify.ops.plain import wider

Value = Tensor | Array
LARGE_BYTES = 2**16
"""Constants above this are the same when they lie in the same place: to compare their content is to read them all."""


class Poison:
    """The value of a node that could not be lowered; its readers are skipped, so that later problems are found too."""


POISON = Poison()


class Context:
    """The graph under construction, the values by name, and the node being lowered."""

    def __init__(self, graph: Graph, opset: int) -> None:
        self.graph = graph
        self.opset = opset
        self.values: MutableMapping[str, Value | Poison | Bundle | Absent] = {}
        self.budget = Budget()  # what may be computed from constants
        self.unrolled = 0  # nodes that the rounds of loops have made so far
        self.unrolled_elements = 0  # of the constants that those rounds gave out
        self.declared: dict[str, str] = {}  # the element types of the graph's inputs, as the file has them
        self.findings: list[Finding] = []
        self.steps: dict[str, Quantization] = {}  # the scales that constants were stored with, by ONNX name
        self.node: SourceNode | None = None
        self._constants: defaultdict[tuple[Any, ...], list[Tensor]] = defaultdict(list)
        self._named: dict[int, str] = {}  # id of an array -> its ONNX name
        self._alive: list[Array] = []  # keeps those ids valid
        self._other: dict[tuple[Tensor, bool], Tensor] = {}  # the same tensor channel-last (True) or channel-first
        self._made: set[Tensor] = set()  # made for the present node, not yet bound to a name
        self._counts: dict[str, int] = {}

    def begin(self, node: SourceNode) -> None:
        """Start on a node: what is emitted from now on comes from it."""
        self.node = node
        self._made.clear()

    # reading

    def present(self, node: SourceNode, index: int) -> bool:
        """True when the optional input at ``index`` is given."""
        return index < len(node.inputs) and node.inputs[index] != ""

    def value(self, node: SourceNode, index: int) -> Value:
        """The input at ``index``, as array or tensor."""
        if not self.present(node, index):
            raise node.problem(f"input {index} is missing; the node has {len(node.inputs)}")
        found = self.values[node.inputs[index]]
        if isinstance(found, Poison):
            raise node.problem(f"input {index} could not be made")
        if isinstance(found, Bundle | Absent):
            raise node.problem(f"input {index} is a sequence or an optional; a tensor is taken")
        return found

    def array(self, node: SourceNode, index: int) -> Array | None:
        """The input at ``index`` when it is known now; None when it is absent or computed at run time."""
        found = self.value(node, index) if self.present(node, index) else None
        return found if isinstance(found, np.ndarray) else None

    def known(self, node: SourceNode, index: int, what: str) -> Array:
        """The input at ``index``, which must be known now."""
        found = self.value(node, index)
        if isinstance(found, Tensor):
            raise node.unsupported(
                f"{what} (input '{node.inputs[index]}') is computed at run time; only a constant is taken"
            )
        return found

    def tensor(self, node: SourceNode, index: int) -> Tensor:
        """The input at ``index`` as a tensor of the graph."""
        found = self.value(node, index)
        return self.constant(found, node.inputs[index]) if isinstance(found, np.ndarray) else found

    # writing

    def constant(self, array: Array, name: str = "") -> Tensor:
        """A constant tensor; the same data given again is the same tensor. Large data stays the view that it is."""
        wanted = graph_dtype(array.dtype.name)
        name = name or self._named.get(id(array), "")
        if wanted.numpy != array.dtype:
            array = self._narrowed(array, wanted, name)
        if array.nbytes > LARGE_BYTES:
            where = array.__array_interface__["data"][0], array.strides
            alike = self._constants[(wanted, array.shape, where)]
            if alike:
                return alike[0]
        else:
            array = np.ascontiguousarray(array).reshape(array.shape)
            alike = self._constants[(wanted, array.shape, zlib.crc32(array.data))]
            for known in alike:
                if known.data is not None and known.data.tobytes() == array.tobytes():
                    return known
        origin = Origin.of(name) if name else self._origin
        tensor = Tensor(self._fresh(name or f"{self._base}/const"), wanted, array.shape, data=array, origin=origin)
        alike.append(tensor)
        return tensor

    def _narrowed(self, array: Array, wanted: DType, name: str) -> Array:
        numpy_type = wanted.numpy
        assert numpy_type is not None
        if wanted is DType.INT32 and array.size and (array.max() > 2**31 - 1 or array.min() < -(2**31)):
            raise UnsupportedError(
                Finding(
                    code="onnx.int64",
                    headline=f"constant '{name or self._base}' holds "
                    f"{array.flat[np.abs(array.astype(np.float64)).argmax()]}, beyond int32",
                    where=f"tensor '{name or self._base}'",
                    why="integers at run time are int32",
                )
            )
        with np.errstate(over="ignore"):
            return array.astype(numpy_type)

    def emit_all(
        self, op: Operator, inputs: Sequence[Tensor | Array | None], *, aside: bool = False
    ) -> tuple[Tensor, ...]:
        """Add an operator and return its outputs; ``aside`` marks a helper, which leaves the node's name to others.

        Where the operator has no kernel for its inputs' element type, it computes in a wider one between two CASTs.
        """
        tensors = [self.constant(i) if isinstance(i, np.ndarray) else i for i in inputs]
        if op.plain is not None:
            data = tensors[op.data]
            if data is not None and data.dtype not in op.plain and data.quantization is None:
                return self._emit_wider(op, op.plain, tensors, aside)
        label = self.node.label if self.node else op.kind
        named = not aside and self._counts.setdefault(f"node {label}", 0) == 0
        if named:
            self._counts[f"node {label}"] = 1
        added = self.graph.add(
            op, tensors, name=label if named else self._fresh(f"{label}/{op.kind.lower()}"), origin=self._origin
        )
        for tensor in added.outputs:
            if tensor.size > MOST_ELEMENTS and self.node is not None:
                raise too_large(self.node, tensor.shape)
        self._made.update(added.outputs)
        for tensor in added.outputs:
            tensor.name = self._fresh(f"{self._base}/{op.kind.lower()}")
        return added.outputs

    def _emit_wider(
        self, op: Operator, taken: frozenset[DType], tensors: Sequence[Tensor | None], aside: bool
    ) -> tuple[Tensor, ...]:
        """The operator in an element type that its kernel takes; what comes back wraps as small integers do."""
        data = tensors[op.data]
        assert data is not None
        narrow, wide = data.dtype, wider(data.dtype, taken)
        if wide is None:
            assert self.node is not None
            raise self.node.unsupported(
                f"{op.kind} takes {', '.join(sorted(t.label for t in taken))}; it is given {data.type}",
                "compute this part in float32 or int32",
            )
        wanted = op.infer(tensors)
        inputs = [t if t is None or t.dtype is not narrow else self.cast(t, wide) for t in tensors]
        made = self.emit_all(op, inputs, aside=aside)
        return tuple(
            t if t.dtype is own.dtype or own.dtype is not narrow else self.cast(t, narrow)
            for t, own in zip(made, wanted, strict=True)
        )

    def cast(self, x: Tensor, dtype: DType) -> Tensor:
        """``x`` in another element type; constants at once."""
        if x.dtype is dtype:
            return x
        if x.data is not None and x.quantization is None and dtype.numpy is not None:
            return self.constant(x.data.astype(dtype.numpy))
        op = ops.Cast(in_data_type=x.dtype.value, out_data_type=dtype.value)
        return self.emit(op, [x], aside=True)

    def emit(self, op: Operator, inputs: Sequence[Tensor | Array | None], *, aside: bool = False) -> Tensor:
        """Add an operator and return its only output."""
        return self.emit_all(op, inputs, aside=aside)[0]

    def bind(self, node: SourceNode, *results: Value) -> None:
        """Give the node's outputs their values; tensors made for it take the ONNX names."""
        for name, result in zip(node.outputs, results, strict=False):
            if not name:
                continue
            if isinstance(result, Tensor) and result in self._made:
                self._name(result, name)
            self.values[name] = result
        for name in node.outputs[len(results) :]:
            if name:
                self.values[name] = POISON

    def _name(self, result: Tensor, name: str) -> None:
        """Name a new tensor and its channel-last form after the value that both hold.

        The channel-last form takes the name itself: it is the one that stays when transposes have cancelled out.
        """
        self._made.discard(result)
        result.origin = Origin.of(name)
        twin = self._other.get((result, True))
        if twin not in self._made or twin is None:
            result.name = name
            return
        result.name = self._fresh(f"{name}/channel_first")
        self._name(twin, name)

    def claim_name(self, tensor: Tensor, name: str) -> None:
        """Give ``name`` to ``tensor``, taking it from its channel-last form."""
        twin = self._other.get((tensor, True))
        if twin is not None and twin.name == name:
            twin.name = self._fresh(f"{name}/channel_last")
        tensor.name, tensor.origin = name, Origin.of(name)

    def remember(self, name: str, array: Array) -> None:
        """Let constants made of ``array`` carry its ONNX name."""
        self._named[id(array)] = name
        self._alive.append(array)

    @property
    def _base(self) -> str:
        return next((o for o in self.node.outputs if o), self.node.label) if self.node else "vitrify"

    @property
    def _origin(self) -> Origin:
        nodes = (self.node.group or (self.node,)) if self.node else ()
        return Origin(tuple(Source(node.label, node.outermost.kind) for node in nodes))

    def _fresh(self, name: str) -> str:
        count = self._counts[name] = self._counts.get(name, -1) + 1
        return f"{name}_{count}" if count else name

    # shapes and layouts

    def reshape(self, x: Tensor, shape: Sequence[int]) -> Tensor:
        """``x`` with another shape of as many elements."""
        wanted = tuple(int(d) for d in shape)
        if wanted == x.shape:
            return x
        if x.data is not None:
            return self.constant(x.data.reshape(wanted))
        return self.emit(ops.Reshape(new_shape=wanted), [x, np.array(wanted, np.int32)], aside=True)

    def transpose(self, x: Tensor, perm: Sequence[int]) -> Tensor:
        """``x`` with its axes permuted as numpy does."""
        if tuple(perm) == tuple(range(len(perm))):
            return x
        if x.data is not None:
            return self.constant(x.data.transpose(perm))
        return self.emit(ops.Transpose(), [x, np.array(perm, np.int32)], aside=True)

    def channel_last(self, x: Tensor) -> Tensor:
        """NC... as N...C; the tensor that ``x`` was made from when it is channel-last already."""
        return self._relayout(x, True, (0, *range(2, len(x.shape)), 1))

    def channel_first(self, x: Tensor) -> Tensor:
        """N...C as NC..."""
        return self._relayout(x, False, (0, len(x.shape) - 1, *range(1, len(x.shape) - 1)))

    def _relayout(self, x: Tensor, last: bool, perm: tuple[int, ...]) -> Tensor:
        known = self._other.get((x, last))
        if known is None:
            known = self.transpose(x, perm)
            self._other[(x, last)] = known
            self._other[(known, not last)] = x
        return known

    def as_picture(self, x: Tensor) -> Tensor:
        """Channel-first of rank 3 or 4 as NHWC, with height 1 where there is only a width."""
        y = self.channel_last(x)
        if len(y.shape) != 3:
            return y
        key = (y, True)
        if key not in self._other:
            n, w, c = y.shape
            self._other[key] = self.reshape(y, (n, 1, w, c))
        return self._other[key]

    def from_picture(self, x: Tensor, rank: int) -> Tensor:
        """NHWC as channel-first of ``rank``: the inverse of ``as_picture``."""
        if rank == 4:
            return self.channel_first(x)
        n, _, w, c = x.shape
        flat = self.reshape(x, (n, w, c))
        self._other[(flat, True)] = x
        return self.channel_first(flat)
