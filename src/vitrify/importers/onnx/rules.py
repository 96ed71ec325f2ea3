"""What attributes and constant inputs of a node say, by ONNX's rules: for folding and lowering alike."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from vitrify.core.errors import UnsupportedError
from vitrify.core.findings import Finding
from vitrify.importers.onnx.source import SourceNode

MAX_ELEMENTS = 2**28
"""No constant is made larger than this: a few bytes of a file must not be able to ask for all memory."""


MOST_ELEMENTS = 2**31 - 1
"""Of one tensor at run time: TFLite counts elements in 32 bits."""


def limit(node: SourceNode, shape: Sequence[int]) -> tuple[int, ...]:
    """``shape`` when a constant of it may be made.

    Raises:
        ModelError: it has a negative extent.
        UnsupportedError: it has too many elements.
    """
    count = _count(node, shape)
    if count > MAX_ELEMENTS:
        raise node.unsupported(
            f"computed at import, it makes a constant of {count:,} elements; at most {MAX_ELEMENTS:,} are made",
            "make it an input of the model, or give smaller sizes where they are set",
        )
    return tuple(int(d) for d in shape)


def fits(node: SourceNode, shape: Sequence[int]) -> tuple[int, ...]:
    """``shape`` when a tensor of it may be made at run time.

    Raises:
        ModelError: it has a negative extent.
        UnsupportedError: it has too many elements.
    """
    if _count(node, shape) > MOST_ELEMENTS:
        raise too_large(node, shape)
    return tuple(int(d) for d in shape)


def too_large(node: SourceNode, shape: Sequence[int]) -> UnsupportedError:
    """What to say of a node that makes more elements than a tensor holds."""
    return UnsupportedError(
        Finding(
            code="shape.size",
            headline=f"{node.shown} makes {math.prod(map(int, shape)):,} elements at run time, "
            f"{[int(d) for d in shape]}; a tensor holds at most {MOST_ELEMENTS:,}",
            where=f"node '{node.label}'",
            help="give a smaller input (--shape), or change what makes it that large: pads, repeats, sizes or kernel",
        )
    )


def _count(node: SourceNode, shape: Sequence[int]) -> int:
    if any(extent < 0 for extent in shape):
        raise node.problem(f"a negative extent in the shape {[int(d) for d in shape]}")
    return math.prod(map(int, shape))


def kernel_shape(node: SourceNode, shape: Sequence[int]) -> None:
    """Compare the attribute of that name with the spatial extents of the weights.

    Raises:
        ModelError: they differ.
    """
    kernel = node.ints("kernel_shape")
    if kernel is not None and tuple(kernel) != tuple(shape[2:]):
        raise node.problem(f"kernel_shape {kernel} differs from the kernel {list(shape)}")


def target_shape(node: SourceNode, shape: Sequence[int], wanted: Sequence[int]) -> tuple[int, ...]:
    """The shape that Reshape makes: 0 copies an extent, -1 takes what is left.

    Raises:
        ModelError: the elements do not fit.
    """
    total = int(np.prod(shape, dtype=np.int64))
    if not node.integer("allowzero"):
        if any(d == 0 and i >= len(shape) for i, d in enumerate(wanted)):
            raise node.problem(f"the shape {list(wanted)} copies a dimension that {list(shape)} does not have")
        wanted = [shape[i] if d == 0 else d for i, d in enumerate(wanted)]
    rest = int(np.prod([d for d in wanted if d != -1], dtype=np.int64))
    result = tuple(total // rest if d == -1 and rest else int(d) for d in wanted)
    if list(wanted).count(-1) > 1 or min(result, default=0) < 0 or int(np.prod(result, dtype=np.int64)) != total:
        raise node.problem(f"{list(shape)} has {total} elements and does not fit the shape {list(wanted)}")
    return result


def split_sizes(node: SourceNode, extent: int, given: Sequence[int] | None) -> list[int]:
    """The sizes of Split's parts along its axis.

    Raises:
        ModelError: they do not add up to the extent.
    """
    sizes = list(given) if given is not None else node.ints("split")
    if sizes is None:
        count = node.integer("num_outputs", len(node.outputs)) or len(node.outputs)
        if count != len(node.outputs):
            raise node.problem(f"num_outputs is {count}, and it has {len(node.outputs)} outputs")
        part = -(-extent // count)
        sizes = [max(min(part, extent - i * part), 0) for i in range(count)]
    if sum(sizes) != extent or min(sizes) < 0 or len(sizes) < len(node.outputs):
        raise node.problem(f"parts of {sizes} do not make up an extent of {extent}")
    return [int(s) for s in sizes]


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
        raise node.problem(
            f"{len(starts)} starts, {len(ends)} ends, {len(axes)} axes, {len(steps)} steps do not fit each other"
        )
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


def padding(node: SourceNode, inputs: Sequence[Any], rank: int) -> tuple[list[tuple[int, int]], float]:
    """Pad's (before, after) for every dimension, and its value.

    Raises:
        ModelError: the list of pads does not fit the rank.
    """
    pads = node.ints("pads") or node.ints("paddings")
    if pads is None:
        pads = [int(p) for p in inputs[1].ravel()]
    value = (
        node.number("value")
        if len(inputs) < 3 or inputs[2] is None
        else inputs[2].reshape(-1)[0]
        if inputs[2].size
        else 0
    )
    axes = (
        [int(a) % rank for a in inputs[3].ravel()] if len(inputs) > 3 and inputs[3] is not None else list(range(rank))
    )
    if len(pads) != 2 * len(axes):
        raise node.problem(f"{len(pads)} pads for {len(axes)} dimensions; there must be twice as many")
    result = [(0, 0)] * rank
    for i, axis in enumerate(axes):
        result[axis] = (pads[i], pads[i + len(axes)])
    return result, value
