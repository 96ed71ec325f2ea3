"""Functions by table: 256 entries for 8 bits; 513 for 16 bits, with straight lines between.

Source: TFLite kernels/internal/common.h (LUTPopulate, LUTLookup), activations.cc, elementwise.cc, exp.cc,
internal/reference/gelu.h.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from vitrify.ir.graph import Array
from vitrify.ops import activation, unary
from vitrify.ops.reference.integer.fixed_point import inverse_square_root, multiply, quantize_multiplier
from vitrify.ops.reference.integer.libm import floats
from vitrify.ops.reference.integer.registry import Call, integer_kernel

Function = Callable[[Array], Array]
_ONE = np.float32(1)
_HALF = np.float32(0.5)


def looked_up(call: Call, function: Function) -> list[Array]:
    """Apply a function of float32 through the table that LiteRT makes of it."""
    x, y = call.affine(0), call.output
    with np.errstate(all="ignore"):
        if call.dtype == np.int16:
            table = wide_table(function, x.scale, x.zero, y.scale, y.zero)
            return [wide_lookup(call.array(0).astype(np.int64), table).astype(np.int16)]
        info = np.iinfo(call.dtype)
        steps = np.arange(info.min, info.max + 1)
        real = x.scale * (steps - x.zero).astype(np.float32)
        scaled = away_from_zero(function(real) * (_ONE / y.scale)) + np.float32(y.zero)
    table = np.clip(np.nan_to_num(scaled, posinf=np.inf, neginf=-np.inf), info.min, info.max).astype(call.dtype)
    return [table[call.array(0).astype(np.int64) - info.min]]


def away_from_zero(x: Array) -> Array:
    """Round to nearest, halves away from zero, in the type of ``x``."""
    return np.asarray(np.trunc(x) + np.copysign(np.abs(x - np.trunc(x)) >= 0.5, x).astype(x.dtype))


def wide_table(function: Function, scale: np.floating, zero: int, out_scale: np.floating, out_zero: int) -> Array:
    """Return 513 entries over the whole range, each moved by half the error that the line makes at its middle."""
    kind = type(scale)
    low, high = (scale * kind(limit - zero) for limit in (-32768, 32767))
    out_low, out_high = (out_scale * kind(limit - out_zero) for limit in (-32768, 32767))
    step = (high - low) / kind(512)
    to_steps = kind(65536) / (out_high - out_low)
    places = low + np.arange(513).astype(kind) * step
    values = function(places[:512]) * to_steps
    middles = away_from_zero(function(places[:512] + step / kind(2)) * to_steps)
    following = function(low + np.arange(1, 513).astype(kind) * step) * to_steps
    samples = away_from_zero(values)
    lines = away_from_zero((following + samples) / kind(2))
    entries = samples - away_from_zero((lines - middles) / kind(2))
    last = away_from_zero(function(np.array([high], kind)) * to_steps)
    table: Array = np.clip(np.concatenate([entries, last]), -32768, 32767)
    return table.astype(np.int64)


def wide_lookup(x: Array, table: Array) -> Array:
    """Read 16-bit steps off a table of 513 entries: 9 bits choose, 7 bits interpolate."""
    index, offset = 256 + (x >> 7), x & 0x7F
    base = table[index]
    slope = (table[index + 1] - base).astype(np.int16).astype(np.int64)
    return np.asarray(base + ((slope * offset + 64) >> 7))


@integer_kernel(unary.Exp)
def exp(call: Call) -> list[Array]:
    """Raise e to the power."""
    return looked_up(call, lambda x: floats("exp", x))


@integer_kernel(unary.Log)
def log(call: Call) -> list[Array]:
    """Take the logarithm; what is not above zero gives the least output."""
    least = np.float32(np.iinfo(call.dtype).min - call.output.zero) * call.output.scale
    return looked_up(call, lambda x: np.where(x <= 0, least, floats("log", np.where(x <= 0, _ONE, x))))


@integer_kernel(unary.Rsqrt)
def rsqrt(call: Call) -> list[Array]:
    """Take 1 / sqrt: 8 bits by Newton's method, 16 by table. Below zero LiteRT stops."""
    if np.any(call.array(0) < call.affine(0).zero):
        raise call.refuse("is not defined for the values below zero that it is given")
    y = call.output
    if call.dtype == np.int16:
        most = np.float32(32767) * y.scale
        return looked_up(call, lambda x: np.where(x <= 0, most, _ONE / np.sqrt(np.maximum(x, np.float32(1e-38)))))
    x = call.shifted(0)
    root = inverse_square_root(x)
    fine = multiply(np.ones_like(x), root._replace(shift=root.shift + 20))
    by = quantize_multiplier(1 / float(np.sqrt(call.affine(0).scale) * y.scale))
    values = multiply(fine, by._replace(shift=by.shift - 20)) + y.zero
    return [call.clipped(np.where(x == 0, np.iinfo(call.dtype).max, values))]


