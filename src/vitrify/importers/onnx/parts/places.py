"""Arithmetic on tensors for lowerings that compute where something lies: indices, coordinates, weights.

Everything made here is a helper of the node being lowered. Operands are tensors or arrays; a constant expression must
be computed by the caller, in numpy.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

import vitrify.ops as ops
from vitrify.importers.onnx.context import Context, Value
from vitrify.importers.onnx.source import Array, SourceNode
from vitrify.ir import DType, Operator, Tensor

MAX_GATHERED = 2**28
"""Elements of the largest tensor that a lowering makes on the way to a smaller result."""
_KEEPS_VALUES = (
    ops.Reshape,
    ops.Transpose,
    ops.Slice,
    ops.StridedSlice,
    ops.Tile,
    ops.BroadcastTo,
    ops.Squeeze,
    ops.ExpandDims,
    ops.Gather,
    ops.GatherND,
    ops.Concatenation,
    ops.Split,
    ops.SplitV,
)
_KEEPS_SIGN = (
    ops.Add,
    ops.Mul,
    ops.Minimum,
    ops.Div,
    ops.FloorDiv,
    ops.Cast,
    ops.Floor,
    ops.Ceil,
    ops.Round,
    *_KEEPS_VALUES,
)
_NEVER_NEGATIVE = (ops.ArgMax, ops.ArgMin, ops.Relu, ops.Relu6, ops.Logistic, ops.Softmax, ops.Abs, ops.Exp)
_MAX_DEPTH = 32


class Formula:
    """Emits elementwise and index operators as helpers of the present node."""

    def __init__(self, ctx: Context) -> None:
        self.ctx = ctx

    def _two(self, op: Operator, a: Value, b: Value) -> Tensor:
        return self.ctx.emit(op, [a, b], aside=True)

    def add(self, a: Value, b: Value) -> Tensor:
        """a + b."""
        return self._two(ops.Add(), a, b)

    def sub(self, a: Value, b: Value) -> Tensor:
        """a - b."""
        return self._two(ops.Sub(), a, b)

    def mul(self, a: Value, b: Value) -> Tensor:
        """a * b."""
        return self._two(ops.Mul(), a, b)

    def modulo(self, a: Value, b: Value) -> Tensor:
        """The remainder with the sign of b."""
        return self._two(ops.FloorMod(), a, b)

    def largest(self, a: Value, b: Value) -> Tensor:
        """The larger one."""
        return self._two(ops.Maximum(), a, b)

    def smallest(self, a: Value, b: Value) -> Tensor:
        """The smaller one."""
        return self._two(ops.Minimum(), a, b)

    def clip(self, a: Value, low: Value, high: Value) -> Tensor:
        """a held within two bounds."""
        return self.smallest(self.largest(a, low), high)

    def below(self, a: Value, b: Value) -> Tensor:
        """a < b."""
        return self._two(ops.Less(), a, b)

    def absolute(self, a: Value) -> Tensor:
        """|a|."""
        return self.ctx.emit(ops.Abs(), [a], aside=True)

    def floor(self, a: Value) -> Tensor:
        """The next integer below."""
        return self.ctx.emit(ops.Floor(), [a], aside=True)

    def choose(self, condition: Value, a: Value, b: Value) -> Tensor:
        """a where the condition holds, else b."""
        return self.ctx.emit(ops.SelectV2(), [condition, a, b], aside=True)

    def cast(self, a: Tensor, target: DType) -> Tensor:
        """Another element type; nothing when it has it already."""
        if a.dtype is target:
            return a
        return self.ctx.emit(ops.Cast(in_data_type=a.dtype.value, out_data_type=target.value), [a], aside=True)

    def picked(self, x: Tensor, indices: Value, axis: int = 0, batch_dims: int = 0) -> Tensor:
        """Slices of x along an axis."""
        return self.ctx.emit(ops.Gather(axis=axis, batch_dims=batch_dims), [x, indices], aside=True)

    def placed(self, indices: Value, updates: Tensor, shape: Sequence[int]) -> Tensor:
        """Zeros of ``shape`` with the updates added at the indices' last axis."""
        return self.ctx.emit(ops.ScatterND(), [indices, updates, np.array(shape, np.int32)], aside=True)

    def total(self, x: Tensor, axis: int) -> Tensor:
        """The sum along an axis, which goes."""
        return self.ctx.emit(ops.Sum(keep_dims=False), [x, np.array([axis], np.int32)], aside=True)

    def part(self, x: Tensor, axis: int, start: int, stop: int) -> Tensor:
        """A range of one axis."""
        if (start, stop) == (0, x.shape[axis]):
            return x
        begin, size = [0] * len(x.shape), list(x.shape)
        begin[axis], size[axis] = start, stop - start
        return self.ctx.emit(ops.Slice(), [x, np.array(begin, np.int32), np.array(size, np.int32)], aside=True)

    def joined(self, parts: Sequence[Tensor], axis: int) -> Tensor:
        """The parts along an axis, without the empty ones."""
        filled = [p for p in parts if p.shape[axis]] or list(parts[:1])
        return filled[0] if len(filled) == 1 else self.ctx.emit(ops.Concatenation(axis=axis), filled, aside=True)

    def padded(self, x: Tensor, pads: Sequence[Sequence[int]], value: float = 0) -> Tensor:
        """x with a constant around it."""
        if not np.any(pads):
            return x
        table = np.array(pads, np.int32)
        if value == 0:
            return self.ctx.emit(ops.Pad(), [x, table], aside=True)
        return self.ctx.emit(ops.PadV2(), [x, table, np.array(value, x.dtype.numpy)], aside=True)


