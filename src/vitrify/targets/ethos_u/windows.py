"""Rules on strides and windows of convolutions and pools."""

from __future__ import annotations

from collections.abc import Iterator

from vitrify.ir import Node
from vitrify.ops import AveragePool2D, Conv2D, DepthwiseConv2D, MaxPool2D, Padding, TransposeConv
from vitrify.ops.window import Window
from vitrify.targets.ethos_u.cores import SMALL
from vitrify.targets.ethos_u.tensors import REPORT
from vitrify.targets.rules import Breach, Variant, rule
from vitrify.targets.rules.roles import feature

_STRIDE, _POOL, _HEIGHT, _AREA = 3, 8, 256, 256 * 256


def _windows(node: Node) -> tuple[Window, Window] | None:
    """The windows over height and width, None where the node is not as its operator demands."""
    op = node.op
    if isinstance(op, AveragePool2D | MaxPool2D):
        return op.windows
    if isinstance(op, Conv2D | DepthwiseConv2D) and len(node.input(1).shape) == 4:
        return op.windows(node.input(1).shape)
    return None


def _padded(node: Node, windows: tuple[Window, Window]) -> bool:
    x, op = feature(node), node.op
    assert isinstance(op, AveragePool2D | MaxPool2D | Conv2D | DepthwiseConv2D)
    return x is not None and any(sum(w.pads(size, op.padding)) for w, size in zip(windows, x.shape[1:3], strict=False))


@rule("ethos-u.stride", operators=["CONV_2D", "AVERAGE_POOL_2D", "MAX_POOL_2D"], cores=SMALL,
      says="strides are 1 to 3; larger ones need a window without dilation and padding",
      why="the NPU steps by 1 to 3; the compiler unrolls a larger stride into one operation for each output position",
      source=REPORT, fix="long-strides")
def stride(node: Node, variant: Variant) -> Iterator[Breach]:
    """Long strides that cannot be unrolled."""
    windows = _windows(node)
    if windows is None or max(w.stride for w in windows) <= _STRIDE:
        return
    dilated = any(w.dilation > 1 for w in windows)
    if dilated or _padded(node, windows):
        high, wide = (w.stride for w in windows)
        yield Breach(f"its stride {high}x{wide} is beyond {_STRIDE}, with {'dilation' if dilated else 'padding'}",
                     {"stride": [high, wide], "limit": _STRIDE}, "a PAD before it, and VALID padding")


@rule("ethos-u.stride", operators=["DEPTHWISE_CONV_2D"], cores=SMALL, says="strides are 1 to 3",
      why="the NPU steps by 1 to 3", source=REPORT, fix="long-strides")
def depthwise_stride(node: Node, variant: Variant) -> Iterator[Breach]:
    """Long strides of a depthwise convolution."""
    windows = _windows(node)
    if windows is not None and max(w.stride for w in windows) > _STRIDE:
        high, wide = (w.stride for w in windows)
        yield Breach(f"its stride {high}x{wide} is beyond {_STRIDE}", {"stride": [high, wide], "limit": _STRIDE},
                     f"{min(high, _STRIDE)}x{min(wide, _STRIDE)}")


@rule("ethos-u.pool-window", operators=["AVERAGE_POOL_2D"],
      says="with padding a window is at most 8x8; without, 256 high and 65536 in all",
      why="a padded average divides by the number of pixels that it really sees", source=REPORT, fix="large-pools")
def average_window(node: Node, variant: Variant) -> Iterator[Breach]:
    """Windows of an average that are too large."""
    windows = _windows(node)
    if windows is None:
        return
    high, wide = windows
    if _padded(node, windows):
        if max(high.taps, wide.taps) > _POOL:
            yield Breach(f"its padded window {high.taps}x{wide.taps} is beyond {_POOL}x{_POOL}",
                         {"window": [high.taps, wide.taps], "limit": _POOL},
                         f"{min(high.taps, _POOL)}x{min(wide.taps, _POOL)}")
    else:
        yield from _too_large(high.taps, wide.taps)


@rule("ethos-u.pool-window", operators=["MAX_POOL_2D"], says="a window is at most 256 high and 65536 in all",
      why="the registers of the window's extents hold no more", source=REPORT, fix="large-pools")
def maximum_window(node: Node, variant: Variant) -> Iterator[Breach]:
    """Windows of a maximum that are too large."""
    windows = _windows(node)
    if windows is not None:
        yield from _too_large(windows[0].taps, windows[1].taps)


def _too_large(high: int, wide: int) -> Iterator[Breach]:
    if high > _HEIGHT:
        yield Breach(f"its window is {high} high, the limit is {_HEIGHT}", {"height": high, "limit": _HEIGHT},
                     f"{_HEIGHT}x{wide}")
    if high * wide > _AREA:
        yield Breach(f"its window {high}x{wide} has {high * wide} elements, the limit is {_AREA}",
                     {"area": high * wide, "limit": _AREA})


@rule("ethos-u.transpose-conv-stride", operators=["TRANSPOSE_CONV"], cores=SMALL,
      says="strides are 1x1 or 2x2; 1 in one direction and 2 in the other where input and weights are 1 in the first",
      why="the NPU repeats or spaces its input twice at most, and alike in both directions", source=REPORT,
      fix="transposed-strides")
def transposed_stride(node: Node, variant: Variant) -> Iterator[Breach]:
    """Strides of a transposed convolution that the NPU does not have."""
    op, x, weight = node.op, feature(node), node.optional(1)
    assert isinstance(op, TransposeConv)
    if x is None or weight is None or len(x.shape) != 4 or len(weight.shape) != 4:
        return
    high, wide = op.stride_h, op.stride_w
    flat = {(1, 2): x.shape[1] == 1 and weight.shape[1] == 1, (2, 1): x.shape[2] == 1 and weight.shape[2] == 1}
    if (high, wide) not in ((1, 1), (2, 2)) and not flat.get((high, wide), False):
        yield Breach(f"its stride is {high}x{wide}; the NPU has 1x1 and 2x2", {"stride": [high, wide], "limit": 2},
                     "1x1" if max(high, wide) == 1 else "2x2")


@rule("ethos-u.transpose-conv-shape", operators=["TRANSPOSE_CONV"],
      says="the output is input times stride, with VALID padding plus what the window is larger than the stride",
      why="the NPU has no further padding of the output", source=REPORT, fix="transposed-shape")
def transposed_shape(node: Node, variant: Variant) -> Iterator[Breach]:
    """Output shapes that another padding would give."""
    op, x, weight = node.op, feature(node), node.optional(1)
    assert isinstance(op, TransposeConv)
    if x is None or weight is None or len(x.shape) != 4 or len(weight.shape) != 4:
        return
    wanted = [size * step + (max(taps - step, 0) if op.padding is Padding.VALID else 0) for size, step, taps in
              zip(x.shape[1:3], (op.stride_h, op.stride_w), weight.shape[1:3], strict=True)]
    found = list(node.output.shape[1:3])
    if found != wanted:
        yield Breach(f"its output is {found[0]}x{found[1]}; the NPU gives {wanted[0]}x{wanted[1]}",
                     {"output": found, "limit": wanted}, f"{wanted[0]}x{wanted[1]} and a slice")