@integer_kernel(unary.Sqrt)
def sqrt(call: Call) -> list[Array]:
    """Take the root of each value in float32; LiteRT cuts the steps off where others are rounded."""
    if np.any(call.array(0) < call.affine(0).zero):
        raise call.refuse("is not defined for the values below zero that it is given")
    root = np.sqrt(call.affine(0).scale * call.shifted(0).astype(np.float32))
    return [call.clipped(np.trunc(root / call.output.scale).astype(np.int64) + call.output.zero)]


@integer_kernel(activation.Elu)
def elu(call: Call) -> list[Array]:
    """Apply exp(x) - 1 below zero."""
    return looked_up(call, lambda x: np.where(x < 0, floats("expm1", x), x))


@integer_kernel(activation.Gelu)
def gelu(call: Call) -> list[Array]:
    """Apply the exact form or the one by tanh."""
    op = call.node.op
    assert isinstance(op, activation.Gelu)
    return looked_up(call, _gelu_by_tanh if op.approximate else _gelu)


def _gelu(x: Array) -> Array:
    return _HALF * x * floats("erfc", x * np.float32(-math.sqrt(0.5)))


def _gelu_by_tanh(x: Array) -> Array:
    inner = np.float32(math.sqrt(2 / math.pi)) * (x + np.float32(0.044715) * x * x * x)
    return _HALF * x * (_ONE + floats("tanh", inner))


@integer_kernel(activation.Logistic)
def logistic(call: Call) -> list[Array]:
    """Apply 1 / (1 + exp(-x)): 16 bits by a table of their own."""
    if call.dtype != np.int16:
        return looked_up(call, lambda x: _ONE / (_ONE + floats("exp", -x)))
    return [sigmoid_16(_on_table_scale(call, powers=(0,))).astype(np.int16)]


def sigmoid_16(x: Array) -> Array:
    """Return 1 / (1 + exp(-x)) in steps of 2^-15, for x in steps of 1 / (3 * 4096)."""
    value = _sigmoid(np.abs(x), 9, 0x7FFF << 10)
    return np.asarray(np.where(x >= 0, value + 512, (1 << 25) - value + 511) >> 10)


@integer_kernel(activation.Tanh)
def tanh(call: Call) -> list[Array]:
    """Apply tanh: 16 bits as 2 * logistic(2 * x) - 1."""
    if call.dtype != np.int16:
        return looked_up(call, lambda x: floats("tanh", x))
    return [tanh_16(_on_table_scale(call, powers=(0, 1))).astype(np.int16)]


def tanh_16(x: Array) -> Array:
    """Return tanh(x) in steps of 2^-15, for x in steps of 1 / (3 * 4096)."""
    value = _sigmoid(np.abs(x), 8, 0xFFFF << 8)
    half = 1 << 23
    return np.asarray(np.where(x >= 0, value - half + 128, half - value + 127) >> 8)


def _on_table_scale(call: Call, powers: tuple[int, ...]) -> Array:
    """Return x in steps of 1 / (3 * 4096), 512 of which (256 for tanh) are one entry of the table, 1 / 24."""
    scale, x = call.affine(0).scale, call.array(0).astype(np.int64)
    power = np.log(scale) * (_ONE / np.log(np.float32(2)))
    whole = int(away_from_zero(np.asarray(power)))
    if abs(power - np.float32(whole)) < np.float32(1e-3) and whole + 12 in powers:
        return x * (3 << (whole + 12))
    factor, shift = float(scale) * 4096.0 * 3.0, 0
    while factor <= 32767.0 / 2.0 and shift <= 30:
        factor, shift = factor * 2, shift + 1
    rounding = 1 << (shift - 1) if shift else 0
    return np.asarray((x * int(factor) + rounding) >> shift)


def _made_sigmoid() -> Array:
    """Return 65536 / (1 + exp(-i / 24)), moved up by half of what the line to the next entry misses at its middle."""
    def exact(index: Array) -> Array:
        return np.asarray(65536 / (1 + np.exp(-index / 24)))

    index = np.arange(256.0)
    missed = exact(index + 0.5) - (exact(index) + exact(index + 1)) / 2
    return np.append(np.floor(exact(index) + missed / 2 + 0.5)[:-1], 65535).astype(np.int64)


_SIGMOID = _made_sigmoid()


def _sigmoid(x: Array, bits: int, most: int) -> Array:
    """Read the table of 256 entries at x >= 0; ``bits`` of x lie between two entries."""
    index = np.minimum(x >> bits, 254)
    low, high = _SIGMOID[index], _SIGMOID[index + 1]
    value = (low << bits) + (x & ((1 << bits) - 1)) * (high - low)
    return np.where(x >> bits >= 255, most, value)
