"""Operators whose result has a shape that depends on values: done where those values are constants, else refused.

Source: ONNX operator reference, Compress-11, NonZero-13, Unique-11, Range-11, NonMaxSuppression-11.
"""

from __future__ import annotations

import numpy as np

import vitrify.ops as ops
from vitrify.core.errors import UnsupportedError
from vitrify.importers.onnx.context import Context
from vitrify.importers.onnx.lowerings.indexing import GATHERED
from vitrify.importers.onnx.parts.places import computable, emit_as
from vitrify.importers.onnx.registry import axis_of, lowering
from vitrify.importers.onnx.source import SourceNode
from vitrify.ir import Tensor


@lowering("Compress")
def compress(ctx: Context, node: SourceNode) -> None:
    """The slices that a constant condition keeps."""
    x = ctx.tensor(node, 0)
    condition = ctx.array(node, 1)
    if condition is None:
        raise _open(ctx, node, [1], "how many elements it keeps is known at run time only")
    if "axis" in node.attributes:
        axis = axis_of(node, node.integer("axis"), len(x.shape))
    else:
        x, axis = ctx.reshape(x, (x.size,)), 0
    kept = np.flatnonzero(condition)
    if kept.size and kept[-1] >= x.shape[axis]:
        raise node.problem(f"a condition of {condition.size} for axis {axis} of {x.type}")
    y = emit_as(ctx, ops.Gather(axis=axis), [computable(ctx, x, GATHERED), kept.astype(np.int32)], x.dtype)
    ctx.bind(node, y)


@lowering("NonZero", "Unique")
def found(ctx: Context, node: SourceNode) -> None:
    """Refused: how many there are is in the values."""
    raise _open(ctx, node, [0], "how many elements it finds is known at run time only")


@lowering("Range")
def range_(ctx: Context, node: SourceNode) -> None:
    """Refused: how long it is depends on values computed at run time."""
    opened = [i for i in range(3) if ctx.array(node, i) is None]
    raise _open(ctx, node, opened, "its length is known at run time only")


@lowering("NonMaxSuppression")
def non_max_suppression(ctx: Context, node: SourceNode) -> None:
    """Refused by the names of the tensors to end the model at: it selects as many boxes as the values give."""
    boxes, scores = node.inputs[:2]
    inputs = ", ".join(repr(t.name) for t in ctx.graph.inputs)
    raise node.unsupported(
        "how many boxes it selects is known at run time only, and a model for an NPU has fixed shapes",
        f"end the model before it, at the boxes '{boxes}' and the scores '{scores}', and select on the CPU: "
        f"onnx.utils.extract_model('model.onnx', 'cut.onnx', [{inputs}], ['{boxes}', '{scores}'])\n"
        "or export without post-processing (Ultralytics: nms=False)",
    )


def _open(ctx: Context, node: SourceNode, indices: list[int], why: str) -> UnsupportedError:
    names = [node.inputs[i] for i in indices]
    fixed = [n for n in names if isinstance(t := ctx.values.get(n), Tensor) and t in ctx.graph.inputs]
    cut = ", ".join(f"'{n}'" for n in names)
    fix = f"fix it where it is the same for every run: --value {fixed[0]}=...; or " if fixed else ""
    return node.unsupported(
        f"{why} (from {cut}), and a model for an NPU has fixed shapes",
        f"{fix}end the model at {cut} and do the rest on the CPU",
    )
