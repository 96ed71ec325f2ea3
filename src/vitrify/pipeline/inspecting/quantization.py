"""Quantization parameters in words: what a scale and a zero point stand for, whether that is usual, what is lost."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from vitrify.ir import Graph, Model, Node, Tensor
from vitrify.ops import Concatenation, Logistic, LogSoftmax, Quantize, Softmax, Tanh
from vitrify.results import QuantizationRow

Array = np.ndarray[Any, np.dtype[Any]]

FEW_LEVELS = 32
"""A tensor that enters another with fewer levels than this is told of; 1 level is none."""

CROWDED = 0.02
"""Share of the values of a constant at an end of its type, from which it counts as saturated."""

NOTHING = 1e-12
"""A scale below this stands for a tensor that was constant zero."""

FIXED: dict[type[Any], str] = {
    Logistic: "the kernel of LOGISTIC demands exactly these", Softmax: "the kernel of SOFTMAX demands exactly these",
    LogSoftmax: "the kernel of LOG_SOFTMAX demands exactly these", Tanh: "the kernel of TANH demands exactly these"}


def quantization_rows(model: Model) -> list[QuantizationRow]:
    """Explain every quantized tensor of a model: inputs and outputs first, then what is in trouble, then the rest."""
    graph = model.main
    rows, known = contract_rows(model), {*graph.inputs, *graph.outputs}
    inner = [_row(t, "constant" if t.is_constant else "tensor") for t in graph.tensors()
             if _has_steps(t) and t not in known and t.dtype.bits <= 16]
    rows += sorted([*inner, *_squeezed(graph)], key=lambda row: row.verdict == "usual")
    return rows


def contract_rows(model: Model) -> list[QuantizationRow]:
    """Explain what a model takes and gives in integers, with the lines of code that convert real values."""
    graph = model.main
    ends = [*((t, "input") for t in graph.inputs), *((t, "output") for t in graph.outputs)]
    return [_row(tensor, role) for tensor, role in ends if _has_steps(tensor)]


def _has_steps(tensor: Tensor) -> bool:
    kind = tensor.dtype.numpy
    return tensor.quantization is not None and tensor.quantization.scale.size > 0 and kind is not None and \
        np.dtype(kind).kind in "iu"


def _row(tensor: Tensor, role: str) -> QuantizationRow:
    verdict, problem = _constant_verdict(tensor) if tensor.is_constant else _verdict(tensor)
    text = f"{_interval(tensor)}{'; ' + problem if problem else ''}{_bytes(tensor) if role == 'input' else ''}"
    python = c = cast = ""
    if role in ("input", "output") and tensor.quantization is not None and tensor.quantization.scale.size == 1:
        python, c, cast = _python(tensor, role), _c(tensor, role), _wrong_cast(tensor, role)
    return QuantizationRow(tensor=tensor.name, role=role, verdict=verdict, text=text, python=python, c=c, cast=cast)


def _bytes(tensor: Tensor) -> str:
    """How 8-bit pixels become an input of integers: a cast alone is the usual mistake."""
    quantization = tensor.quantization
    assert quantization is not None
    if tensor.dtype.label not in ("int8", "uint8") or quantization.scale.size != 1:
        return ""
    if abs(float(quantization.scale[0]) * 255 - 1) < 0.01:
        taken = "pixel - 128" if tensor.dtype.label == "int8" else "pixel"
        if int(quantization.zero_point[0]) == _limits(tensor)[0]:
            return f"; for pixels of 0..255 that mean 0..1, q = {taken}" + _cast(tensor)
    return _cast(tensor)


def _cast(tensor: Tensor) -> str:
    return "; casting bytes to int8 is wrong: 200 would become -56, 200 - 128 = 72 is meant" \
        if tensor.dtype.label == "int8" else ""


def _wrong_cast(tensor: Tensor, role: str) -> str:
    """What a plain cast between the two 8-bit types does to half of the values."""
    if tensor.dtype.label == "int8":
        return "casting bytes to int8 turns 200 into -56, where 72 has the same meaning" if role == "input" else \
            "read as bytes, -56 becomes 200, where 72 has the same meaning"
    if tensor.dtype.label == "uint8":
        return "casting int8 values to bytes turns -56 into 200, where 72 has the same meaning" if role == "input" \
            else "read as int8, 200 becomes -56, where 72 has the same meaning"
    return ""


def _limits(tensor: Tensor) -> tuple[int, int]:
    info = np.iinfo(np.dtype(tensor.dtype.numpy))
    return int(info.min), int(info.max)


def _interval(tensor: Tensor) -> str:
    """What the integers of a tensor stand for, and why the zero point is where it is."""
    quantization = tensor.quantization
    assert quantization is not None
    low, high = _limits(tensor)
    if quantization.scale.size > 1:
        scales = quantization.scale
        return (f"{scales.size} scales along axis {quantization.axis}, {float(scales.min()):.3g} to "
                f"{float(scales.max()):.3g}: each channel has steps that fit its own values")
    scale, zero = float(quantization.scale[0]), int(quantization.zero_point[0])
    first, last = scale * (low - zero), scale * (high - zero)
    return (f"{tensor.dtype.label} {low}..{high} stands for {first:.5g}..{last:.5g} in steps of {_step(scale)}; "
            f"{_zero(tensor, scale, zero, low, high)}")


def _step(scale: float) -> str:
    """A scale, as a fraction where it is one that people know."""
    for bottom in (255, 256, 128, 127.5, 32768, 65536):
        if abs(scale * bottom - 1) < 1e-5:
            return f"{scale:.6g} (1/{bottom:g})"
    return f"{scale:.6g}"


def _zero(tensor: Tensor, scale: float, zero: int, low: int, high: int) -> str:
    if zero == low:
        why = f"zero point {zero} puts 0 on the lowest level, since no value is below 0"
        top = scale * (high - low)
        if abs(top - 1) < 0.005:
            why += ": usual and right for values in [0, 1], as probabilities, scores and pixels are"
        elif abs(top - 6) < 0.03:
            why += ": usual behind a RELU6"
        return why + _fixed(tensor)
    if zero == high:
        return f"zero point {zero} puts 0 on the highest level, since no value is above 0"
    if zero == 0 and low < 0:
        return "zero point 0: as many levels below 0 as above" + _fixed(tensor)
    share = (high - zero) / (high - low)
    return f"zero point {zero} stands for 0; {share:.0%} of the levels are for values above it"


def _fixed(tensor: Tensor) -> str:
    made = tensor.producer
    return f" ({FIXED[type(made.op)]})" if made is not None and type(made.op) in FIXED else ""


def _verdict(tensor: Tensor) -> tuple[str, str]:
    quantization = tensor.quantization
    assert quantization is not None
    if float(quantization.scale.max()) < NOTHING:
        return "dead", "dead: calibration saw nothing but 0 in it, so whatever it computes is 0"
    if float(quantization.scale.max()) > 1e6:
        return "coarse", ("a step this large means that something like a mask or -infinity is in its range; ordinary "
                          "values all become the same level")
    return "usual", ""


def _constant_verdict(tensor: Tensor) -> tuple[str, str]:
    """Channels that hold nothing, and values that pile up at the ends."""
    data, quantization = tensor.data, tensor.quantization
    assert data is not None
    assert quantization is not None
    if data.size < 2 or tensor.dtype.bits > 8:
        return "usual", ""
    axis = quantization.axis if quantization.scale.size > 1 else None
    zeros = quantization.zero_point if axis is not None else quantization.zero_point[:1]
    if axis is not None:
        others = tuple(a for a in range(data.ndim) if a != axis)
        largest = np.maximum(data.max(axis=others).astype(np.int64) - zeros, zeros - data.min(axis=others))
        dead = int((largest == 0).sum())
        if dead:
            return "dead", f"dead: {dead} of {largest.size} channels hold nothing but 0 and contribute nothing"
    elif not np.any(data.astype(np.int64) - int(zeros[0])):
        return "dead", "dead: it holds nothing but 0"
    low, high = _limits(tensor)
    ends = float(np.mean((data >= high) | (data <= low + 1)))
    channels = quantization.scale.size
    expected = 2 * channels / data.size                   # an end or two of each channel stand there by right
    if ends > max(CROWDED, 2 * expected) and len(np.unique(data)) > 8:
        return "saturated", f"saturated: {ends:.1%} of its values stand at an end, larger ones were cut off"
    return "usual", ""


def _squeezed(graph: Graph) -> Iterator[QuantizationRow]:
    """Tensors that enter another one's scale with few of its levels: one scale for parts of very different range."""
    for node in graph:
        if not isinstance(node.op, Quantize | Concatenation) or not _has_steps(node.output):
            continue
        for tensor in node.inputs:
            if tensor is not None and _has_steps(tensor) and not tensor.is_constant:
                levels = _levels(tensor, node)
                if levels < FEW_LEVELS:
                    yield QuantizationRow(
                        tensor=tensor.name, role="joined", verdict="squeezed",
                        text=f"squeezed: '{node.output.name}' keeps {levels} of its 256 levels, as its step of "
                             f"{_scale(node.output):.4g} is that of larger values beside it; "
                             f"{'what it says is lost' if levels < 3 else 'fine differences are lost'}")


