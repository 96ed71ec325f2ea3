"""Nodes whose inputs are known are computed now, by ONNX's rules: shape arithmetic never reaches the graph.

A fold takes the node and its input arrays and returns the output array. Integers stay in ONNX's own types, so that
int64 arithmetic is exact. Source: the operators' specifications at onnx.ai/onnx/operators.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from vitrify.importers.onnx.source import Array, SourceNode
from vitrify.importers.onnx.tensors import BFLOAT16, DTYPES
from vitrify.ir import Tensor

MAX_ELEMENTS = 2 ** 28
"""No constant is made larger than this: a few bytes of a file must not be able to ask for all memory."""

Fold = Callable[[SourceNode, list[Any]], Array | list[Array]]
FOLDS: dict[str, Fold] = {}
_LAZY = ("Shape", "Size")       # these need the type only


def fold(node: SourceNode, inputs: Sequence[Any]) -> list[Array] | None:
    """Return the node's outputs when they can be known now, None otherwise.

    Raises:
        ModelError: the inputs do not fit the operator.
    """
    lazy = node.kind in _LAZY and len(inputs) > 0
    if not lazy and any(isinstance(value, Tensor) for value in inputs):
        return None
    try:
        with np.errstate(all="ignore"):
            result = FOLDS[node.kind](node, list(inputs))
    except (ValueError, IndexError, TypeError, ZeroDivisionError, OverflowError) as error:
        shapes = ", ".join(f"{v.dtype.name}{list(v.shape)}" if isinstance(v, np.ndarray) else "-" for v in inputs)
        raise node.problem(f"cannot be computed from the constants {shapes}: {error}") from error
    return [np.asarray(r) for r in (result if isinstance(result, list) else [result])]


def folds(*kinds: str) -> Callable[[Fold], Fold]:
    """Register the function that computes ``kinds``."""
    def register(function: Fold) -> Fold:
        FOLDS.update(dict.fromkeys(kinds, function))
        return function

    return register


def limit(node: SourceNode, shape: Sequence[int]) -> tuple[int, ...]:
    """``shape`` when a constant of it may be made.

    Raises:
        ModelError: it has a negative extent or too many elements.
    """
    count = 1
    for extent in shape:
        if extent < 0:
            raise node.problem(f"a negative extent in the shape {[int(d) for d in shape]}")
        count *= int(extent)
    if count > MAX_ELEMENTS:
        raise node.problem(f"a constant of {count} elements; at most {MAX_ELEMENTS} are made")
    return tuple(int(d) for d in shape)


def _axis(node: SourceNode, rank: int, default: int = 0) -> int:
    axis = node.int("axis", default)
    if not -rank <= axis < rank:
        raise node.problem(f"axis {axis} is outside a tensor of {rank} dimensions")
    return axis


def _axes(node: SourceNode, inputs: list[Any], index: int = 1) -> tuple[int, ...] | None:
    given = node.ints("axes")
    if given is None and len(inputs) > index and inputs[index] is not None:
        given = [int(a) for a in inputs[index].ravel()]
    return None if given is None else tuple(given)


# shapes

@folds("Shape")
def _shape(node: SourceNode, inputs: list[Any]) -> Array:
    shape = np.array(inputs[0].shape, np.int64)
    end = node.attributes.get("end")
    return shape[node.int("start"):None if end is None else node.int("end")]


@folds("Size")
def _size(node: SourceNode, inputs: list[Any]) -> Array:
    return np.array(np.prod(inputs[0].shape, dtype=np.int64), np.int64)


@folds("ConstantOfShape")
def _constant_of_shape(node: SourceNode, inputs: list[Any]) -> Array:
    value = node.attributes.get("value", np.zeros(1, np.float32))
    return np.broadcast_to(value.reshape(()), limit(node, inputs[0].tolist())).copy()


@folds("Range")
def _range(node: SourceNode, inputs: list[Any]) -> Array:
    start, stop, step = (np.asarray(v).reshape(()) for v in inputs)
    count = max(int(np.ceil((float(stop) - float(start)) / float(step))), 0)
    limit(node, [count])
    values: Array = (start + np.arange(count, dtype=start.dtype) * step).astype(start.dtype)
    return values


@folds("Reshape")
def _reshape(node: SourceNode, inputs: list[Any]) -> Array:
    array: Array = inputs[0].reshape(target_shape(node, inputs[0].shape, inputs[1].tolist()))
    return array


def target_shape(node: SourceNode, shape: Sequence[int], wanted: Sequence[int]) -> tuple[int, ...]:
    """The shape that Reshape makes: 0 copies an extent, -1 takes what is left.

    Raises:
        ModelError: the elements do not fit.
    """
    total = int(np.prod(shape, dtype=np.int64))
    if not node.int("allowzero"):
        if any(d == 0 and i >= len(shape) for i, d in enumerate(wanted)):
            raise node.problem(f"the shape {list(wanted)} copies a dimension that {list(shape)} does not have")
        wanted = [shape[i] if d == 0 else d for i, d in enumerate(wanted)]
    rest = int(np.prod([d for d in wanted if d != -1], dtype=np.int64))
    result = tuple(total // rest if d == -1 and rest else int(d) for d in wanted)
    if list(wanted).count(-1) > 1 or min(result, default=0) < 0 or int(np.prod(result, dtype=np.int64)) != total:
        raise node.problem(f"{list(shape)} has {total} elements and does not fit the shape {list(wanted)}")
    return result


@folds("Flatten")
def _flatten(node: SourceNode, inputs: list[Any]) -> Array:
    axis = node.int("axis", 1)
    axis += inputs[0].ndim if axis < 0 else 0
    array: Array = inputs[0].reshape(int(np.prod(inputs[0].shape[:axis], dtype=np.int64)), -1)
    return array


@folds("Squeeze")
def _squeeze(node: SourceNode, inputs: list[Any]) -> Array:
    return np.squeeze(inputs[0], _axes(node, inputs))


@folds("Unsqueeze")
def _unsqueeze(node: SourceNode, inputs: list[Any]) -> Array:
    axes = _axes(node, inputs)
    if axes is None:
        raise node.problem("there are no axes")
    return np.expand_dims(inputs[0], axes)


@folds("Transpose")
def _transpose(node: SourceNode, inputs: list[Any]) -> Array:
    array: Array = inputs[0].transpose(node.ints("perm"))
    return array


@folds("Expand")
def _expand(node: SourceNode, inputs: list[Any]) -> Array:
    shape = np.broadcast_shapes(inputs[0].shape, limit(node, inputs[1].tolist()))
    return np.broadcast_to(inputs[0], limit(node, shape)).copy()


@folds("Tile")
def _tile(node: SourceNode, inputs: list[Any]) -> Array:
    repeats = inputs[1].tolist()
    limit(node, [a * b for a, b in zip(inputs[0].shape, repeats, strict=True)])
    return np.tile(inputs[0], repeats)


@folds("Concat")
def _concat(node: SourceNode, inputs: list[Any]) -> Array:
    return np.concatenate(inputs, _axis(node, inputs[0].ndim, 1))


@folds("Split")
def _split(node: SourceNode, inputs: list[Any]) -> list[Array]:
    axis = _axis(node, inputs[0].ndim)
    sizes = split_sizes(node, inputs[0].shape[axis], inputs[1].tolist() if len(inputs) > 1 and inputs[1] is not None else None)
    return list(np.split(inputs[0], np.cumsum(sizes)[:-1], axis))


def split_sizes(node: SourceNode, extent: int, given: Sequence[int] | None) -> list[int]:
    """The sizes of Split's parts along its axis.

    Raises:
        ModelError: they do not add up to the extent.
    """
    sizes = list(given) if given is not None else node.ints("split")
    if sizes is None:
        count = node.int("num_outputs", len(node.outputs)) or len(node.outputs)
        part = -(-extent // count)
        sizes = [max(min(part, extent - i * part), 0) for i in range(count)]
    if sum(sizes) != extent or min(sizes) < 0 or len(sizes) < len(node.outputs):
        raise node.problem(f"parts of {sizes} do not make up an extent of {extent}")
    return [int(s) for s in sizes]


@folds("Slice")
def _slice(node: SourceNode, inputs: list[Any]) -> Array:
    array: Array = inputs[0][tuple(slices(node, inputs[0].shape, inputs))]
    return array


def slices(node: SourceNode, shape: Sequence[int], inputs: Sequence[Any]) -> list[slice]:
    """The Python slices that Slice takes; ``inputs`` holds starts, ends, axes and steps from position 1 on.

    Raises:
        ModelError: the lists do not fit each other.
    """
    def listed(index: int, name: str) -> list[int] | None:
        given = node.ints(name)
        if given is None and index < len(inputs) and inputs[index] is not None:
            given = [int(v) for v in inputs[index].ravel()]
        return given

    starts, ends = listed(1, "starts"), listed(2, "ends")
    if starts is None or ends is None:
        raise node.problem("it has no starts and ends")
    axes = listed(3, "axes") or list(range(len(starts)))
    steps = listed(4, "steps") or [1] * len(starts)
    if not len(starts) == len(ends) == len(axes) == len(steps):
        raise node.problem(f"{len(starts)} starts, {len(ends)} ends, {len(axes)} axes, {len(steps)} steps do not fit each other")
    result = [slice(0, d, 1) for d in shape]
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        if step == 0 or not -len(shape) <= axis < len(shape):
            raise node.problem(f"step {step} on axis {axis} of {len(shape)} dimensions")
        extent = shape[axis]
        start, end = (v + extent if v < 0 else v for v in (start, end))
        if step > 0:
            result[axis] = slice(min(max(start, 0), extent), min(max(end, 0), extent), step)
        else:
            last = min(max(end, -1), extent - 1)
            result[axis] = slice(min(max(start, 0), extent - 1), None if last < 0 else last, step)
    return result


@folds("Pad")
def _pad(node: SourceNode, inputs: list[Any]) -> Array:
    pads, value = padding(node, inputs, inputs[0].ndim)
    limit(node, [d + b + a for d, (b, a) in zip(inputs[0].shape, pads, strict=True)])
    mode = node.string("mode", "constant")
    if min(min(p) for p in pads) < 0:
        cut = tuple(slice(max(-b, 0), d - max(-a, 0)) for d, (b, a) in zip(inputs[0].shape, pads, strict=True))
        inputs[0] = inputs[0][cut]
        pads = [(max(b, 0), max(a, 0)) for b, a in pads]
    if mode == "constant":
        return np.pad(inputs[0], pads, constant_values=np.asarray(value, inputs[0].dtype).reshape(()))
    modes: dict[str, Any] = {"reflect": "reflect", "edge": "edge", "wrap": "wrap"}
    if mode not in modes:
        raise node.problem(f"mode '{mode}' is not one of constant, reflect, edge, wrap")
    return np.pad(inputs[0], pads, modes[mode])


def padding(node: SourceNode, inputs: Sequence[Any], rank: int) -> tuple[list[tuple[int, int]], float]:
    """Pad's (before, after) for every dimension, and its value.

    Raises:
        ModelError: the list of pads does not fit the rank.
    """
    pads = node.ints("pads") or node.ints("paddings")
    if pads is None:
        pads = [int(p) for p in inputs[1].ravel()]
    value = node.float("value") if len(inputs) < 3 or inputs[2] is None else inputs[2].reshape(-1)[0] if inputs[2].size else 0
    axes = [int(a) % rank for a in inputs[3].ravel()] if len(inputs) > 3 and inputs[3] is not None else list(range(rank))
    if len(pads) != 2 * len(axes):
        raise node.problem(f"{len(pads)} pads for {len(axes)} dimensions; there must be twice as many")
    result = [(0, 0)] * rank
    for i, axis in enumerate(axes):
        result[axis] = (pads[i], pads[i + len(axes)])
    return result, value


@folds("Gather")
def _gather(node: SourceNode, inputs: list[Any]) -> Array:
    return np.take(inputs[0], inputs[1], _axis(node, inputs[0].ndim))


@folds("GatherElements")
def _gather_elements(node: SourceNode, inputs: list[Any]) -> Array:
    return np.take_along_axis(inputs[0], inputs[1], _axis(node, inputs[0].ndim))


@folds("GatherND")
def _gather_nd(node: SourceNode, inputs: list[Any]) -> Array:
    if node.int("batch_dims"):
        raise node.problem("batch_dims other than 0 on constants")
    array: Array = inputs[0][tuple(np.moveaxis(inputs[1], -1, 0))]
    return array


@folds("ScatterND")
def _scatter_nd(node: SourceNode, inputs: list[Any]) -> Array:
    if node.string("reduction", "none") != "none":
        raise node.problem("a reduction on constants")
    result: Array = inputs[0].copy()
    result[tuple(np.moveaxis(inputs[1], -1, 0))] = inputs[2]
    return result


@folds("NonZero")
def _non_zero(node: SourceNode, inputs: list[Any]) -> Array:
    return np.array(np.nonzero(inputs[0]), np.int64)


@folds("Where")
def _where(node: SourceNode, inputs: list[Any]) -> Array:
    return np.where(*inputs)


@folds("Cast", "CastLike")
def _cast(node: SourceNode, inputs: list[Any]) -> Array:
    if node.kind == "CastLike":
        array: Array = inputs[0].astype(inputs[1].dtype)
        return array
    to = node.int("to")
    if to not in DTYPES and to != BFLOAT16:
        raise node.problem(f"a cast to the element type number {to}")
    result: Array = inputs[0].astype(DTYPES.get(to, "float32"))
    return result


@folds("EyeLike")
def _eye(node: SourceNode, inputs: list[Any]) -> Array:
    rows, columns = inputs[0].shape
    return np.eye(rows, columns, node.int("k"), dtype=DTYPES.get(node.int("dtype"), inputs[0].dtype))


@folds("Trilu")
def _trilu(node: SourceNode, inputs: list[Any]) -> Array:
    k = int(inputs[1].reshape(-1)[0]) if len(inputs) > 1 and inputs[1] is not None else 0
    return np.triu(inputs[0], k) if node.int("upper", 1) else np.tril(inputs[0], k)


@folds("CumSum")
def _cumsum(node: SourceNode, inputs: list[Any]) -> Array:
    axis = int(inputs[1].reshape(-1)[0])
    if node.int("exclusive"):
        raise node.problem("an exclusive sum of constants")
    if node.int("reverse"):
        return np.flip(np.cumsum(np.flip(inputs[0], axis), axis), axis)
    return np.cumsum(inputs[0], axis, dtype=inputs[0].dtype)


@folds("Identity", "Dropout")
def _identity(node: SourceNode, inputs: list[Any]) -> Array:
    array: Array = inputs[0]
    return array


@folds("OneHot")
def _one_hot(node: SourceNode, inputs: list[Any]) -> Array:
    depth = int(inputs[1].reshape(-1)[0])
    off, on = inputs[2]
    limit(node, [*inputs[0].shape, depth])
    hot = np.arange(depth) == np.asarray(inputs[0] % depth)[..., None]
    return np.moveaxis(np.where(hot, on, off).astype(inputs[2].dtype), -1, node.int("axis", -1))


# arithmetic

def _truncated(a: Array, b: Array) -> Array:
    """ONNX divides integers towards zero."""
    if a.dtype.kind not in "iu":
        result: Array = a / b
        return result
    if np.any(b == 0):
        raise ZeroDivisionError("division by zero")
    quotient: Array = (np.sign(a) * np.sign(b) * (np.abs(a) // np.abs(b))).astype(a.dtype)
    return quotient


def _mod(node: SourceNode, inputs: list[Any]) -> Array:
    return np.asarray(np.fmod(*inputs) if node.int("fmod") else np.mod(*inputs), inputs[0].dtype)


FOLDS["Mod"] = _mod


def _elementwise(function: Callable[..., Any]) -> Fold:
    def run(node: SourceNode, inputs: list[Any]) -> Array:
        limit(node, np.broadcast_shapes(*(i.shape for i in inputs)))
        array: Array = np.asarray(function(*inputs))
        return array if array.dtype == bool else array.astype(inputs[0].dtype)

    return run


def _many(function: Callable[..., Any]) -> Fold:
    def run(node: SourceNode, inputs: list[Any]) -> Array:
        limit(node, np.broadcast_shapes(*(i.shape for i in inputs)))
        result = inputs[0]
        for other in inputs[1:]:
            result = function(result, other)
        return np.asarray(result)

    return run


FOLDS.update({kind: _elementwise(function) for kind, function in {
    "Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Div": _truncated, "Pow": np.power, "Sqrt": np.sqrt,
    "Neg": np.negative, "Abs": np.abs, "Exp": np.exp, "Log": np.log, "Floor": np.floor, "Ceil": np.ceil, "Round": np.rint,
    "Sign": np.sign, "Reciprocal": lambda x: 1 / x, "Sin": np.sin, "Cos": np.cos, "Tanh": np.tanh,
    "Sigmoid": lambda x: 1 / (1 + np.exp(-x)), "Relu": lambda x: np.maximum(x, x.dtype.type(0)), "Equal": np.equal,
    "Greater": np.greater, "GreaterOrEqual": np.greater_equal, "Less": np.less, "LessOrEqual": np.less_equal,
    "Not": np.logical_not, "And": np.logical_and, "Or": np.logical_or, "Xor": np.logical_xor, "IsNaN": np.isnan,
    "BitShift": lambda a, b: a >> b}.items()})
FOLDS.update({"Max": _many(np.maximum), "Min": _many(np.minimum), "Sum": _many(np.add)})


@folds("Clip")
def _clip(node: SourceNode, inputs: list[Any]) -> Array:
    low = inputs[1] if len(inputs) > 1 and inputs[1] is not None else node.attributes.get("min")
    high = inputs[2] if len(inputs) > 2 and inputs[2] is not None else node.attributes.get("max")
    array: Array = inputs[0]
    if low is not None:
        array = np.maximum(array, np.asarray(low, array.dtype))
    if high is not None:
        array = np.minimum(array, np.asarray(high, array.dtype))
    return array


@folds("MatMul")
def _matmul(node: SourceNode, inputs: list[Any]) -> Array:
    return np.asarray(np.matmul(*inputs))


def _reducing(function: Callable[..., Any]) -> Fold:
    def run(node: SourceNode, inputs: list[Any]) -> Array:
        axes = _axes(node, inputs)
        if not axes and node.int("noop_with_empty_axes"):
            array: Array = inputs[0]
            return array
        return np.asarray(function(inputs[0], axis=axes or None, keepdims=bool(node.int("keepdims", 1))), inputs[0].dtype)

    return run


FOLDS.update({f"Reduce{kind}": _reducing(function) for kind, function in {
    "Sum": np.sum, "Prod": np.prod, "Max": np.max, "Min": np.min, "Mean": np.mean}.items()})


@folds("ArgMax", "ArgMin")
def _arg(node: SourceNode, inputs: list[Any]) -> Array:
    axis = _axis(node, inputs[0].ndim)
    function = np.argmax if node.kind == "ArgMax" else np.argmin
    if node.int("select_last_index"):
        raise node.problem("select_last_index on constants")
    result: Array = np.asarray(function(inputs[0], axis=axis), np.int64)
    return np.expand_dims(result, axis) if node.int("keepdims", 1) else result


