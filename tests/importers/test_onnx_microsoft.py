"""ONNX Runtime's own operators (domain com.microsoft) against ONNX Runtime itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from onnx_makers import Array, Feed, by_litert, by_runtime, imported, model, saved, sqnr_db

from vitrify.core.errors import ModelError, UnsupportedError
from vitrify.importers import load
from vitrify.passes import optimize

RNG = np.random.default_rng(3)


def f32(*shape: int, low: float = -1.0, high: float = 1.0) -> Array:
    """Random constants."""
    return RNG.uniform(low, high, shape).astype(np.float32)


@dataclass
class Fused:
    """One node of the domain. A shape is a random float input, an array a constant, a Feed an input, None left out."""

    kind: str
    inputs: Sequence[tuple[int, ...] | Array | Feed | None]
    attributes: Mapping[str, Any] = field(default_factory=dict)
    outputs: tuple[str, ...] = ("y0",)
    least_db: float = 110.0
    domain: str = "com.microsoft"

    def feeds(self) -> dict[str, Array]:
        """The graph inputs' values."""
        rng = np.random.default_rng(7)
        found = {}
        for i, given in enumerate(self.inputs):
            if isinstance(given, tuple):
                found[f"x{i}"] = rng.normal(size=given).astype(np.float32)
            elif isinstance(given, Feed):
                found[f"x{i}"] = given.values
        return found

    def proto(self) -> onnx.ModelProto:
        """The model."""
        names = [f"x{i}" if given is not None else "" for i, given in enumerate(self.inputs)]
        node = helper.make_node(self.kind, names, list(self.outputs), "the node", domain=self.domain, **self.attributes)
        constants = {f"x{i}": given for i, given in enumerate(self.inputs) if isinstance(given, np.ndarray)}
        proto = model([node], self.feeds(), constants, [o for o in self.outputs if o], 17)
        proto.opset_import.append(helper.make_opsetid("com.microsoft", 1))
        return proto


MASK = Feed(np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], np.int32))
IDS = Feed(np.array([[1, 4, 2], [0, 3, 3]], np.int32))
CONV = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}
BYTES = np.random.default_rng(5).integers(0, 256, 8 * 2 * 16, np.uint8)
ANGLES = np.random.default_rng(6).uniform(0, 3, (6, 4)).astype(np.float32)

