"""Fourier transforms as products with a constant matrix.

Real and imaginary parts are two numbers of a row, so a transform along an axis is one FULLY_CONNECTED of rows
[places * parts], and one over strided windows is one CONV_2D whose kernels hold window and matrix. Source: ONNX
operator reference, DFT-17, DFT-20, STFT-17.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import vitrify.ops as ops
from vitrify.importers.onnx.context import Context
from vitrify.importers.onnx.lowerings.matmul import dense
from vitrify.importers.onnx.lowerings.window import float_input
from vitrify.importers.onnx.registry import axis_of, lowering
from vitrify.importers.onnx.source import Array, SourceNode

LARGEST = 2**24
"""Elements of a matrix; 64 MB of weights, for a complex transform of 2048 places."""


def _matrix(node: SourceNode, places: int, parts: int, length: int, inverse: bool, onesided: bool) -> Array:
    """The transform of ``places`` complex (``parts`` 2) or real numbers as [outputs, parts out, places, parts]."""
    complex_rows = length if inverse or not onesided else length // 2 + 1
    count = complex_rows * 2 * places * parts
    if length < 1 or count > LARGEST:
        raise node.unsupported(
            f"a transform of {places} places to {length} as a matrix of {count} elements; at most {LARGEST} are made",
            "cut the transform off the model and feed it spectra",
        )
    units: Array = np.eye(min(places, length))  # what lies beyond the length is cut off
    signals: Any = units if parts == 1 else np.concatenate([units, 1j * units])
    if inverse and onesided:
        found = np.fft.irfft(signals, length, axis=-1)[..., None]
    else:
        spectrum = (np.fft.ifft if inverse else np.fft.fft)(signals, length, axis=-1)[:, :complex_rows]
        found = np.stack([spectrum.real, spectrum.imag], -1)
    used = found.reshape(parts, len(units), *found.shape[1:]).transpose(2, 3, 1, 0)
    matrix = np.zeros((*used.shape[:2], places, parts), np.float32)
    matrix[:, :, : len(units)] = used
    return matrix


@lowering("DFT")
def dft(ctx: Context, node: SourceNode) -> None:
    """Along one axis; a longer transform pads with zeros, a shorter one cuts, both inside the matrix."""
    x = float_input(ctx, node, 0)
    rank = len(x.shape)
    if rank < 2 or x.shape[-1] not in (1, 2):
        raise node.problem(f"its input is {x.type}; the last axis holds one part, or real and imaginary part")
    axis = node.integer("axis", 1)
    if node.opset >= 20:
        axis = int(ctx.known(node, 2, "the axis").reshape(-1)[0]) if ctx.present(node, 2) else -2
    axis = axis_of(node, axis, rank)
    if axis == rank - 1:
        raise node.problem("its axis is the one of real and imaginary part")
    inverse, onesided = bool(node.integer("inverse")), bool(node.integer("onesided"))
    places, parts = x.shape[axis], x.shape[-1]
    length = 2 * (places - 1) if inverse and onesided else places
    if ctx.present(node, 1):
        length = int(ctx.known(node, 1, "the length").reshape(-1)[0])
    matrix = _matrix(node, places, parts, length, inverse, onesided)
    outer = [i for i in range(rank - 1) if i != axis]
    order = [*outer, axis, rank - 1]
    rows = ctx.reshape(ctx.transpose(x, order), (x.size // (places * parts), places * parts))
    y = dense(ctx, rows, matrix.reshape(-1, places * parts), None)
    y = ctx.reshape(y, (*(x.shape[i] for i in outer), *matrix.shape[:2]))
    ctx.bind(node, ctx.transpose(y, [order.index(i) for i in range(rank)]))


@lowering("STFT")
def stft(ctx: Context, node: SourceNode) -> None:
    """Transforms of windows at every step: one convolution along the signal."""
    x = float_input(ctx, node, 0, (2, 3))
    batch, length = x.shape[:2]
    parts = x.shape[2] if len(x.shape) == 3 else 1
    step = int(ctx.known(node, 1, "the step").reshape(-1)[0])
    window = ctx.known(node, 2, "the window").reshape(-1) if ctx.present(node, 2) else None
    size = int(ctx.known(node, 3, "the length of a frame").reshape(-1)[0]) if ctx.present(node, 3) else (
        window.size if window is not None else length)
    if parts not in (1, 2) or step < 1 or not 1 <= size <= length or (window is not None and window.size != size):
        raise node.problem(f"frames of {size} at steps of {step} do not fit the signal {x.type} and the window")
    matrix = _matrix(node, size, parts, size, False, bool(node.integer("onesided", 1)))
    if window is not None:
        matrix = matrix * window.astype(np.float32)[:, None]
    bins = matrix.shape[0]
    picture = ctx.reshape(x, (batch, 1, length, parts))
    conv = ops.Conv2D(padding=ops.Padding.VALID, stride_w=step, stride_h=1)
    y = ctx.emit(conv, [picture, matrix.reshape(bins * 2, 1, size, parts), np.zeros(bins * 2, np.float32)])
    ctx.bind(node, ctx.reshape(y, (batch, y.shape[2], bins, 2)))
