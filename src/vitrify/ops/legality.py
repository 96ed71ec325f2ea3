"""What the runtime refuses, dies of, or silently gets wrong in a quantized node.

Every limit here was found by running LiteRT 2.3 on models of one operator; the tests run them again.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from vitrify.core.findings import Finding, Severity
from vitrify.ir.dtypes import DType
from vitrify.ir.graph import Node, Tensor
from vitrify.ir.int8 import Int8Rule
from vitrify.ir.quantization import Quantization

STEPS = (DType.INT8, DType.UINT8)
BIAS_TOLERANCE = 1e-3
"""Relative distance of a bias scale from input scale * weight scale that rounding of scales explains."""

MOST_MULTIPLIER = 255.0
"""Input scale * weight scale / output scale of a layer that XNNPACK takes: at 256 LiteRT's interpreter does not open
the file, or dies of it. One step of a sum is as wide as the whole output then, so more of it says no more."""


def finding(node: Node, code: str, problem: str, why: str = "", help: str = "",
            severity: Severity = Severity.ERROR) -> Finding:
    """Build a finding about a node; ``problem`` goes on after the operator and the node's name."""
    return Finding(code=code, headline=f"{node.op.kind} '{node.name}' {problem}", severity=severity,
                   where=f"node '{node.name}'" + (f" from {node.origin}" if node.origin.sources else ""),
                   why=why, help=help)


def quantized(tensor: Tensor | None) -> Quantization | None:
    """Return the quantization of an int8 or uint8 tensor, None for all others."""
    return tensor.quantization if tensor is not None and tensor.dtype in STEPS else None


def scale_of(tensor: Tensor | None) -> float | None:
    """Return the scale of an int8 or uint8 tensor that has one scale."""
    found = quantized(tensor)
    return float(found.scale[0]) if found is not None and found.scale.size == 1 else None


def broken_rules(node: Node, rule: Int8Rule) -> Iterator[Finding]:
    """Yield where a node does not keep to the int8 rule of its operator."""
    yield from _unequal_scales(node, rule)
    yield from _free_outputs(node, rule)
    yield from _per_axis_activations(node, rule)
    if rule.weight is not None:
        yield from _weights(node, rule, rule.weight)
        yield from _bias(node, rule, rule.weight)
        yield from _multiplier(node, rule.weight)


def _unequal_scales(node: Node, rule: Int8Rule) -> Iterator[Finding]:
    for index in rule.shared(len(node.inputs)):
        tensor = node.inputs[index]
        given = quantized(tensor)
        for output in node.outputs:
            wanted = quantized(output)
            if tensor is not None and given is not None and wanted is not None and given != wanted:
                yield finding(node, "ops.unequal_scales",
                              f"brings '{tensor.name}' ({given}) to '{output.name}' ({wanted}), but they must be equal",
                              "the kernel passes the steps on as they are, or refuses to prepare",
                              f"give both tensors one scale and zero point, or put a QUANTIZE after '{tensor.name}'")


def _free_outputs(node: Node, rule: Int8Rule) -> Iterator[Finding]:
    if rule.output is None:
        return
    scale, zero_point = rule.output
    for output in node.outputs:
        found = quantized(output)
        if output.dtype is DType.INT8 and found is not None and found != Quantization.per_tensor(scale, zero_point):
            yield finding(node, "ops.output_scale", f"has the output {found}, but its int8 kernel demands scale "
                          f"{scale:.6g}, zero point {zero_point}", "the kernel is a table for that output alone",
                          f"give '{output.name}' that scale, and put a QUANTIZE after it where another one is needed")


def _per_axis_activations(node: Node, rule: Int8Rule) -> Iterator[Finding]:
    for index, tensor in enumerate((*node.inputs, *node.outputs)):
        found = quantized(tensor)
        if tensor is not None and found is not None and found.is_per_axis and index != rule.weight:
            yield finding(node, "ops.per_axis", f"has {found} on '{tensor.name}', where only one scale is read",
                          "the kernel reads the first scale and ignores the others", "quantize that tensor per tensor")


