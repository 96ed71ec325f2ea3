"""Operators whose weights alone are quantized: the weights become what they stand for, the rest is float as it was.

Source: ONNX Runtime, docs/ContribOperators.md.
"""

from __future__ import annotations

import numpy as np

from vitrify.core.findings import Finding, Severity
from vitrify.importers.onnx.expansions.registry import Writer, expansion
from vitrify.importers.onnx.source import Array, SourceNode

_BYTE = 8


def widened(node: SourceNode, bits: int) -> Finding:
    """Tell that weights of a few bits are stored as floats."""
    return Finding(
        code="onnx.weights-widened",
        severity=Severity.INFO,
        where=f"node '{node.label}'",
        headline=f"{node.kind} '{node.label}': weights of {bits} bits are stored as floats",
        why="the operator computes in float; TFLite has no kernel for its blocks of weights",
        help="vitrify quantize stores them as int8",
    )


@expansion("com.microsoft::MatMulNBits")
def matmul_n_bits(w: Writer, node: SourceNode) -> str:
    """Matrix product with a matrix of N rows, each of blocks with a scale of their own."""
    if w.has(4):
        raise node.unsupported("an order of groups (g_idx)", "quantize with groups in order")
    weights = _unblocked(w, node)
    w.tell(widened(node, node.integer("bits", 4)))
    y = w.add("MatMul", w.needed(0), w.constant(np.ascontiguousarray(weights.T)))
    return w.add("Add", y, w.name(5)) if w.has(5) else y


def _unblocked(w: Writer, node: SourceNode) -> Array:
    """The weights as float32[N, K]."""
    rows, columns = node.integer("N"), node.integer("K")
    bits, size = node.integer("bits", 4), node.integer("block_size", 32)
    packed, scales = w.known(1, "the weights"), w.known(2, "the scales").astype(np.float32)
    if bits not in (2, 4, 8) or size < 1 or rows < 1 or columns < 1:
        raise node.unsupported(f"weights of {bits} bits in blocks of {size}; 2, 4 and 8 bits are converted")
    blocks = -(-columns // size)
    if packed.size * (_BYTE // bits) < rows * blocks * size or scales.size != rows * blocks:
        raise node.problem(f"{packed.size} bytes and {scales.size} scales for {rows} x {columns} weights")
    steps = _unpacked(packed.reshape(rows, blocks, -1), bits)[..., :size].astype(np.float32)
    if w.has(3):
        zero = w.known(3, "the zero points")
        if zero.dtype == np.uint8:
            zero = _unpacked(zero.reshape(rows, -1), bits)[:, :blocks]
        middle = zero.reshape(rows, blocks, 1).astype(np.float32)
    else:
        middle = np.full((1, 1, 1), 1 << (bits - 1), np.float32)
    real = (steps - middle) * scales.reshape(rows, blocks, 1)
    found: Array = real.reshape(rows, blocks * size)[:, :columns]
    return found


def _unpacked(packed: Array, bits: int) -> Array:
    """Values of a few bits, the lowest bits of each byte first."""
    if bits == _BYTE:
        return packed
    shifts = np.arange(0, _BYTE, bits, dtype=np.uint8)
    values = (packed[..., None] >> shifts) & ((1 << bits) - 1)
    return values.reshape(*packed.shape[:-1], -1)


@expansion("com.microsoft::DynamicQuantizeLSTM")
def dynamic_quantize_lstm(w: Writer, node: SourceNode) -> list[str]:
    """LSTM whose weights are stored transposed as steps."""
    peepholes = [w.name(12)] if w.has(12) else []
    kernels = [_gates(w, first, scale) for first, scale in ((1, 8), (2, 10))]
    rest = [w.name(i) for i in range(3, 7)]
    y = w.add("LSTM", w.needed(0), *kernels, *rest, *peepholes, outputs=3, opset=14, **node.attributes)
    return [y, f"{y}:1", f"{y}:2"][: len(node.outputs)]


def _gates(w: Writer, index: int, scale: int) -> str:
    """Real weights [directions, 4 * width, inputs] from steps [directions, inputs, 4 * width]."""
    steps, scales = w.known(index, "the weights"), w.known(scale, "the scale").astype(np.float32)
    zero = w.known(scale + 1, "the zero point").astype(np.float32)
    spread = (-1, 1, scales.shape[1]) if scales.ndim > 1 else (-1, 1, 1)
    real = (steps.astype(np.float32) - zero.reshape(spread)) * scales.reshape(spread)
    return w.constant(np.ascontiguousarray(real.transpose(0, 2, 1)))
