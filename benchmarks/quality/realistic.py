"""Random detectors that behave as trained ones do: their filters lie in the span of what they see.

Gradient descent adds to each filter multiples of the windows that it was shown, so trained filters answer to the
structure of the data and average out what is not in it. Independent random weights do neither: every layer of them
passes all noise on, and after 60 layers nothing of a picture is left that could be told from rounding errors. Here each
filter is a random sum of windows from pictures, with some independent noise; every layer is scaled to the statistics
that batch normalisation would have left, and the last layers to the answers of a detector: a few confident scores, and
distributions over distances with one peak.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx
import torch
from onnx import numpy_helper
from torch.nn import functional

Array = np.ndarray[Any, np.dtype[Any]]
Values = dict[str, Any]

SEEN = 0.98
"""Share of a filter that comes from windows of the data; the rest is independent noise."""
WINDOWS = 256
"""Windows that a filter sums."""
SCORES = re.compile(r"/(one2one_)?cv3\.\d/\1?cv3\.\d\.2/Conv")
DISTANCES = re.compile(r"/(one2one_)?cv2\.\d/\1?cv2\.\d\.2/Conv")
FOUND = 40
"""Confident scores in a picture, about, at each scale."""
CONFIDENT = -1.1
"""The logit of a score of 0.25."""


def make_realistic(model: onnx.ModelProto, pictures: Array, seed: int = 0) -> None:
    """Give the convolutions of a YOLO weights as described, layer after layer, on ``pictures`` [n,c,h,w]."""
    random = np.random.default_rng(seed)
    graph = model.graph
    stored = {t.name: t for t in graph.initializer}
    values: Values = {name: torch.from_numpy(numpy_helper.to_array(t).copy()) for name, t in stored.items()}
    values[graph.input[0].name] = torch.from_numpy(pictures)
    with torch.no_grad():
        for node in graph.node:
            if node.op_type == "Constant":
                values[node.output[0]] = torch.from_numpy(np.array(numpy_helper.to_array(node.attribute[0].t)))
            elif node.op_type == "Conv" and node.input[0] in values and "/dfl/" not in node.name:
                _settle(node, values, random)
                for name in node.input[1:]:
                    stored[name].CopyFrom(numpy_helper.from_array(values[name].numpy(), name))
            run = RUN.get(node.op_type)
            if run is not None and all(not name or name in values for name in node.input):
                made = run([values[name] if name else None for name in node.input],
                           {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute})
                values |= dict(zip(node.output, made if isinstance(made, tuple) else (made,), strict=True))


def _settle(node: onnx.NodeProto, values: Values, random: np.random.Generator) -> None:
    """Give one convolution its weights and bias."""
    attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
    x, old = values[node.input[0]], values[node.input[1]]
    weights = torch.from_numpy(random.standard_normal(tuple(old.shape)).astype(np.float32))
    groups = attributes.get("group", 1)
    if groups == 1:
        seen = _windows(x, old.shape, attributes, random)
        sums = torch.from_numpy(random.standard_normal((len(old), len(seen))).astype(np.float32)) @ seen
        weights = SEEN * _unit(sums.view(old.shape)) + (1 - SEEN ** 2) ** 0.5 * _unit(weights)
    bias = torch.zeros(len(old))
    if DISTANCES.search(node.name) and len(old) >= 64:
        weights = _peaked(old.shape, random)
    y = _conv([x, weights, bias], attributes)
    mean, deviation = y.mean((0, 2, 3)), y.std((0, 2, 3)).clamp(min=1e-6)
    gain = torch.from_numpy(random.uniform(0.5, 1.5, len(old)).astype(np.float32))
    bias = torch.from_numpy((0.3 * random.standard_normal(len(old))).astype(np.float32))
    if SCORES.search(node.name):
        gain = 1.5 * torch.ones(len(old))
        shaped = (y - mean.view(1, -1, 1, 1)) / deviation.view(1, -1, 1, 1) * 1.5
        share = min(FOUND * len(x) / shaped.numel(), 0.5)
        level = float(np.quantile(shaped.numpy(), 1 - share))
        bias = torch.full((len(old),), CONFIDENT - level)
    elif DISTANCES.search(node.name) and len(old) >= 64:
        slope = (y.view(len(y), 4, -1, *y.shape[2:]).diff(dim=2).abs()).mean()
        values[node.input[1]], values[node.input[2]] = weights * (1.5 / slope), torch.zeros(len(old))
        return
    elif DISTANCES.search(node.name):
        gain, bias = torch.ones(len(old)), torch.full((len(old),), 3.0)        # distances of some cells
    factor = gain / deviation
    values[node.input[1]] = (weights * factor.view(-1, 1, 1, 1)).contiguous()
    values[node.input[2]] = bias - mean * factor


def _windows(x: torch.Tensor, shape: Sequence[int], attributes: dict[str, Any], random: np.random.Generator
             ) -> torch.Tensor:
    """Windows of the input at random places, without their mean: [windows, inputs of an output]."""
    pads = attributes.get("pads", [0, 0, 0, 0])
    padded = functional.pad(x, (pads[1], pads[3], pads[0], pads[2]))
    height, width = shape[2:]
    rows = random.integers(0, padded.shape[2] - height + 1, WINDOWS)
    columns = random.integers(0, padded.shape[3] - width + 1, WINDOWS)
    seen = torch.stack([padded[i % len(x), :, r:r + height, c:c + width].reshape(-1)
                        for i, (r, c) in enumerate(zip(rows, columns, strict=True))])
    return seen - seen.mean(0)


def _unit(weights: torch.Tensor) -> torch.Tensor:
    return weights / weights.flatten(1).norm(dim=1).clamp(min=1e-9).view(-1, 1, 1, 1)


def _peaked(shape: Sequence[int], random: np.random.Generator) -> torch.Tensor:
    """Weights by which each input votes for a distance: the sum of their votes has one peak."""
    bins, inputs = shape[0] // 4, shape[1]
    center = random.uniform(0, bins * 0.8, (4, 1, inputs))
    strength = random.exponential(1.0, (4, 1, inputs))
    votes = -np.abs(np.arange(bins).reshape(1, -1, 1) - center) * strength
    votes -= votes.mean(1, keepdims=True)
    return torch.from_numpy(votes.reshape(shape[0], inputs, 1, 1).astype(np.float32))


def _conv(x: Sequence[Any], a: dict[str, Any]) -> torch.Tensor:
    pads = a.get("pads", [0, 0, 0, 0])
    padded = functional.pad(x[0], (pads[1], pads[3], pads[0], pads[2]))
    return functional.conv2d(padded, x[1], x[2] if len(x) > 2 else None, stride=a.get("strides", [1, 1]),
                             dilation=a.get("dilations", [1, 1]), groups=a.get("group", 1))


def _pool(x: Sequence[Any], a: dict[str, Any]) -> torch.Tensor:
    pads = a.get("pads", [0, 0, 0, 0])
    padded = functional.pad(x[0], (pads[1], pads[3], pads[0], pads[2]), value=-np.inf)
    return functional.max_pool2d(padded, a["kernel_shape"], a.get("strides", [1, 1]))


def _resize(x: Sequence[Any], a: dict[str, Any]) -> torch.Tensor:
    return x[0].repeat_interleave(int(x[2][2]), 2).repeat_interleave(int(x[2][3]), 3)


def _split(x: Sequence[Any], a: dict[str, Any]) -> tuple[torch.Tensor, ...]:
    return tuple(x[0].split(x[1].tolist(), a.get("axis", 0)))


def _reshape(x: Sequence[Any], a: dict[str, Any]) -> torch.Tensor:
    shape = [x[0].shape[i] if n == 0 else n for i, n in enumerate(x[1].tolist())]
    return x[0].reshape(len(x[0]), *shape[1:])          # written for one picture, run on several


def _upsample(x: Sequence[Any], a: dict[str, Any]) -> torch.Tensor:
    return functional.conv_transpose2d(x[0], x[1], x[2] if len(x) > 2 else None, stride=a.get("strides", [1, 1]))


RUN: dict[str, Callable[[Sequence[Any], dict[str, Any]], Any]] = {
    "Conv": _conv,
    "MaxPool": _pool,
    "Resize": _resize,
    "Split": _split,
    "Reshape": _reshape,
    "ConvTranspose": _upsample,
    "Sigmoid": lambda x, a: torch.sigmoid(x[0]),
    "Mul": lambda x, a: x[0] * x[1],
    "Add": lambda x, a: x[0] + x[1],
    "Concat": lambda x, a: torch.cat(list(x), a["axis"]),
    "Softmax": lambda x, a: torch.softmax(x[0], a.get("axis", -1)),
    "MatMul": lambda x, a: x[0] @ x[1],
    "Transpose": lambda x, a: x[0].permute(a["perm"]),
}
"""Operators of the layers before the decoding; what comes after is left alone."""
