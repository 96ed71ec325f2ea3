"""Convolutions that step far or take whole patches, on tensors reshaped so that a patch's pixels stand as channels."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from vitrify import ops
from vitrify.ir import DType, Graph, Node, Tensor
from vitrify.ir.graph import Array
from vitrify.passes.base import Pass
from vitrify.passes.graphs import constant, only_user, producer, swap
from vitrify.passes.layout.perms import Shape
from vitrify.passes.reshaping.reshapes import reshape_to
from vitrify.passes.weights.scales import weights_of

LONGEST_STEP = 3
"""The largest stride that an Ethos-U convolution has; for longer ones, Vela copies patches or leaves the CPU to it."""


class Along(NamedTuple):
    """A convolution along one axis: ``kernel`` taps by ``step`` to ``results`` places, after ``before`` zeros."""

    extent: int
    kernel: int
    step: int
    results: int
    before: int

    @property
    def blocks(self) -> int:
        """How many blocks of ``step`` places the kernel touches."""
        return -(-self.kernel // self.step)

    @property
    def after(self) -> int:
        """How many zeros behind make it whole blocks; negative when places behind the last block are left over."""
        return (self.results - 1 + self.blocks) * self.step - self.extent - self.before

    @property
    def far(self) -> bool:
        """True for a step that is too long."""
        return self.step > LONGEST_STEP

    @property
    def tiles(self) -> bool:
        """True when the kernel takes patches that cover the axis."""
        return self.kernel == self.step > 1 and self.before == self.after == 0


class Patches(Pass):
    """Lay the pixels of a patch side by side as channels, and rows of patches one behind the other as a batch.

    Before:  %1 = CONV_2D(%x, w[192,16,16,3], stride 16)                x: [1,224,224,3]
    After:   %1 = RESHAPE(CONV_2D(RESHAPE(%x, [14,16,14,48]), w[192,16,1,48]), [1,14,14,192])
    A kernel that is larger than its stride becomes one for each row of blocks that it touches, and ADDs of their
    results. Moves no data, and sums the same products. Vela 5.2's estimate for an i.MX93: 16x16 patches of 224x224 to
    192 channels 0.5 ms for 12.2, 4x4 to 96 channels 0.7 for 9.4, 2x2 of 56x56x96 to 192 channels 0.7 for 1.2; a 32x32
    kernel to 512 channels does not compile, and a 7x7 kernel of stride 4 stays on the CPU, before.
    """

    name = "patches"
    kinds = (ops.Conv2D,)

    def rewrite(self, graph: Graph, node: Node) -> bool:
        """Reshape before and behind where a stride is too long, or patches lie side by side."""
        op, pad = node.op, _zeros_before(node)
        assert isinstance(op, ops.Conv2D)
        source = node.input(0) if pad is None else pad.input(0)
        found = weights_of(node)
        if found is None or not _can(op, node, source, found[1]):
            return False
        high, wide = (_along(node, axis, pad) for axis in (1, 2))
        if not (high.far or wide.far or wide.tiles) or any(a.far and (a.after < 0 or a.kernel < a.step)
                                                          for a in (high, wide)):
            return False
        if not (high.far or wide.far) and pad is not None:
            return False
        self._replace(graph, node, pad, source, (found[1], found[2]), high, wide)
        return True

    def _replace(self, graph: Graph, node: Node, pad: Node | None, source: Tensor,
                 weights: tuple[Array, Array | None], high: Along, wide: Along) -> None:
        """Pad to whole blocks, reshape, convolve, and add up."""
        op, by_row, by_column = node.op, high.far, wide.far or wide.tiles
        assert isinstance(op, ops.Conv2D)
        far = by_row or wide.far
        table = [(a.before, a.after if blocked else _rest(a)) if far else (0, 0)
                 for a, blocked in ((high, by_row), (wide, by_column))]
        x = self._padded(graph, node, pad, source, table)
        count, height, width, channels = x.shape
        step, group = (high.step if by_row else height), (wide.step if by_column else 1)
        shape = (count * height // step, step, width // group, group * channels)
        x = self._reshaped(graph, x, shape, node)
        rows, columns = (high.blocks if by_row else 1), (wide.blocks if by_column else wide.kernel)
        kernel, bias = _blocks(*weights, (rows, step if by_row else high.kernel), (columns, group))
        whole = replace(op, stride_h=1 if by_row else high.step, stride_w=1 if by_column else wide.step,
                        padding=ops.Padding.VALID if far else op.padding,
                        fused_activation_function=op.fused_activation_function if rows == 1 else ops.Activation.NONE)
        inputs = [x, constant(node.input(1).name, kernel, node.input(1).origin)]
        if bias is not None:
            old = node.optional(2)
            inputs.append(constant(f"{node.name}_bias" if old is None else old.name, bias))
        y = self.insert(graph, whole, inputs, f"{node.name}_blocks", node, node)
        if rows == 1:
            back, target = reshape_to(node)
            swap(graph, node, back, [y, target], self.made(node))
        else:
            y = self._reshaped(graph, y, (count, height // step, wide.results, y.shape[-1]), node)
            self._added(graph, node, y, rows)

    def _padded(self, graph: Graph, node: Node, pad: Node | None, source: Tensor,
                table: list[tuple[int, int]]) -> Tensor:
        if not any(map(any, table)):
            return source
        amounts = constant(f"{node.name}_padding", np.array([(0, 0), *table, (0, 0)], np.int32))
        return self.insert(graph, ops.Pad(), [source, amounts], f"{node.name}_padded", node, pad, node)

    def _reshaped(self, graph: Graph, x: Tensor, shape: Shape, node: Node) -> Tensor:
        if x.shape == shape:
            return x
        sizes = constant(f"{node.name}_shape", np.array(shape, np.int32))
        return self.insert(graph, ops.Reshape(new_shape=shape), [x, sizes], f"{node.name}_rows", node, node)

    def _added(self, graph: Graph, node: Node, y: Tensor, rows: int) -> None:
        """Add what each row of blocks gives to the result that it belongs to."""
        shape, activation = node.output.shape, node.op.fused_activation_function  # type: ignore[attr-defined]
        parts: list[Tensor] = []
        for i in range(rows):
            begin = constant(f"{node.name}_begin", np.array((0, i, 0, i * shape[3]), np.int32))
            size = constant(f"{node.name}_size", np.array(shape, np.int32))
            parts.append(self.insert(graph, ops.Slice(), [y, begin, size], f"{node.name}_part", node, node))
        total = parts[0]
        for part in parts[1:-1]:
            total = self.insert(graph, ops.Add(), [total, part], f"{node.name}_sum", node, node)
        swap(graph, node, ops.Add(fused_activation_function=activation), [total, parts[-1]], self.made(node))


def _can(op: ops.Conv2D, node: Node, source: Tensor, weights: Array) -> bool:
    """True for a plain float convolution of one group, whose shapes are all known."""
    plain = op.dilation_h_factor == op.dilation_w_factor == 1 and weights.shape[3] == source.shape[3]
    fixed = all(-1 not in t.shape_signature and 0 not in t.shape for t in (source, node.output))
    return plain and fixed and source.dtype is DType.FLOAT32 and all(
        t.quantization is None for t in (source, node.output))


def _along(node: Node, axis: int, pad: Node | None) -> Along:
    """What the convolution does along one axis of its input, or of what the PAD before it reads."""
    op = node.op
    assert isinstance(op, ops.Conv2D)
    step = op.stride_h if axis == 1 else op.stride_w
    kernel, results, padded = node.input(1).shape[axis], node.output.shape[axis], node.input(0).shape[axis]
    before = max((results - 1) * step + kernel - padded, 0) // 2 if op.padding is ops.Padding.SAME else 0
    if pad is None:
        return Along(padded, kernel, step, results, before)
    table = pad.input(1).data
    assert table is not None
    return Along(pad.input(0).shape[axis], kernel, step, results, before + int(table[axis][0]))


def _rest(along: Along) -> int:
    """The zeros behind an axis that is not taken in blocks."""
    return max((along.results - 1) * along.step + along.kernel - along.extent - along.before, 0)


def _zeros_before(node: Node) -> Node | None:
    """A PAD of height and width that only this convolution reads."""
    pad = producer(node.input(0), ops.Pad)
    table = None if pad is None else pad.input(1).data
    if pad is None or table is None or only_user(pad.output) is not node or len(table) != 4:
        return None
    return pad if not np.any(table[[0, 3]]) and (table >= 0).all() else None


def _blocks(weights: Array, bias: Array | None, rows: tuple[int, int],
            columns: tuple[int, int]) -> tuple[Array, Array | None]:
    """The kernel of (count, extent) rows and columns of blocks: one output per row, zeros where blocks reach beyond."""
    outputs, high, wide, channels = weights.shape
    full = np.zeros((outputs, rows[0] * rows[1], columns[0] * columns[1], channels), np.float32)
    full[:, :high, :wide] = weights
    split = full.reshape(outputs, *rows, columns[0], columns[1] * channels)
    kernel = split.swapaxes(0, 1).reshape(rows[0] * outputs, rows[1], columns[0], columns[1] * channels)
    if bias is None or rows[0] == 1:
        return kernel, bias
    return kernel, np.concatenate([bias.reshape(-1), np.zeros((rows[0] - 1) * outputs, np.float32)])
