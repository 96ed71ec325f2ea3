"""Windows that slide over space: their attributes, and where TFLite's own padding is the same as ONNX's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

import vitrify.ops as ops
from vitrify.importers.onnx.context import Context, Value
from vitrify.importers.onnx.parts.formulas import shaped
from vitrify.importers.onnx.rules import fits
from vitrify.importers.onnx.source import SourceNode
from vitrify.ir import Tensor
from vitrify.ops import Padding


@dataclass(frozen=True)
class Window:
    """Kernel, strides, dilations and explicit pads per spatial axis: height and width, or depth before them.

    One-dimensional windows have a height of 1.
    """

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    before: tuple[int, ...]
    after: tuple[int, ...]

    @property
    def reach(self) -> tuple[int, ...]:
        """The extent that one window covers, its dilation included."""
        return tuple((k - 1) * d + 1 for k, d in zip(self.kernel, self.dilations, strict=True))

    @property
    def is_padded(self) -> bool:
        """True when any pad is not zero."""
        return any(self.before) or any(self.after)

    def outputs(self, size: Sequence[int]) -> tuple[int, ...]:
        """The output's spatial extents."""
        return tuple(
            (size[i] + self.before[i] + self.after[i] - reach) // self.strides[i] + 1
            for i, reach in enumerate(self.reach)
        )

    def is_same(self, size: Sequence[int]) -> bool:
        """True when TFLite's SAME pads exactly like this. Source: TFLite kernels/padding.h."""
        for i, reach in enumerate(self.reach):
            total = max((-(-size[i] // self.strides[i]) - 1) * self.strides[i] + reach - size[i], 0)
            if (self.before[i], self.after[i]) != (total // 2, total - total // 2):
                return False
        return True

    def unpadded(self) -> Window:
        """The same window without pads."""
        none = (0,) * len(self.kernel)
        return replace(self, before=none, after=none)

    def axes(self, *axes: int) -> Window:
        """The window over some of the spatial axes; over one alone, a width of 1 stands beside it."""

        def chosen(values: tuple[int, ...], fill: int) -> tuple[int, ...]:
            found = tuple(values[a] for a in axes)
            return (*found, fill) if len(found) == 1 else found

        return Window(
            chosen(self.kernel, 1),
            chosen(self.strides, 1),
            chosen(self.dilations, 1),
            chosen(self.before, 0),
            chosen(self.after, 0),
        )


def window_of(
    ctx: Context, node: SourceNode, size: Sequence[int], kernel: Sequence[int], negative_pads: bool = False
) -> Window:
    """Read a node's window over an input of spatial ``size`` (one to three extents).

    With ``negative_pads``, SAME of a stride above the kernel cuts at both ends, as ONNX's formula for pools says;
    otherwise it begins at the first element, as TensorFlow does, where such models come from.

    Raises:
        ModelError: an attribute does not fit the number of spatial dimensions, or the window the input.
    """
    rank = len(size)

    def each(name: str) -> tuple[int, ...]:
        values = node.ints(name) or [1] * rank
        if len(values) != rank or min(values) < 1:
            raise node.problem(f"{name} {values} do not fit {rank} spatial dimensions")
        return _two(values, 1)

    strides, dilations, window = each("strides"), each("dilations"), _two(kernel, 1)
    if min(window) < 1:
        raise node.problem(f"a kernel of {list(kernel)}")
    pads = node.ints("pads") or [0] * (2 * rank)
    if len(pads) != 2 * rank:
        raise node.problem(f"{len(pads)} pads for {rank} spatial dimensions; there must be {2 * rank}")
    before, after = _two(pads[:rank], 0), _two(pads[rank:], 0)
    found = Window(window, strides, dilations, before, after)
    automatic = node.string("auto_pad", "NOTSET")
    if automatic in ("SAME_UPPER", "SAME_LOWER"):
        found = _automatic(found, _two(size, 1), automatic == "SAME_UPPER", negative_pads)
    elif automatic == "VALID":
        found = found.unpadded()
    fits(node, [max(s + b + a, 0) for s, b, a in zip(_two(size, 1), found.before, found.after, strict=True)])
    if min(found.outputs(_two(size, 1))) < 1:
        raise node.problem(f"its window {list(found.reach)} is larger than its padded input {list(size)}")
    return found


def _two(values: Sequence[int], fill: int) -> tuple[int, ...]:
    """At least two values: of one alone, it is the width's."""
    return (fill, int(values[0])) if len(values) == 1 else tuple(int(v) for v in values)


def _automatic(window: Window, size: Sequence[int], upper: bool, negative: bool) -> Window:
    totals = [
        (-(-size[i] // window.strides[i]) - 1) * window.strides[i] + reach - size[i]
        for i, reach in enumerate(window.reach)
    ]
    if not negative:
        totals = [max(total, 0) for total in totals]
    # Half of it, towards zero: the odd one goes behind for SAME_UPPER.
    before = tuple(int(total / 2) if upper else int((total + 1) / 2) for total in totals)
    return replace(window, before=before, after=tuple(t - b for t, b in zip(totals, before, strict=True)))


def pad_picture(ctx: Context, x: Tensor, before: Sequence[int], after: Sequence[int], value: float = 0.0) -> Tensor:
    """Pad height and width of an NHWC tensor with a constant."""
    if not any(before) and not any(after):
        return x
    table = np.array([[0, 0], [before[0], after[0]], [before[1], after[1]], [0, 0]], np.int32)
    if value == 0.0:
        return ctx.emit(ops.Pad(), [x, table], aside=True)
    return ctx.emit(ops.PadV2(), [x, table, np.array(value, x.dtype.numpy)], aside=True)


def fitted(ctx: Context, x: Tensor, window: Window) -> tuple[Tensor, Padding]:
    """The NHWC input and the padding scheme that make ``window`` exact; pads become a node where no scheme has them."""
    if not window.is_padded:
        return x, Padding.VALID
    if min(*window.before, *window.after) >= 0 and window.is_same(x.shape[1:3]):
        return x, Padding.SAME
    before, after = (tuple(max(p, 0) for p in side) for side in (window.before, window.after))
    x = crop_picture(ctx, x, [max(-p, 0) for p in window.before], [max(-p, 0) for p in window.after])
    return pad_picture(ctx, x, before, after), Padding.VALID


def crop_picture(ctx: Context, x: Tensor, before: Sequence[int], after: Sequence[int]) -> Tensor:
    """Cut rows and columns off an NHWC tensor."""
    if not any(before) and not any(after):
        return x
    n, h, w, c = x.shape
    size = np.array([n, h - before[0] - after[0], w - before[1] - after[1], c], np.int32)
    return ctx.emit(ops.Slice(), [x, np.array([0, *before, 0], np.int32), size], aside=True)


def float_input(ctx: Context, node: SourceNode, index: int, ranks: Sequence[int] = ()) -> Tensor:
    """A float input of one of ``ranks``.

    Raises:
        ModelError: it is no float tensor.
        UnsupportedError: another rank.
    """
    x = ctx.tensor(node, index)
    if not x.dtype.is_float:
        if _takes_integers(node, index):
            raise node.unsupported(f"input '{node.inputs[index]}' is {x.type}; only floats are converted")
        raise node.problem(f"input '{node.inputs[index]}' is {x.type}; the operator takes floats")
    if ranks and len(x.shape) not in ranks:
        if len(x.shape) > max(ranks):
            most = max(ranks) - 2
            raise node.unsupported(f"{len(x.shape) - 2} spatial dimensions ({x.type}); up to {most} are converted")
        raise node.problem(
            f"input '{node.inputs[index]}' is {x.type}; {' or '.join(map(str, ranks))} dimensions are needed"
        )
    return x


def _takes_integers(node: SourceNode, index: int) -> bool:
    """True when ONNX allows integers there, by its own table of types."""
    from onnx import defs

    formal = defs.get_schema(node.kind, min(node.opset, defs.onnx_opset_version())).inputs
    return any(kind.startswith("tensor(int") for kind in formal[min(index, len(formal) - 1)].types)


def kernel_4d(ctx: Context, weights: Value) -> Value:
    """Weights of one spatial dimension with a height of 1; others as they are."""
    shape = weights.shape
    return shaped(ctx, weights, (*shape[:2], 1, shape[2])) if len(shape) == 3 else weights
