"""What rounding explains of an operator's own error, and what it does not.

Expected noise is measured, not assumed: the same operator on inputs that are rounded otherwise, with weights that are a
step off here and there as often as rounding puts them (variance 1/12 of a step's square). What the output's own step
adds is known from its scale. The rest of the error is held against that, channel by channel: one wrong weight strikes
one channel.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from vitrify.ir import Graph, Model, Tensor
from vitrify.quant.copying import copy_graph
from vitrify.verify.metrics import Sums

Array = np.ndarray[Any, np.dtype[Any]]

EQUAL, ROUNDING, EXCESS, FAULT = "equal", "rounding", "excess", "fault"

_STEP_POWER = 0.35
"""Of a step's square: 1/12 for the rounding of a result, the rest for kernels that round twice."""
_FLOAT_STEP = 2.0 ** -21
"""Of a float tensor's largest value: sums in another order differ by some last places of it."""
_FAULT, _EXCESS = 30.0, 9.0
_FLOAT_FAULT, _FLOAT_EXCESS = 1e5, 1e4
_FEW = 6.0
"""Few values scatter: the factor grows by this over their number."""
_FEW_CLIPPED, _CLIPPED_POWER = 0.001, 0.003
_SHIFT, _SURE = 0.35, 5.0
"""Steps by which all channels are off the same way, and how many times what they differ by among themselves."""
_TABLES = frozenset({"SOFTMAX", "LOGISTIC", "TANH", "EXP", "LOG", "RSQRT", "SQRT", "DIV", "POW", "GELU", "ELU",
                     "HARD_SWISH", "L2_NORMALIZATION", "LOG_SOFTMAX", "SQUARED_DIFFERENCE", "SIN", "COS",
                     "UNIDIRECTIONAL_SEQUENCE_LSTM", "UNIDIRECTIONAL_SEQUENCE_RNN", "GATHER"})