def _levels(tensor: Tensor, node: Node) -> int:
    low, high = _limits(tensor)
    return int(min(256, _scale(tensor) * (high - low) / max(_scale(node.output), 1e-30))) + 1


def _scale(tensor: Tensor) -> float:
    return float(tensor.quantization.scale.max()) if tensor.quantization is not None else 1.0


def _python(tensor: Tensor, role: str) -> str:
    scale, zero, low, high = _parameters(tensor)
    if role == "output":
        return f"x = (q.astype(np.float32){_plus(-zero)}) * np.float32({scale!r})"
    return (f"q = np.clip(np.round(x / np.float32({scale!r})){_plus(zero)}, {low}, {high})"
            f".astype(np.{tensor.dtype.label})")


def _c(tensor: Tensor, role: str) -> str:
    scale, zero, low, high = _parameters(tensor)
    if role == "output":
        return f"float x = (q{_plus(-zero)}) * {scale!r}f;"
    number = f"fminf(fmaxf(rintf(x / {scale!r}f){_plus(zero)}, {low}), {high})"
    return f"{tensor.dtype.label}_t q = ({tensor.dtype.label}_t){number};"


def _parameters(tensor: Tensor) -> tuple[float, int, int, int]:
    quantization = tensor.quantization
    assert quantization is not None
    return float(quantization.scale[0]), int(quantization.zero_point[0]), *_limits(tensor)


def _plus(number: int) -> str:
    return f" {'+' if number > 0 else '-'} {abs(number)}" if number else ""
