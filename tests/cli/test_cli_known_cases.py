"""What people ran into, as tiny models: names that lie, an ADD that kills the runtime, illegal flags, free batches."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from cli_runs import parsed

import schema_models as made
from vitrify.cli.main import call
from vitrify.results import CheckResult, ConvertResult, InspectResult, Result, VerifyResult

Ask = Callable[..., tuple[int, Result]]


@pytest.fixture
def ask(capsys: pytest.CaptureFixture[str]) -> Ask:
    return lambda *words: (call([*map(str, words), "--json"]), parsed(capsys.readouterr().out))


def conv(path: Path, activations: str, weights: str, ends: str) -> Path:
    """A 1x1 convolution: float or int8 inside, float or int8 weights, float or int8 inputs and outputs."""
    file = made.Maker()
    data = np.ones((2, 1, 1, 2), np.int8 if weights == "int8" else np.float32)
    kernel = file.tensor("w", data.shape, weights, 0.1 if weights == "int8" else None, data=data)
    wide = "int32" if activations == "int8" else "float32"
    bias = file.tensor("b", (2,), wide, 0.01 if wide == "int32" else None, data=np.zeros(2, np.dtype(wide)))
    scale = 0.1 if activations == "int8" else None
    x, y = file.tensor("x", (1, 4, 4, 2), activations, scale), file.tensor("y", (1, 4, 4, 2), activations, scale)
    first, last = x, y
    if ends != activations:
        first, last = file.tensor("first", (1, 4, 4, 2), ends), file.tensor("last", (1, 4, 4, 2), ends)
        file.node(made.BUILTIN.QUANTIZE, [first], [x], "QuantizeOptions")
    file.node(made.BUILTIN.CONV_2D, [x, kernel, bias], [y], "Conv2DOptions", version=3, strideH=1, strideW=1,
              dilationHFactor=1, dilationWFactor=1)
    if ends != activations:
        file.node(made.BUILTIN.DEQUANTIZE, [y], [last], "DequantizeOptions", version=2)
    return file.write(path, [first], [last])


def test_names_that_lie(ask: Ask, tmp_path: Path) -> None:
    wanted = {"net_full_integer_quant.tflite": ("float32", "float32", "float32", "float32", False),
              "net_int8.tflite": ("float32", "int8", "float32", "dynamic-range", False),
              "net_float32.tflite": ("int8", "int8", "int8", "int8", True),
              "net_float16.tflite": ("int8", "int8", "float32", "int8-float-io", True)}
    for name, (activations, weights, ends, _, _) in wanted.items():
        conv(tmp_path / name, activations, weights, ends)
    made.squared_difference(tmp_path / "net_dynamic_range_quant.tflite")
    status, result = ask("inspect", tmp_path)
    assert status == 0
    assert isinstance(result, InspectResult)
    told = {row.file: (row.kind, row.suits_int8_npu) for row in result.files}
    assert told.pop("net_dynamic_range_quant.tflite") == ("int16x8", False)
    assert told == {name: (kind, suits) for name, (*_, kind, suits) in wanted.items()}
    assert "take net_float32.tflite" in result.summary


@pytest.mark.parametrize("command", ["check", "compile"])
def test_an_add_that_would_kill_the_runtime(ask: Ask, tmp_path: Path, command: str) -> None:
    output = () if command == "check" else ("-o", tmp_path / "out.tflite")
    status, result = ask(command, made.add(tmp_path / "bad.tflite", 1e-7), "--target", "imx93", *output)
    assert status == 1
    rule = next(f for f in result.findings if f.code == "ops.multiplier")
    assert "'sum' has output scale 1e-07" in rule.headline
    assert "1.907" in rule.headline
    assert not (tmp_path / "out.tflite").exists()
    legal = made.add(tmp_path / "legal.tflite", 2e-7)
    status, result = ask("check", legal, "--target", "imx93")
    assert status == 0
    assert isinstance(result, CheckResult)


@pytest.mark.parametrize("half_pixel", [True, False])
@pytest.mark.parametrize("align_corners", [True, False])
def test_one_pair_of_resize_flags_is_illegal(ask: Ask, tmp_path: Path, align_corners: bool, half_pixel: bool) -> None:
    file = made.resize(tmp_path / "resize.tflite", align_corners, half_pixel)
    status, result = ask("convert", file, "-o", tmp_path / "out.tflite")
    illegal = align_corners and half_pixel
    assert status == (1 if illegal else 0)
    assert ("ops.resize_flags" in {f.code for f in result.findings}) == illegal
    assert (tmp_path / "out.tflite").exists() != illegal


def test_a_free_batch_is_pinned_and_its_arithmetic_folded(ask: Ask, tmp_path: Path) -> None:
    file = made.Maker()
    x, shape = file.tensor("x", (1, 4, 4, 8), "int8", 0.05), file.tensor("shape", (4,), "int32")
    file.graph.tensors[x].shapeSignature = [-1, 4, 4, 8]
    begin, end, step = (file.tensor(name, (1,), "int32", data=np.array([value], np.int32))
                        for name, value in (("begin", 0), ("end", 1), ("step", 1)))
    batch, wanted = file.tensor("batch", (), "int32"), file.tensor("wanted", (2,), "int32")
    rest = file.tensor("rest", (), "int32", data=np.array(128, np.int32))
    y = file.tensor("y", (1, 128), "int8", 0.05)
    file.graph.tensors[y].shapeSignature = [-1, 128]
    file.node(made.BUILTIN.SHAPE, [x], [shape], "ShapeOptions", outType=2)
    file.node(made.BUILTIN.STRIDED_SLICE, [shape, begin, end, step], [batch], "StridedSliceOptions", shrinkAxisMask=1)
    file.node(made.BUILTIN.PACK, [batch, rest], [wanted], "PackOptions", valuesCount=2, axis=0)
    file.node(made.BUILTIN.RESHAPE, [x, wanted], [y], "ReshapeOptions", newShape=[-1, 128])
    source = file.write(tmp_path / "free.tflite", [x], [y])
    status, result = ask("convert", source, "-o", tmp_path / "pinned.tflite")
    assert status == 0
    assert isinstance(result, ConvertResult)
    assert result.operators == {"RESHAPE": 1}
    assert "pinned 'x' [-1,4,4,8] -> [1,4,4,8]" in {row.note for row in result.ledger}
    status, result = ask("verify", source, tmp_path / "pinned.tflite", "--random-inputs")
    assert status == 0
    assert isinstance(result, VerifyResult)
    assert result.stages[0].outputs[0].equal