CASES = {
    "fused conv, relu": Fused("FusedConv", [(1, 3, 6, 6), f32(4, 3, 3, 3), f32(4)], {"activation": "Relu", **CONV}),
    "fused conv, clip": Fused("FusedConv", [(1, 3, 6, 6), f32(4, 3, 3, 3)],
                              {"activation": "Clip", "activation_params": [-0.5, 0.75], **CONV}),
    "fused conv, leaky relu": Fused("FusedConv", [(1, 3, 6, 6), f32(4, 3, 3, 3), f32(4)],
                                    {"activation": "LeakyRelu", "activation_params": [0.3], **CONV}),
    "fused conv, hard sigmoid": Fused("FusedConv", [(1, 3, 6, 6), f32(4, 3, 3, 3), f32(4)],
                                      {"activation": "HardSigmoid", "activation_params": [0.2, 0.4], **CONV}),
    "fused conv, sum": Fused("FusedConv", [(1, 3, 6, 6), f32(4, 3, 3, 3), f32(4), (1, 4, 6, 6)],
                             {"activation": "Relu", **CONV}),
    "fused conv, groups": Fused("FusedConv", [(1, 4, 6, 6), f32(4, 1, 3, 3), f32(4)],
                                {"activation": "Tanh", "group": 4, **CONV}),
    "fused gemm": Fused("FusedGemm", [(2, 5), f32(5, 3), f32(3)], {"activation": "Relu", "alpha": 0.5}),
    "fused gemm, leaky": Fused("FusedGemm", [(2, 5), f32(3, 5), f32(3)],
                               {"activation": "LeakyRelu", "activation_alpha": 0.2, "transB": 1}),
    "fused matmul": Fused("FusedMatMul", [(2, 3, 4), (2, 5, 4)], {"alpha": 0.25, "transB": 1}),
    "fused matmul, both": Fused("FusedMatMul", [(2, 4, 3), (2, 5, 4)], {"transA": 1, "transB": 1}),
    "fused matmul, constant": Fused("FusedMatMul", [(2, 3, 4), f32(5, 4)], {"transB": 1}),
    "transpose matmul": Fused("TransposeMatMul", [(2, 4, 3), (2, 4, 5)], {"transA": 1}),
    "gelu": Fused("Gelu", [(2, 30)]),
    "bias gelu": Fused("BiasGelu", [(2, 3, 8), f32(8)]),
    "fast gelu": Fused("FastGelu", [(2, 30)], least_db=90),
    "fast gelu, bias": Fused("FastGelu", [(2, 3, 8), f32(8)], least_db=90),
    "quick gelu": Fused("QuickGelu", [(2, 30)], {"alpha": 1.5}),
    "quick gelu is silu": Fused("QuickGelu", [(2, 30)], {"alpha": 1.0}),
    "layer norm": Fused("LayerNormalization", [(2, 3, 8), f32(8), f32(8)], {"epsilon": 1e-3}, domain=""),
    "simplified layer norm": Fused("SimplifiedLayerNormalization", [(2, 3, 8), f32(8)], {"epsilon": 1e-3}, domain=""),
    "skip layer norm": Fused("SkipLayerNormalization", [(2, 3, 8), (2, 3, 8), f32(8), f32(8), f32(8)]),
    "skip layer norm, sum": Fused("SkipLayerNormalization", [(2, 3, 8), (2, 3, 8), f32(8), f32(8)],
                                  {"epsilon": 1e-4}, ("y0", "", "", "y3")),
    "skip simplified layer norm": Fused("SkipSimplifiedLayerNormalization", [(2, 3, 8), (2, 3, 8), f32(8)],
                                        {"epsilon": 1e-4}, ("y0", "", "", "y3")),
    "attention": Fused("Attention", [(2, 5, 8), f32(8, 24), f32(24)], {"num_heads": 2}),
    "attention, causal": Fused("Attention", [(2, 5, 8), f32(8, 24), f32(24)], {"num_heads": 2, "unidirectional": 1}),
    "attention, mask": Fused("Attention", [(2, 5, 8), f32(8, 24), f32(24), MASK], {"num_heads": 2}),
    "attention, bias": Fused("Attention", [(2, 5, 8), f32(8, 24), f32(24), None, None, (2, 2, 5, 5)],
                             {"num_heads": 2, "scale": 0.3}),
    "attention, sizes": Fused("Attention", [(2, 5, 8), f32(8, 20), f32(20)],
                              {"num_heads": 2, "qkv_hidden_sizes": [8, 8, 4]}),
    "multi-head attention": Fused("MultiHeadAttention", [(2, 3, 8), (2, 5, 8), (2, 5, 8), f32(24)], {"num_heads": 4}),
    "multi-head attention, mask": Fused("MultiHeadAttention", [(2, 3, 8), (2, 5, 8), (2, 5, 8), None, MASK],
                                        {"num_heads": 2, "scale": 0.2}),
    "grouped queries": Fused("GroupQueryAttention",
                             [(2, 3, 32), (2, 3, 16), (2, 3, 16), None, None, np.array([2, 2], np.int32),
                              np.array(3, np.int32)], {"num_heads": 4, "kv_num_heads": 2}, ("y0", "p1", "p2")),
    "embeddings": Fused("EmbedLayerNormalization",
                        [IDS, Feed(np.array([[0, 1, 1], [0, 0, 1]], np.int32)), f32(6, 8), f32(7, 8), f32(2, 8), f32(8),
                         f32(8)], {"epsilon": 1e-5}, ("y0", "")),
    "embeddings, no segments": Fused("EmbedLayerNormalization",
                                     [IDS, None, f32(6, 8), f32(7, 8), None, f32(8), f32(8)], {}, ("y0", "")),
    "rotary": Fused("RotaryEmbedding", [(2, 3, 3, 8), Feed(np.array([[0, 1, 2], [3, 4, 5]], np.int64)), np.cos(ANGLES),
                                        np.sin(ANGLES)]),
    "rotary, interleaved": Fused("RotaryEmbedding", [(2, 3, 16), Feed(np.array([[0, 1, 2], [3, 4, 5]], np.int64)),
                                                     np.cos(ANGLES), np.sin(ANGLES)], {"interleaved": 1}),
    "4-bit weights": Fused("MatMulNBits", [(2, 32), BYTES.reshape(8, 2, 16)[:, :, :8], f32(16, low=0.01)],
                           {"K": 32, "N": 8, "bits": 4, "block_size": 16}, least_db=100),
    "4-bit weights, zero points": Fused("MatMulNBits", [(2, 32), BYTES.reshape(8, 2, 16)[:, :, :8], f32(16, low=0.01),
                                                        BYTES[:8]],
                                        {"K": 32, "N": 8, "bits": 4, "block_size": 16}, least_db=100),
    "quantized attention": Fused(
        "QAttention", [Feed(np.random.default_rng(1).integers(0, 256, (2, 5, 8)).astype(np.uint8)),
                       np.random.default_rng(2).integers(-127, 128, (8, 24)).astype(np.int8), f32(24),
                       np.array(0.02, np.float32), np.array(0.01, np.float32), MASK, np.array(120, np.uint8),
                       np.array(0, np.int8)], {"num_heads": 2}, least_db=100),
    "expand dims": Fused("ExpandDims", [(2, 3), np.array(1, np.int32)]),
    "pad": Fused("Pad", [(2, 3), np.array([0, 1, 1, 0], np.int64), np.array(0.5, np.float32)]),
    "gather nd": Fused("GatherND", [(3, 4), np.array([[0, 1], [2, 3]], np.int64)]),
    "matmul integer to float": Fused(
        "MatMulIntegerToFloat", [Feed(np.arange(8, dtype=np.uint8).reshape(2, 4) * 9),
                                 np.arange(-10, 10, dtype=np.int8).reshape(4, 5), np.array(0.1, np.float32),
                                 f32(5, low=0.01), np.array(7, np.uint8), np.zeros(5, np.int8), f32(5)]),
    "dynamic quantize matmul": Fused(
        "DynamicQuantizeMatMul", [(2, 16), np.arange(-40, 40, dtype=np.int8).reshape(16, 5), f32(5, low=0.01),
                                  np.zeros(5, np.int8), f32(5)], least_db=35),   # the runtime rounds the input
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_equals_onnx_runtime(case: Fused, tmp_path: Path) -> None:
    """Every output agrees, cleaned up or not."""
    path = saved(case.proto(), tmp_path)
    expected = by_runtime(path, case.feeds())
    found = load(path)
    for _ in range(2):
        given = by_litert(found, case.feeds())
        for name, wanted in expected.items():
            assert given[name].shape == wanted.shape
            assert sqnr_db(given[name], wanted) >= case.least_db, name
        optimize(found, input_layout="nchw", output_layout="nchw")


# ONNX Runtime has no CPU kernel for these: (operator, inputs, attributes) against the same in numpy.
WRITTEN = {
    "bias add": (Fused("BiasAdd", [(2, 3, 8), f32(8), (2, 3, 8)]), lambda x, b, s: x + b + s),
    "bias softmax": (Fused("BiasSoftmax", [(2, 3, 8), (2, 3, 8)], {"axis": 2}),
                     lambda x, b: np.exp(x + b) / np.exp(x + b).sum(-1, keepdims=True)),
    "group norm": (Fused("GroupNorm", [(1, 3, 3, 4), f32(4), f32(4)], {"groups": 2, "activation": 0}),
                   lambda x, g, b: _grouped(x, 2) * g + b),
    "nhwc conv": (Fused("NhwcConv", [(1, 5, 5, 3), f32(2, 3, 1, 1), f32(2)], {"kernel_shape": [1, 1]}),
                  lambda x, w, b: x @ w[:, :, 0, 0].T + b),
}


def _grouped(x: Array, groups: int) -> Array:
    parts = x.reshape(*x.shape[:3], groups, -1)
    mean, var = parts.mean((1, 2, 4), keepdims=True), parts.var((1, 2, 4), keepdims=True)
    return np.asarray((parts - mean) / np.sqrt(var + 1e-5)).reshape(x.shape)


@pytest.mark.parametrize(("case", "function"), WRITTEN.values(), ids=WRITTEN.keys())
def test_equals_definition(case: Fused, function: Any, tmp_path: Path) -> None:
    """The definition in numpy agrees."""
    feeds = case.feeds()
    values = [feeds.get(f"x{i}", given) for i, given in enumerate(case.inputs)]
    given = by_litert(imported(case.proto(), tmp_path), feeds)["y0"]
    assert sqnr_db(given, function(*values)) >= 110


REFUSED = {
    "inverse": (Fused("Inverse", [(2, 2)]), "the inverse of a matrix"),
    "repeated n-grams": (Fused("NGramRepeatBlock", [Feed(np.zeros((1, 4), np.int64)), (1, 9)], {"ngram_size": 2}),
                         "search loop of text generation"),
    "blocked channels": (Fused("ReorderInput", [(1, 8, 4, 4)], domain="com.microsoft.nchwc"), "one processor"),
    "unknown activation": (Fused("FusedConv", [(1, 3, 6, 6), f32(4, 3, 3, 3)], {"activation": "Sine", **CONV}),
                           "activation 'Sine'"),
    "past": (Fused("Attention", [(2, 5, 8), f32(8, 24), f32(24), None, (2, 2, 2, 5, 4)], {"num_heads": 2}),
             "past keys and values"),
    "mean": (Fused("SkipLayerNormalization", [(2, 3, 8), (2, 3, 8), f32(8), f32(8)], {}, ("y0", "y1")),
             "belong to training"),
    "packed": (Fused("MultiHeadAttention", [(2, 3, 2, 3, 4)], {"num_heads": 2}), "packed with the queries"),
    "group order": (Fused("MatMulNBits", [(2, 32), BYTES.reshape(8, 2, 16)[:, :, :8], f32(16), None,
                                          np.zeros(32, np.int32)], {"K": 32, "N": 8, "bits": 4, "block_size": 16}),
                    "order of groups"),
}


@pytest.mark.parametrize(("case", "reason"), REFUSED.values(), ids=REFUSED.keys())
def test_refused(case: Fused, reason: str, tmp_path: Path) -> None:
    """What has no form is refused by the node's name, with the reason."""
    with pytest.raises(UnsupportedError, match=reason) as caught:
        imported(case.proto(), tmp_path)
    assert ["the node" in finding.where for finding in caught.value.findings] == [True]


def test_damaged_weights_are_an_error(tmp_path: Path) -> None:
    """Weights that do not fit the attributes are told of, by the node's name."""
    case = Fused("MatMulNBits", [(2, 32), BYTES[:251], f32(16)], {"K": 32, "N": 8, "bits": 4, "block_size": 16})
    with pytest.raises(ModelError, match="the node"):
        imported(case.proto(), tmp_path)


def test_tells_of_widened_weights(tmp_path: Path) -> None:
    """Weights of 4 bits that become floats are told."""
    found = imported(CASES["4-bit weights"].proto(), tmp_path).extras["findings"]
    assert [f.code for f in found] == ["onnx.weights-widened"]