def _weights(node: Node, rule: Int8Rule, index: int) -> Iterator[Finding]:
    weights = node.optional(index)
    found = quantized(weights)
    if weights is None or found is None or weights.dtype is not DType.INT8:
        return
    if np.any(found.zero_point != 0):
        yield finding(node, "ops.weight_zero_point", f"has weights with zero point {int(found.zero_point.max())}, "
                      "which must be 0", "the int8 kernels take weights as symmetric", "quantize the weights again, "
                      "symmetric")
    if found.is_per_axis and found.axis != rule.weight_axis:
        yield finding(node, "ops.weight_axis", f"has weight scales on axis {found.axis}, the kernel reads them on axis "
                      f"{rule.weight_axis}")


def needs_bias(node: Node, index: int, what: str) -> Iterator[Finding]:
    """Yield a quantized node that lacks its bias, without which the runtime does ``what``."""
    if quantized(node.input(0)) is not None and node.optional(index) is None:
        yield finding(node, "ops.no_bias", f"has integers and no bias; the runtime {what}",
                      help="give it a bias of zeros, int32 with the scale input scale * weight scale")


def _bias(node: Node, rule: Int8Rule, weight: int) -> Iterator[Finding]:
    bias = node.optional(rule.bias) if rule.bias is not None else None
    weights = quantized(node.optional(weight))
    data = next((scale_of(t) for i, t in enumerate(node.inputs)
                 if i not in (weight, rule.bias) and quantized(t) is not None), None)
    if bias is None or bias.quantization is None or bias.dtype is not DType.INT32 or weights is None or data is None:
        return
    wanted = np.float64(data) * weights.scale.astype(np.float64)
    given = bias.quantization.scale.astype(np.float64)
    if given.size not in (1, wanted.size) and wanted.size != 1:
        yield finding(node, "ops.bias_scale", f"has {given.size} bias scales for {wanted.size} weight scales")
        return
    off = np.abs(given - wanted) > BIAS_TOLERANCE * wanted
    if np.any(off):
        at = int(np.argmax(np.broadcast_to(off, np.broadcast_shapes(given.shape, wanted.shape))))
        shown = float(given[min(at, given.size - 1)]), float(wanted[min(at, wanted.size - 1)])
        yield finding(node, "ops.bias_scale", f"has bias scale {shown[0]:.6g}, the kernel takes it for {shown[1]:.6g}, "
                      "input scale times weight scale", "the int32 sums have that scale; the bias is added as it is",
                      "quantize the bias again with that scale")


def _multiplier(node: Node, index: int) -> Iterator[Finding]:
    """Yield a layer whose sums have steps too wide for XNNPACK."""
    weights, x, y = quantized(node.optional(index)), scale_of(node.inputs[0]), scale_of(node.output)
    if weights is None or x is None or y is None or not y:
        return
    largest = float(weights.scale.max()) * x / y
    if largest >= MOST_MULTIPLIER + 1:
        yield finding(node, "ops.multiplier", f"multiplies its sums by {largest:.4g}, below 256 XNNPACK takes them",
                      why="LiteRT with its default kernels does not open the file, or ends the process",
                      help="narrow the weight scale of the widest channel, or compute the layer in 16 bits",
                      severity=Severity.WARNING)


def too_many_axes(node: Node, limit: int) -> Iterator[Finding]:
    """Yield a finding when an input or output has more than ``limit`` axes."""
    most = max((len(t.shape) for t in (*node.inputs, *node.outputs) if t is not None), default=0)
    if most > limit:
        yield finding(node, "ops.rank", f"has {most} axes, the runtime takes at most {limit}", "",
                      "join axes of extent 1, or neighbouring ones, with a RESHAPE before and after")


def narrow_output(node: Node, limit: float, formula: str) -> Iterator[Finding]:
    """Yield a finding when the output scale is not above ``limit``, at which the kernel's multiplier reaches 1."""
    scale = scale_of(node.output)
    if scale is None or scale > limit:
        return
    least = np.nextafter(np.float32(limit), np.float32(np.inf))
    least = least if float(least) > limit else np.nextafter(least, np.float32(np.inf))
    yield finding(node, "ops.multiplier", f"has output scale {scale:.6g}, the smallest legal one is {float(least):.9g}",
                  f"at {formula} or below, the kernel's output multiplier is 1 or more and the runtime aborts",
                  f"widen the range of '{node.output.name}' so that its scale is at least {float(least):.9g}")
