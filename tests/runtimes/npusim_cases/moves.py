"""Operators that move values: joining, cutting, turning, padding, scaling up, other shapes."""

from __future__ import annotations

from collections.abc import Iterator

from npusim_cases.pen import Case, Draw, Pen, both, table
from vitrify import ops
from vitrify.ir import Tensor
from vitrify.ops import Operator

Shape = tuple[int, ...]
IMAGE: Shape = (1, 7, 6, 10)


def moved(op: Operator, shape: Shape, *constants: tuple[int, ...], result: Shape | None = None) -> Draw:
    """An operator of one tensor and rows of numbers."""
    def draw(pen: Pen) -> Tensor | list[Tensor]:
        x = pen.x(*shape)
        return pen.ops(op, [x, *(pen.ints(*row) for row in constants)], like=x, shape=result)
    return draw


def padded(shape: Shape, amounts: list[list[int]], kind: type[ops.Operator] = ops.Pad, **options: int) -> Draw:
    def draw(pen: Pen) -> Tensor:
        x = pen.x(*shape)
        inputs = [x, pen.table(amounts)]
        if kind is ops.PadV2:
            inputs.append(Tensor("fill", pen.dtype, (), data=pen.values().data, quantization=x.quantization))
        return pen.op(kind(**options), inputs, like=x)
    return draw


def joined(shapes: list[Shape], axis: int, constant: bool = False) -> Draw:
    def draw(pen: Pen) -> Tensor:
        parts = [pen.x(*shape) for shape in shapes]
        if constant:
            parts.append(pen.values(*shapes[0], zero=-3))
        return pen.op(ops.Concatenation(axis=axis), parts, like=parts[0])
    return draw


def stacked(count: int, axis: int, shape: Shape = (7, 6, 10)) -> Draw:
    def draw(pen: Pen) -> Tensor:
        parts = [pen.x(*shape) for _ in range(count)]
        return pen.op(ops.Pack(values_count=count, axis=axis), parts, like=parts[0])
    return draw


def unstacked(count: int, axis: int, shape: Shape) -> Draw:
    def draw(pen: Pen) -> list[Tensor]:
        x = pen.x(*shape)
        return pen.ops(ops.Unpack(num=count, axis=axis), [x], like=x)
    return draw


def split(count: int, axis: int, shape: Shape = (1, 8, 6, 12)) -> Draw:
    def draw(pen: Pen) -> list[Tensor]:
        x = pen.x(*shape)
        return pen.ops(ops.Split(num_splits=count), [pen.table(axis), x], like=x)
    return draw


def split_at(sizes: tuple[int, ...], axis: int, shape: Shape = (1, 8, 6, 12)) -> Draw:
    def draw(pen: Pen) -> list[Tensor]:
        x = pen.x(*shape)
        return pen.ops(ops.SplitV(num_splits=len(sizes)), [x, pen.ints(*sizes), pen.table(axis)], like=x)
    return draw


def resized(kind: type[ops.Operator], shape: Shape, size: tuple[int, int], **options: bool) -> Draw:
    return moved(kind(**options), shape, size)


def requantized_join(pen: Pen) -> Tensor:
    parts = [pen.op(ops.Quantize(), [pen.x(1, 7, 6, 10, scale=scale, zero=zero)], 0.07, 1)
             for scale, zero in ((0.05, 3), (0.11, -20))]
    return pen.op(ops.Concatenation(axis=3), parts, like=parts[0])


def sliced_conv(pen: Pen) -> Tensor:
    """Halves of a map into a convolution and an average: reads and writes with strides."""
    x = pen.x(1, 9, 8, 24)
    first, second = pen.ops(ops.Split(num_splits=2), [pen.table(3), x], like=x)
    weights = pen.weights(12, 3, 3, 12)
    convolved = pen.op(ops.Conv2D(), [first, weights, pen.bias(first, weights, 12)], 0.05, -3)
    return pen.op(ops.Concatenation(axis=3), [convolved, second], like=x)


