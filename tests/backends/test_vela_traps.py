"""Cost traps: each form is found where it costs, and its cheaper form is not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from vitrify import ops, tflite
from vitrify.backends.vela import check_model
from vitrify.core.findings import Finding, Severity
from vitrify.ir import DType, Graph, Model, Tensor
from vitrify.pipeline.explaining import explain
from vitrify.targets.ethos_u.probes.sketch import Sketch

CODES = ("costly-matmuls", "costly-silu", "costly-copies", "costly-transposes", "costly-joints", "unrolled-patches",
         "few-channels", "costly-softmax")


def conv(s: Sketch, x: Tensor, channels: int, size: int = 1, stride: int = 1) -> Tensor:
    op = ops.Conv2D(stride_h=stride, stride_w=stride, padding=ops.Padding.VALID)
    return s.add(op, [x, s.weights((channels, size, size, x.shape[-1])), s.bias(channels)]).output


def matmul(heads: int) -> Callable[[Sketch], Tensor]:
    return lambda s: s.add(ops.BatchMatMul(adj_y=True), [s.value((heads, 128, 64)), s.value((heads, 128, 64))]).output


def silu(s: Sketch) -> Tensor:
    x = conv(s, s.value((1, 80, 80, 16)), 32)
    return conv(s, s.add(ops.Mul(), [x, s.add(ops.Logistic(), [x], scale=1 / 256, zero=-128).output]).output, 8)


def gelu(s: Sketch) -> Tensor:
    x = conv(s, s.value((1, 80, 80, 16)), 32)
    return conv(s, s.add(ops.Gelu(), [x]).output, 8)


def copies(s: Sketch) -> Tensor:
    parts = [s.value((1, 80, 80, 16)) for _ in range(4)]
    return conv(s, s.add(ops.Concatenation(axis=3), parts).output, 16)


def turn(s: Sketch) -> Tensor:
    x = s.add(ops.Transpose(), [s.value((1, 3, 320, 320)), s.constant((0, 2, 3, 1))]).output
    return conv(s, x, 16, 3, 2)


def joints(s: Sketch) -> Tensor:
    x = conv(s, s.value((1, 64, 64, 32)), 32)
    wide = s.add(ops.Quantize(), [x], dtype=DType.INT16, scale=1e-4).output
    return conv(s, s.add(ops.Quantize(), [wide], dtype=DType.INT8, scale=0.07, zero=3).output, 32)


def patches(s: Sketch) -> Tensor:
    return conv(s, s.value((1, 128, 128, 3)), 64, 16, 16)


def stem(channels: int, size: int = 3) -> Callable[[Sketch], Tensor]:
    return lambda s: conv(s, conv(s, s.value((1, 224, 224, channels)), 32, size, 2), 32)


def softmax(s: Sketch) -> Tensor:
    return s.add(ops.Softmax(beta=1.0), [conv(s, s.value((1, 40, 40, 64)), 64)], scale=1 / 256, zero=-128).output


CASES: dict[str, tuple[str, str, Callable[[Sketch], Tensor]]] = {
    "one_head": ("costly-matmuls", "split-matmuls", matmul(1)), "heads": ("costly-matmuls", "fewer tokens", matmul(6)),
    "silu": ("costly-silu", "silu-as-gelu", silu), "copies": ("costly-copies", "join", copies),
    "turn": ("costly-transposes", "nhwc", turn), "joints": ("costly-joints", "--target-quality", joints),
    "patches": ("unrolled-patches", "long-strides", patches), "stem": ("few-channels", "2x2 pixels", stem(3)),
    "wide_stem": ("few-channels", "folded-stems", stem(3, 7)),
    "softmax": ("costly-softmax", "largest class", softmax)}
FREE: dict[str, tuple[str, Callable[[Sketch], Tensor]]] = {
    "gelu": ("costly-silu", gelu), "many_channels": ("few-channels", stem(16)),
    "small": ("costly-matmuls", lambda s: s.add(ops.BatchMatMul(), [s.value((1, 8, 8)), s.value((1, 8, 8))]).output)}


def found(draw: Callable[[Sketch], Tensor], folder: Path, target: str = "imx93") -> dict[str, Finding]:
    graph = Graph("case")
    graph.set_outputs([draw(Sketch(graph, "case"))])
    for place, node in enumerate(graph):
        node.name = f"{node.name}_{place}"
    rng = np.random.default_rng(0)
    for tensor in graph.tensors():
        if tensor.data is not None and tensor.dtype is DType.INT8:
            tensor.data = rng.integers(-127, 128, tensor.shape, np.int8)
    tflite.write(Model([graph]), folder / "case.tflite")
    return {f.code: f for f in check_model(folder / "case.tflite", target).findings}


@pytest.mark.parametrize("name", CASES)
def test_a_trap_is_found_with_what_mends_it(name: str, tmp_path: Path) -> None:
    code, help, draw = CASES[name]
    finding = found(draw, tmp_path)[f"ethos-u.{code}"]
    assert finding.severity in (Severity.INFO, Severity.WARNING)
    assert help in finding.help
    assert "%" in finding.headline
    assert "case" in finding.where


@pytest.mark.parametrize("name", FREE)
def test_a_cheap_form_is_no_trap(name: str, tmp_path: Path) -> None:
    code, draw = FREE[name]
    assert f"ethos-u.{code}" not in found(draw, tmp_path)


def test_a_core_with_a_unit_for_products_has_no_trap_there(tmp_path: Path) -> None:
    assert "ethos-u.costly-matmuls" not in found(matmul(1), tmp_path, "ethos-u85-256")


@pytest.mark.parametrize("code", CODES)
def test_each_trap_is_explained(code: str) -> None:
    row, = explain(f"ethos-u.{code}").explanations
    assert row.says
    assert row.why