def indices_within(ctx: Context, node: SourceNode, index: int, extents: Value | int) -> Value:
    """Input ``index`` as indices from the front, int32; ``extents`` says how many elements their axes have.

    ONNX counts negative indices from the end. Indices of which that is known already (places of a TopK, say) pass as
    they are.

    Raises:
        ModelError: constant indices lie outside.
    """
    given = ctx.value(node, index)
    sizes = np.asarray(extents, np.int32)
    if isinstance(given, np.ndarray):
        if given.size and ((given < -sizes) | (given >= sizes)).any():
            shown = " x ".join(map(str, np.unique(sizes)))
            raise node.problem(f"indices {given.min()} to {given.max()} are outside of {shown} elements")
        return np.where(given < 0, given + sizes, given).astype(np.int32)
    formula = Formula(ctx)
    given = formula.cast(given, DType.INT32)
    return given if is_natural(given) else formula.modulo(given, sizes)


def is_natural(x: Tensor) -> bool:
    """True when it is known that no element is negative."""
    return _is_natural(x, {}, 0)


def _is_natural(x: Tensor, known: dict[Tensor, bool], depth: int) -> bool:
    if x not in known:  # each tensor once, however often it is read
        known[x] = False
        known[x] = _judged(x, known, depth + 1)
    return known[x]


def _judged(x: Tensor, known: dict[Tensor, bool], depth: int) -> bool:
    if x.data is not None:
        return bool(x.data.size == 0 or x.data.min() >= 0)
    if x.dtype in (DType.BOOL, DType.UINT8, DType.UINT16):
        return True
    node = x.producer
    if node is None or depth > _MAX_DEPTH:
        return False
    op, inputs = node.op, [t for t in node.inputs if t is not None]
    if isinstance(op, _NEVER_NEGATIVE) or (isinstance(op, ops.TopKV2) and x is node.outputs[1]):
        return True
    if isinstance(op, ops.Maximum):
        return any(_is_natural(t, known, depth) for t in inputs)
    if isinstance(op, ops.FloorMod):
        return _is_natural(inputs[1], known, depth)
    if not isinstance(op, _KEEPS_SIGN):
        return False
    if isinstance(op, ops.Split):
        inputs = inputs[1:]
    elif isinstance(op, _KEEPS_VALUES) and not isinstance(op, ops.Concatenation):
        inputs = inputs[:1]
    return all(_is_natural(t, known, depth) for t in inputs)


def computable(ctx: Context, x: Tensor, types: Collection[DType], through: DType = DType.INT32) -> Tensor:
    """x itself when its element type is among ``types``, else cast to ``through``."""
    return x if x.dtype in types else Formula(ctx).cast(x, through)


def emit_as(ctx: Context, op: Operator, inputs: Sequence[Value], wanted: DType) -> Tensor:
    """Add the node's last operator, and bring its result to the wanted element type."""
    return Formula(ctx).cast(ctx.emit(op, inputs), wanted)


def bounded(node: SourceNode, shape: Sequence[int], what: str) -> None:
    """Refuse a detour over a tensor that is too large.

    Raises:
        UnsupportedError: more than ``MAX_GATHERED`` elements.
    """
    count = int(np.prod([int(d) for d in shape], dtype=np.float64))
    if count > MAX_GATHERED:
        raise node.unsupported(
            f"{what} would take {count:,} elements on the way; at most {MAX_GATHERED:,} are made",
            "use a smaller --shape, or cut the model before this node",
        )


def weighed(ctx: Context, x: Tensor, axis: int, weights: Array) -> Tensor:
    """One axis multiplied by a constant matrix [size, extent]: forms with integer kernels, and no TRANSPOSE."""
    shape = (*x.shape[:axis], weights.shape[0], *x.shape[axis + 1 :])
    before, after = (int(np.prod(s, dtype=np.int64)) for s in (x.shape[:axis], x.shape[axis + 1 :]))
    if after == 1:
        rows = ctx.reshape(x, (before, x.shape[axis]))
        return ctx.reshape(ctx.emit(ops.FullyConnected(), [rows, weights, np.zeros(len(weights), np.float32)]), shape)
    columns = ctx.reshape(x, (before, x.shape[axis], after))
    return ctx.reshape(ctx.emit(ops.BatchMatMul(), [weights[None], columns]), shape)


def flat_places(shape: Sequence[int], axis: int, places: Sequence[int]) -> tuple[np.ndarray, int]:
    """For ScatterElements and its like: the part of the flat index that all axes but one give, and that one's stride.

    ``places`` is the shape of the indices, which start at 0 in every other axis of ``shape``.
    """
    strides = [int(np.prod(shape[i + 1 :], dtype=np.int64)) for i in range(len(shape))]
    base = np.zeros((1,) * len(shape), np.int64)
    for i, (extent, stride) in enumerate(zip(places, strides, strict=True)):
        if i != axis:
            base = base + (np.arange(extent) * stride).reshape([-1 if j == i else 1 for j in range(len(shape))])
    return base.astype(np.int32), strides[axis]