"""Computed by tables and short polynomials in integers."""
_TABLE_FACTOR = 10.0
_SUMS = frozenset({"CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "TRANSPOSE_CONV"})
"""What these give is spread over its steps; what tables give gathers at a few values, and rounds one way there."""
_CLIP_TIMES = 2.0
_HYBRID_FACTOR = 64.0


@dataclass
class Own:
    """The own error of one tensor over all samples: sums, and per channel what is wrong and what rounding explains."""

    sums: Sums = field(default_factory=Sums)
    error: Array = field(default_factory=lambda: np.zeros(0))
    noise: Array = field(default_factory=lambda: np.zeros(0))
    shift: Array = field(default_factory=lambda: np.zeros(0))
    count: int = 0
    clipped: float = 0.0
    clipped_power: float = 0.0
    signal: float = 0.0
    largest: float = 0.0

    def add(self, wanted: Array, got: Array, jittered: Array, tensor: Tensor) -> None:
        """Take in one sample as real numbers in the candidate's layout; ``jittered``: what rounding otherwise gives."""
        step = _step(tensor)
        self.sums.add(wanted, got, step)
        beyond = _beyond(wanted, tensor)
        with np.errstate(invalid="ignore", over="ignore"):
            wrong = np.nan_to_num(np.where(beyond > 0, 0.0, wanted.astype(np.float64) - got))
            moved = np.nan_to_num(got.astype(np.float64) - jittered)
            power = float(np.nan_to_num(np.square(wanted.astype(np.float64))).sum())
        error, noise = _channels(np.square(wrong)), _channels(np.square(moved))
        self.error = self.error + error if self.error.size else error
        self.noise = self.noise + noise if self.noise.size else noise
        moves = _channels(wrong)
        self.shift = self.shift + moves if self.shift.size else moves
        self.count += wanted.size // max(1, error.size)
        self.clipped += float((beyond > (step or 0.0)).sum())
        self.clipped_power += float(np.square(beyond).sum())
        self.signal += power
        self.largest = max(self.largest, self.sums.reference_max)

    @property
    def values(self) -> int:
        """The number of values seen."""
        return self.count * max(1, self.error.size)

    @property
    def clipped_share(self) -> float:
        """The share of values beyond what the tensor can hold."""
        return self.clipped / max(1, self.values)

    @property
    def share(self) -> float:
        """The error's share of the signal."""
        return float(self.error.sum()) / max(self.signal, 1e-60)

    def is_clipped(self, tensor: Tensor) -> bool:
        """True where more is cut off than a calibrator that leaves out outliers would, and more than rounding costs."""
        noise = float(self.expected(tensor).sum()) * self.count
        most = max(_CLIP_TIMES * noise, _CLIPPED_POWER * self.signal)
        return self.clipped_share > _FEW_CLIPPED and self.clipped_power > most

    def expected(self, tensor: Tensor) -> Array:
        """The noise power that rounding explains, per channel and value."""
        noise = self.noise / max(1, self.count)
        noise = np.maximum(noise, noise.mean()) if noise.size else noise
        step = _step(tensor)
        least = _STEP_POWER * step * step if step else (_FLOAT_STEP * self.largest) ** 2
        return noise + max(least, 1e-60)

    def expected_db(self, tensor: Tensor) -> float:
        """The SQNR that rounding alone would leave."""
        noise = float(self.expected(tensor).sum()) * self.count
        return 10 * math.log10(self.signal / noise) if self.signal > 0 and noise > 0 else math.inf

    def ratio(self, tensor: Tensor) -> float:
        """How many times the worst channel's error power is what rounding explains, 1 being the fault's limit."""
        if not self.error.size:
            return 0.0
        times = self.error / max(1, self.count) / self.expected(tensor)
        return float(times.max()) / (1.0 + _FEW / max(1, self.count))

    def is_shifted(self, tensor: Tensor) -> bool:
        """True where all channels are off the same way, as where fractions are cut off and not rounded."""
        step = _step(tensor)
        if step is None or self.shift.size < 4 or self.count < 32:
            return False
        means = self.shift / self.count / step
        return bool(abs(means.mean()) > max(_SHIFT, _SURE * means.std() / math.sqrt(means.size)))

    def verdict(self, tensor: Tensor, kinds: set[str], length: int, *, is_hybrid: bool = False) -> str:
        """Tell rounding, excess noise and fault apart; ``kinds``: the operators between the cuts."""
        if self.sums.not_finite > self.sums.not_finite_in_both:
            return FAULT
        if self.sums.equal:
            return EQUAL
        integer = _step(tensor) is not None
        fault, excess = (_FAULT, _EXCESS) if integer else (_FLOAT_FAULT, _FLOAT_EXCESS)
        factor = max(1.0, float(length)) * (_TABLE_FACTOR if integer and kinds & _TABLES else 1.0)
        factor *= _HYBRID_FACTOR if is_hybrid else 1.0
        ratio = self.ratio(tensor)
        if ratio > fault * factor:
            return FAULT
        shifted = length == 1 and kinds <= _SUMS and self.is_shifted(tensor)
        return EXCESS if ratio > excess * factor or shifted else ROUNDING

    def worst_channels(self, tensor: Tensor) -> list[int]:
        """The channels that are far beyond rounding, the worst first."""
        times = self.error / max(1, self.count) / self.expected(tensor)
        return [int(i) for i in np.argsort(-times) if times[i] > 0.05 * times.max() and times[i] > _EXCESS]


def _step(tensor: Tensor) -> float | None:
    if tensor.quantization is None or tensor.dtype.is_float:
        return None
    return float(tensor.quantization.scale.reshape(-1)[0])


def _beyond(values: Array, tensor: Tensor) -> Array:
    """How far each real value lies beyond what an integer tensor can hold."""
    kind = tensor.dtype.numpy
    if tensor.quantization is None or kind is None or kind.kind not in "iu" or kind.itemsize > 2:
        return np.zeros(values.shape, np.float32)
    info = np.iinfo(kind)
    ends = [float((end - int(tensor.quantization.zero_point.reshape(-1)[0])) * tensor.quantization.scale.reshape(-1)[0])
            for end in (info.min, info.max)]
    return np.nan_to_num(np.maximum(np.maximum(ends[0] - values, values - ends[1]), 0.0))


def _channels(power: Array) -> Array:
    if power.ndim < 2:
        return np.array([power.sum()])
    found: Array = power.reshape(-1, power.shape[-1]).sum(0)
    return found


def shaken_model(graph: Graph, seed: int = 0) -> Model:
    """Return the graph with weights that are rounded otherwise: integers a step off, floats by a last place."""
    copy, _ = copy_graph(graph)
    random = np.random.default_rng(seed)
    for tensor in list(copy.tensors()):
        data = tensor.data
        if data is None or not data.size:
            continue
        if tensor.quantization is not None and data.dtype in (np.int8, np.uint8):
            info = np.iinfo(data.dtype)
            moved = data.astype(np.int16) + random.choice(np.array([-1, 0, 1], np.int16), data.shape, p=_ODDS)
            tensor.data = np.clip(moved, info.min, info.max).astype(data.dtype)
        elif data.dtype in (np.float32, np.float16) and np.isfinite(data).all():
            tiny = np.finfo(data.dtype).eps
            shift = random.choice(np.array([-1, 1], np.float32), data.shape)
            tensor.data = (data * (1 + tiny * shift)).astype(data.dtype)
    return Model([copy])


_ODDS = (1 / 24, 11 / 12, 1 / 24)


def shaken_value(value: Array, tensor: Tensor, random: np.random.Generator) -> Array:
    """Return real values moved by up to half a step of the tensor, or by a last place."""
    step = _step(tensor)
    if value.dtype.kind != "f":
        return value
    if step is not None:
        return (value + random.uniform(-step / 2, step / 2, value.shape)).astype(np.float32)
    up = random.integers(0, 2, value.shape).astype(bool)
    with np.errstate(over="ignore"):
        return np.nextafter(value.astype(np.float32), np.where(up, np.float32(np.inf), np.float32(-np.inf)))
