"""In which order a stream holds the weights of a command: blocks of outputs, then of inputs, then the window.

Source: the order in which Vela packs them (``mlw_codec`` of Vela 5.2, ``reorder``), described in its own words by the
Ethos-U documentation as depth-first and part-kernel-first traversal.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any, NamedTuple

import numpy as np

_SUB_KERNEL = 8
_UNIT = 8
_SMALLEST = "ethos-u55-32"


class Traversal(NamedTuple):
    """What decides the order: the extents of the weights and how the accelerator walks through them."""

    outputs: int
    kernel: tuple[int, int]
    inputs: int
    block_depth: int
    depthwise: bool
    part_kernel: bool
    ifm_bits: int
    dilation: tuple[int, int]
    output_unit: int = 8


def output_unit(accelerator: str) -> int:
    """How many outputs the accelerator computes at a time."""
    return _UNIT // 2 if accelerator == _SMALLEST else _UNIT


def blocks(walk: Traversal) -> Iterator[Any]:
    """Yield where the elements belong in [outputs, y, x, inputs], flat, block after block; -1 for padding."""
    return (_block(walk, *corner) for corner in _corners(walk))


def elements(walk: Traversal) -> int:
    """How many elements the order has, without laying it out: a damaged command may name any number."""
    high, wide = walk.kernel
    down, across = (_SUB_KERNEL // spread for spread in walk.dilation)
    unit, multiple = walk.output_unit, _multiple(walk)
    outputs = _in_parts(walk.outputs, walk.block_depth, unit)
    window = sum(-(-min(down, high - top) * min(across, wide - left) // multiple) * multiple
                 for top in range(0, high, down) for left in range(0, wide, across))
    if walk.depthwise:
        return outputs * window
    block = _input_block(walk)
    inputs = _in_parts(walk.inputs, block, _UNIT if walk.part_kernel else block)
    return outputs * window * inputs


def _in_parts(count: int, size: int, unit: int) -> int:
    """``count`` in parts of ``size``, each filled up to a multiple of ``unit``."""
    whole, rest = divmod(count, size)
    return whole * -(-size // unit) * unit + -(-rest // unit) * unit


def _corners(walk: Traversal) -> list[tuple[int, int, int, int]]:
    high, wide = walk.kernel
    depth = _input_block(walk)
    return list(product(range(0, walk.outputs, walk.block_depth), range(0, 1 if walk.depthwise else walk.inputs, depth),
                        range(0, high, _SUB_KERNEL // walk.dilation[0]),
                        range(0, wide, _SUB_KERNEL // walk.dilation[1])))


def _input_block(walk: Traversal) -> int:
    return 16 if walk.part_kernel or walk.ifm_bits == 16 else 32


def _block(walk: Traversal, output: int, first: int, top: int, left: int) -> Any:
    """One block of outputs and inputs under a part of the window."""
    outputs = min(walk.block_depth, walk.outputs - output)
    rows = min(_SUB_KERNEL // walk.dilation[0], walk.kernel[0] - top)
    columns = min(_SUB_KERNEL // walk.dilation[1], walk.kernel[1] - left)
    inputs = _UNIT if walk.depthwise else min(_input_block(walk), walk.inputs - first) if walk.part_kernel \
        else _input_block(walk)
    elements = -(-rows * columns // _multiple(walk)) * _multiple(walk)
    steps = np.arange(0, inputs, _UNIT)
    outer, inner = (steps, np.zeros(1, np.int64)) if walk.part_kernel else (np.zeros(1, np.int64), steps)
    grid = np.meshgrid(outer, np.arange(0, outputs, walk.output_unit), np.arange(elements), inner,
                       np.arange(walk.output_unit), np.arange(1 if walk.depthwise else _UNIT), indexing="ij",
                       sparse=True)
    a, unit, element, b, within, lane = grid
    o, i = output + unit + within, first + a + b + lane
    y, x = top + element // columns, left + element % columns
    valid = (o < walk.outputs) & (i < walk.inputs) & (element < rows * columns)
    flat = ((o * walk.kernel[0] + y) * walk.kernel[1] + x) * walk.inputs + i
    return np.where(valid, flat, -1).reshape(-1)


def _multiple(walk: Traversal) -> int:
    """To how many elements of the window a part of it is filled up."""
    if walk.part_kernel:
        return 2 if walk.ifm_bits == 16 else 4
    return 4 if walk.depthwise else 1
