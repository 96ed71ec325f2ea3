"""Probes of strides, windows and transposed convolutions."""

from __future__ import annotations

from collections.abc import Iterator

from vitrify.ir import Node
from vitrify.ops import AveragePool2D, Conv2D, DepthwiseConv2D, MaxPool2D, Padding, TransposeConv
from vitrify.targets.ethos_u.cores import SMALL
from vitrify.targets.ethos_u.probes.sketch import Draw, Probe, Sketch, probe
from vitrify.targets.rules.rule import Variant


def _conv(size: int, taps: int, stride: tuple[int, int], padding: Padding, dilation: int = 1) -> Draw:
    def draw(sketch: Sketch) -> Node:
        op = Conv2D(padding=padding, stride_h=stride[0], stride_w=stride[1], dilation_h_factor=dilation,
                    dilation_w_factor=dilation)
        return sketch.add(op, [sketch.value((1, size, size, 4)), sketch.weights((8, taps, taps, 4)), sketch.bias(8)])
    return draw


def _depthwise(size: int, taps: int, stride: tuple[int, int], dilation: int = 1) -> Draw:
    def draw(sketch: Sketch) -> Node:
        op = DepthwiseConv2D(padding=Padding.VALID, stride_h=stride[0], stride_w=stride[1], dilation_h_factor=dilation,
                             dilation_w_factor=dilation)
        return sketch.add(op, [sketch.value((1, size, size, 4)), sketch.weights((1, taps, taps, 4)), sketch.bias(4)])
    return draw


def _pool(kind: type[AveragePool2D | MaxPool2D], size: tuple[int, int], window: tuple[int, int],
          stride: tuple[int, int], padding: Padding) -> Draw:
    def draw(sketch: Sketch) -> Node:
        op = kind(padding=padding, filter_height=window[0], filter_width=window[1], stride_h=stride[0],
                  stride_w=stride[1])
        return sketch.add(op, [sketch.value((1, *size, 4))])
    return draw


@probe
def strides(variant: Variant) -> Iterator[Probe]:
    """Strides of 1 to 5, with and without padding and dilation."""
    limited = variant.core in SMALL
    for high in (1, 2, 3, 4, 5):
        for wide in (1, 3, 4):
            long = max(high, wide) > 3
            yield Probe(f"conv stride {high}x{wide} valid", _conv(15, 3, (high, wide), Padding.VALID))
            broken = ("ethos-u.stride",) if long and limited else ()
            yield Probe(f"conv stride {high}x{wide} same", _conv(16, 7, (high, wide), Padding.SAME), broken,
                        {"stride": [high, wide]} if broken else {})
            yield Probe(f"depthwise stride {high}x{wide}", _depthwise(16, 3, (high, wide)), broken,
                        {"stride": [high, wide]} if broken else {})
    broken = ("ethos-u.stride",) if limited else ()
    yield Probe("conv stride 4 dilated", _conv(31, 3, (4, 4), Padding.VALID, 2), broken)
    yield Probe("conv stride 4, padding that is none", _conv(16, 4, (4, 4), Padding.SAME))
    yield Probe("conv stride 3 dilated", _conv(31, 3, (3, 3), Padding.VALID, 2))
    for kind in (AveragePool2D, MaxPool2D):
        name = kind.name.lower()
        for step in (3, 4):
            yield Probe(f"{name} stride {step} valid", _pool(kind, (16, 16), (3, 3), (step, step), Padding.VALID))
            yield Probe(f"{name} stride {step} same", _pool(kind, (18, 18), (7, 7), (step, step), Padding.SAME),
                        broken if step > 3 else ())


@probe
def pool_windows(variant: Variant) -> Iterator[Probe]:
    """Windows at the limits and beyond."""
    code = ("ethos-u.pool-window",)
    for high, wide, wrong in ((8, 8, False), (9, 8, True), (8, 9, True), (9, 9, True)):
        yield Probe(f"average {high}x{wide} same",
                    _pool(AveragePool2D, (12, 12), (high, wide), (1, 1), Padding.SAME), code if wrong else (),
                    {"window": [high, wide], "limit": 8} if wrong else {})
    for kind in (AveragePool2D, MaxPool2D):
        name = kind.name.lower()
        for high, wide, wrong in ((256, 1, False), (257, 1, True), (256, 256, False)):
            yield Probe(f"{name} {high}x{wide} valid",
                        _pool(kind, (high, wide), (high, wide), (1, 1), Padding.VALID), code if wrong else (),
                        {"height": high, "limit": 256} if wrong else {})
        yield Probe(f"{name} 255x258 valid", _pool(kind, (255, 258), (255, 258), (1, 1), Padding.VALID), code,
                    {"area": 255 * 258, "limit": 65536})
    yield Probe("average 257x256 valid, two limits",
                _pool(AveragePool2D, (257, 256), (257, 256), (1, 1), Padding.VALID), code * 2)
    if variant.core in SMALL:
        yield Probe("average 9x9 same, stride 4", _pool(AveragePool2D, (18, 18), (9, 9), (4, 4), Padding.SAME),
                    ("ethos-u.pool-window", "ethos-u.stride"))


def _transposed(size: tuple[int, int], taps: tuple[int, int], stride: tuple[int, int], padding: Padding,
                more: tuple[int, int] = (0, 0)) -> Draw:
    def draw(sketch: Sketch) -> Node:
        out = [extent * step + (max(tap - step, 0) if padding is Padding.VALID else 0) + extra
               for extent, step, tap, extra in zip(size, stride, taps, more, strict=True)]
        op = TransposeConv(padding=padding, stride_h=stride[0], stride_w=stride[1])
        return sketch.add(op, [sketch.constant([1, *out, 8]), sketch.weights((8, *taps, 4)),
                               sketch.value((1, *size, 4)), sketch.bias(8)])
    return draw


@probe
def transposed(variant: Variant) -> Iterator[Probe]:
    """Strides and output shapes of transposed convolutions."""
    limited = variant.core in SMALL
    code = ("ethos-u.transpose-conv-stride",)
    for high in (1, 2, 3):
        for wide in (1, 2, 3):
            wrong = limited and (high, wide) not in ((1, 1), (2, 2))
            yield Probe(f"transposed stride {high}x{wide}", _transposed((5, 6), (3, 3), (high, wide), Padding.SAME),
                        code if wrong else (), {"stride": [high, wide]} if wrong else {})
    yield Probe("transposed 1x2 of one row", _transposed((1, 6), (1, 3), (1, 2), Padding.SAME))
    yield Probe("transposed 2x1 of one column", _transposed((6, 1), (3, 1), (2, 1), Padding.SAME))
    for padding in (Padding.SAME, Padding.VALID):
        yield Probe(f"transposed {padding.name} fitting", _transposed((5, 5), (3, 3), (2, 2), padding))
    yield Probe("transposed VALID, one row more", _transposed((5, 5), (3, 3), (2, 2), Padding.VALID, (1, 0)),
                ("ethos-u.transpose-conv-shape",), {"output": [12, 11], "limit": [11, 11]})
    if limited:
        yield Probe("transposed stride 3x3 and one column more",
                    _transposed((5, 5), (3, 3), (3, 3), Padding.VALID, (0, 1)),
                    ("ethos-u.transpose-conv-shape", *code))
