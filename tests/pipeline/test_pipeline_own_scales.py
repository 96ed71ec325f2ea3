"""Models that are quantized already go on to the compiler with their own scales, without samples."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import msgspec
import numpy as np
import onnx
import pytest

import vitrify as vt
from vitrify.core.errors import ModelError
from vitrify.pipeline.checking.check import check_file
from vitrify.pipeline.compiling.compile import compile_file
from vitrify.pipeline.options import ConvertOptions, DataOptions, QuantizeOptions
from vitrify.pipeline.quantizing.quantize import quantize_file
from vitrify.results import RunRecord

sys.path.insert(0, str(Path(__file__).parent.parent / "importers"))
from quantized_makers import Way, digits, quantized

pytestmark = pytest.mark.models
Find = Callable[[str], Path]
NOTHING = DataOptions()


@pytest.fixture(scope="module")
def qdq(model_file: Find, tmp_path_factory: pytest.TempPathFactory) -> Path:
    samples = digits(model_file("mnist_10k/mnist_10k.npz"), 20)
    folder = tmp_path_factory.mktemp("qdq")
    return quantized(model_file("digits_cnn/digits_cnn.onnx"), folder / "digits.onnx", samples, Way(per_channel=True))


def test_build(qdq: Path, tmp_path: Path) -> None:
    """Nothing is calibrated, all runs on the NPU, and the record says whose scales it has."""
    result = vt.build(qdq, "imx93", output=tmp_path / "run")
    assert result.ok
    assert [s.name for s in result.stages] == ["import", "optimize", "write int8", "prepare int8", "compile",
                                                "verify compiled", "report"]
    assert set(result.artifacts) == {"int8", "compiled", "report"}
    assert vt.inspect(result.artifacts["int8"]).kind == "int8"
    assert any(f.code == "quant.own-scales" for f in result.findings)
    record = msgspec.json.decode((tmp_path / "run" / "run.json").read_bytes(), type=RunRecord)
    assert record.placement.cpu == 0
    assert record.verdict.startswith("Every node runs on the NPU of imx93")


def test_build_compares_with_the_file(qdq: Path, tmp_path: Path, model_file: Find) -> None:
    """Samples, where given, compare the answers with the file's own."""
    samples = tmp_path / "samples.npy"
    np.save(samples, np.concatenate(digits(model_file("mnist_10k/mnist_10k.npz"), 5)))
    result = vt.build(qdq, "imx93", data=samples, output=tmp_path / "run")
    assert result.ok
    assert "INT8 answers follow the source's" in result.verdict


def test_build_again_reuses(qdq: Path, tmp_path: Path) -> None:
    """The second build does nothing anew."""
    for _ in range(2):
        result = vt.build(qdq, "imx93", output=tmp_path / "run")
    assert result.reused == ["import", "optimize", "write int8", "prepare int8", "compile", "verify compiled"]


def test_quantize(qdq: Path, tmp_path: Path) -> None:
    """No samples are asked for; those given are said to be unused."""
    target = tmp_path / "digits_int8.tflite"
    result = quantize_file(qdq, target, NOTHING, QuantizeOptions(), ConvertOptions())
    assert result.ok
    assert vt.inspect(target).kind == "int8"
    assert result.calibration is None
    told = quantize_file(qdq, target, DataOptions(random=True), QuantizeOptions(), ConvertOptions())
    assert {"quant.own-scales", "quant.samples-unused"} <= {f.code for f in told.findings}


def test_check_and_compile(qdq: Path, tmp_path: Path) -> None:
    """Both take the ONNX file itself."""
    checked = check_file(qdq, "imx93", NOTHING, ConvertOptions())
    assert checked.ok
    assert all(v.placement != "cpu" for v in checked.verdicts)
    compiled = compile_file(qdq, "imx93", tmp_path / "digits_vela.tflite")
    assert Path(compiled.output).exists()
    assert any(f.code == "quant.own-scales" for f in compiled.findings)


def test_scales_that_nothing_computes_with(tmp_path: Path) -> None:
    """A model whose scales stand on one side only is refused, and the float one asked for."""
    from onnx import TensorProto, helper

    nodes = [helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
             helper.make_node("DequantizeLinear", ["q", "s", "z"], ["d"]), helper.make_node("Sin", ["d"], ["y"])]
    constants = [helper.make_tensor("s", TensorProto.FLOAT, [], [0.1]),
                 helper.make_tensor("z", TensorProto.INT8, [], [0])]
    graph = helper.make_graph(nodes, "sine", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 8])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 8])], constants)
    path = tmp_path / "sine.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    with pytest.raises(ModelError, match="no operator can compute with them"):
        vt.build(path, "imx93", output=tmp_path / "run")