MOVES: dict[str, dict[str, Draw]] = {
    "TRANSPOSE": {"".join(map(str, turn)): moved(ops.Transpose(), IMAGE, turn) for turn in (
        (0, 2, 1, 3), (0, 3, 1, 2), (0, 2, 3, 1), (0, 1, 3, 2), (0, 3, 2, 1))} | {
        "10": moved(ops.Transpose(), (9, 14), (1, 0)), "021": moved(ops.Transpose(), (3, 6, 9), (0, 2, 1)),
        "102": moved(ops.Transpose(), (3, 6, 9), (1, 0, 2)), "210": moved(ops.Transpose(), (3, 6, 9), (2, 1, 0))},
    "RESHAPE": {"rank 2": moved(ops.Reshape(new_shape=(6, 70)), IMAGE, (6, 70)),
                "rank 3": moved(ops.Reshape(new_shape=(1, 42, 10)), IMAGE, (1, 42, 10))},
    "SQUEEZE": {"all": moved(ops.Squeeze(), (1, 7, 1, 10)), "one": moved(ops.Squeeze(squeeze_dims=(0,)), IMAGE)},
    "EXPAND_DIMS": {"first": moved(ops.ExpandDims(), (7, 6, 10), (0,)), "last": moved(ops.ExpandDims(), (7, 6), (-1,))},
    "SLICE": {"middle": moved(ops.Slice(), IMAGE, (0, 2, 1, 3), (1, 4, 5, 6)),
              "depth": moved(ops.Slice(), IMAGE, (0, 0, 0, 4), (1, 7, 6, 6)),
              "rows": moved(ops.Slice(), IMAGE, (0, 3, 0, 0), (1, 2, 6, 10)),
              "rank 2": moved(ops.Slice(), (9, 14), (2, 3), (5, 8)),
              "of 16": moved(ops.Slice(), (1, 7, 6, 48), (0, 0, 0, 16), (1, 7, 6, 16))},
    "STRIDED_SLICE": {"middle": moved(ops.StridedSlice(), IMAGE, (0, 1, 2, 3), (1, 6, 5, 9), (1, 1, 1, 1)),
                      "every second": moved(ops.StridedSlice(), (1, 8, 6, 10), (0, 0, 0, 0), (1, 8, 6, 10),
                                            (1, 2, 2, 1)),
                      "every second row": moved(ops.StridedSlice(), (1, 9, 6, 10), (0, 1, 0, 0), (1, 9, 6, 10),
                                                (1, 2, 1, 1)),
                      "masks": moved(ops.StridedSlice(begin_mask=9, end_mask=9), IMAGE, (0, 1, 2, 0), (0, 6, 5, 0),
                                     (1, 1, 1, 1)),
                      "shrunk": moved(ops.StridedSlice(shrink_axis_mask=2), IMAGE, (0, 3, 0, 0), (1, 4, 6, 10),
                                      (1, 1, 1, 1))},
    "SPLIT": {"depth": split(3, 3), "h": split(2, 1), "w": split(2, 2), "depth in 2": split(2, 3, (1, 5, 4, 32))},
    "SPLIT_V": {"depth": split_at((2, 3, 7), 3), "h": split_at((5, 3), 1)},
    "PAD": {"h, w": padded(IMAGE, [[0, 0], [1, 2], [3, 1], [0, 0]]), "depth": padded(IMAGE, [[0, 0]] * 3 + [[2, 3]]),
            "all": padded(IMAGE, [[0, 0], [1, 0], [0, 1], [1, 1]]), "rank 2": padded((9, 14), [[1, 2], [3, 0]])},
    "PADV2": {"h, w": padded(IMAGE, [[0, 0], [1, 2], [3, 1], [0, 0]], ops.PadV2)},
    "MIRROR_PAD": {"reflect": padded(IMAGE, [[0, 0], [2, 1], [1, 3], [0, 0]], ops.MirrorPad, mode=0),
                   "symmetric": padded(IMAGE, [[0, 0], [2, 1], [1, 3], [0, 0]], ops.MirrorPad, mode=1),
                   "depth": padded(IMAGE, [[0, 0], [0, 0], [0, 0], [2, 3]], ops.MirrorPad, mode=0)},
    "CONCATENATION": {"depth": joined([IMAGE, (1, 7, 6, 7), (1, 7, 6, 16)], 3), "h": joined([IMAGE, (1, 3, 6, 10)], 1),
                      "w": joined([IMAGE, (1, 7, 2, 10)], 2), "of 16": joined([(1, 7, 6, 16), (1, 7, 6, 32)], 3),
                      "constant": joined([IMAGE], 3, constant=True), "rank 2": joined([(4, 9), (4, 5)], 1)},
    "PACK": {"first": stacked(3, 0), "last": stacked(2, 2, (5, 6)), "middle": stacked(2, 1, (5, 6))},
    "UNPACK": {"first": unstacked(3, 0, (3, 6, 10)), "second": unstacked(6, 1, (1, 6, 10))},
    "TILE": {"h, w": moved(ops.Tile(), (1, 3, 4, 10), (1, 2, 3, 1)), "depth": moved(ops.Tile(), IMAGE, (1, 1, 1, 3))},
    "REVERSE_V2": {"h": moved(ops.ReverseV2(), IMAGE, (1,)), "w": moved(ops.ReverseV2(), IMAGE, (2,)),
                   "depth": moved(ops.ReverseV2(), IMAGE, (3,))},
    "SPACE_TO_DEPTH": {"2": moved(ops.SpaceToDepth(block_size=2), (1, 8, 6, 5))},
    "DEPTH_TO_SPACE": {"2": moved(ops.DepthToSpace(block_size=2), (1, 4, 3, 20))}}
RESIZES: dict[str, tuple[Shape, tuple[int, int], dict[str, bool]]] = {
    "x2": (IMAGE, (14, 12), {}), "x4": (IMAGE, (28, 24), {}), "x8": ((1, 3, 4, 5), (24, 32), {}),
    "x2 aligned": (IMAGE, (13, 11), {"align_corners": True}), "x4 aligned": (IMAGE, (25, 21), {"align_corners": True}),
    "x2 half pixels": (IMAGE, (14, 12), {"half_pixel_centers": True}), "of one value": ((1, 1, 1, 10), (6, 5), {}),
    "to itself": (IMAGE, (7, 6), {}), "in width": ((1, 1, 6, 10), (1, 12), {}),
    "in height": ((1, 7, 1, 10), (14, 1), {})}


def _narrow(operator: str, name: str, draw: Draw) -> Iterator[Case]:
    """The kernels have no 16 bits."""
    yield Case(operator, name, draw)


@table
def moves() -> Iterator[Case]:
    """Everything of one scale."""
    for operator, cases in MOVES.items():
        for name, draw in cases.items():
            makes = _narrow if operator in ("SPACE_TO_DEPTH", "DEPTH_TO_SPACE") else both
            yield from makes(operator, name, draw)
    yield Case("CONCATENATION", "of other scales", requantized_join)
    yield Case("CONCATENATION", "of a layer and a slice", sliced_conv)
    for operator, kind in (("RESIZE_NEAREST_NEIGHBOR", ops.ResizeNearestNeighbor),
                           ("RESIZE_BILINEAR", ops.ResizeBilinear)):
        for name, (shape, size, options) in RESIZES.items():
            yield from both(operator, name, resized(kind, shape, size, **options))
