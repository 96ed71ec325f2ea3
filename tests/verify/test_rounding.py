"""Chains of int8 convolutions: kernels that round otherwise are told from a layer that is wrong."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from vitrify import tflite
from vitrify.core.errors import DataError, UsageError
from vitrify.ops import Activation
from vitrify.pipeline.options import ConvertOptions, DataOptions
from vitrify.pipeline.verifying.verify import verify_files
from vitrify.results import VerifyResult
from vitrify.runtimes.litert import LiteRT

sys.path.append(str(Path(__file__).parents[1] / "backends"))
from vela_networks import Network

RANDOM = DataOptions(random=True, samples=2)


def _chain(path: Path, length: int, wrong: int | None = None) -> Path:
    """Convolutions with random weights of unit gain."""
    random = np.random.default_rng(0)
    net = Network(1, 16, 16, 8)
    last = net.x
    for number in range(length):
        last = net.conv(last, 8, 3, activation=Activation.NONE)
        weights = last.producer.inputs[1]
        weights.data = np.clip(np.rint(random.normal(0, 40, weights.shape)), -127, 127).astype(np.int8)
        last.name = f"layer_{number}"
        _unit_gain(last)
    net.save(path, last)
    if wrong is not None:
        model = tflite.read(path)
        weights = next(node for node in model.main if node.output.name == f"layer_{wrong}").inputs[1]
        weights.quantization = replace(weights.quantization, scale=weights.quantization.scale * 2)
        tflite.write(model, path)
    return path


def _unit_gain(made: object) -> None:
    node = made.producer      # type: ignore[attr-defined]
    given, weights, bias = node.inputs
    gain = 1 / (40 * np.sqrt(72))
    weights.quantization = replace(weights.quantization,
                                   scale=np.full_like(weights.quantization.scale, gain))
    made.quantization = replace(given.quantization)      # type: ignore[attr-defined]
    if bias is not None and bias.quantization is not None:
        bias.quantization = replace(bias.quantization, scale=given.quantization.scale[0] * weights.quantization.scale)


@pytest.mark.parametrize(("length", "kernels"), [
    (1, "optimized"), pytest.param(5, "optimized", marks=pytest.mark.slow),
    pytest.param(10, "optimized", marks=pytest.mark.slow), (20, "optimized"), (20, "xnnpack"),
    *(pytest.param(length, "xnnpack", marks=pytest.mark.slow) for length in (1, 5, 10))])
def test_other_kernels_only_round(length: int, kernels: str, tmp_path: Path) -> None:
    chain = _chain(tmp_path / "chain.tflite", length)
    found = verify_files([chain.with_name("chain.tflite@reference"), chain.with_name(f"chain.tflite@{kernels}")],
                         RANDOM, ConvertOptions())
    assert len(found.tensors) == length
    assert {row.verdict for row in found.tensors} <= {"equal", "rounding"}
    assert all((row.own.max_lsb or 0) <= 1.01 for row in found.tensors if row.own is not None)
    assert not [f for f in found.findings if f.code in ("verify.fault", "verify.excess")]


@pytest.mark.parametrize(("length", "wrong"), [(1, 0), (5, 2), (10, 9), (20, 7)])
def test_a_wrong_shift_is_a_fault(length: int, wrong: int, tmp_path: Path) -> None:
    good = _chain(tmp_path / "good.tflite", length)
    values = _recorded(_chain(tmp_path / "bad.tflite", length, wrong), tmp_path)
    found = verify_files([good, values], DataOptions(), ConvertOptions())
    faults = [row.tensor for row in found.tensors if row.verdict == "fault"]
    assert faults == [f"layer_{wrong}"]
    assert found.first_divergence is not None
    assert f"'layer_{wrong}'" in found.first_divergence
    assert not found.ok


def test_a_board_that_rounds_by_one_is_well(tmp_path: Path) -> None:
    good = _chain(tmp_path / "good.tflite", 10)
    random = np.random.default_rng(2)
    values = _recorded(good, tmp_path, lambda v: np.clip(
        v + random.choice([-1, 0, 1], v.shape, p=[0.01, 0.98, 0.01]), -128, 127).astype(np.int8))
    found = verify_files([good, values], DataOptions(), ConvertOptions())
    assert {row.verdict for row in found.tensors} <= {"equal", "rounding"}
    assert found.ok


def _recorded(file: Path, folder: Path, change: object = None, inner: bool = True) -> Path:
    """Run a file layer by layer, as a board that computes each with its own arithmetic."""
    model = tflite.read(file)
    source = model.main.inputs[0]
    given = [np.random.default_rng(n).integers(-128, 127, source.shape, np.int8) for n in range(2)]
    names = [t.name for node in model.main for t in node.outputs if not t.name.endswith("_before")]
    arrays: dict[str, list[np.ndarray]] = {source.name: given}
    with LiteRT(file, kernels="reference") as runtime:
        for one in given:
            for name, value in runtime.trace_raw([one], names).items():
                arrays.setdefault(name, []).append(value if change is None else change(value))      # type: ignore[operator]
    if not inner:
        arrays = {name: arrays[name] for name in (source.name, model.main.outputs[0].name)}
    path = folder / "board.npz"
    np.savez(path, **{name: np.stack(each) for name, each in arrays.items()})
    return path


def _answer(tmp_path: Path, arrays: dict[str, np.ndarray], length: int = 2) -> VerifyResult:
    chain = _chain(tmp_path / "chain.tflite", length)
    path = tmp_path / "board.npz"
    np.savez(path, **arrays)
    return verify_files([chain, path], DataOptions(), ConvertOptions())


SHAPE = (1, 16, 16, 8)
UNFIT = {
    "names": ({"other": np.zeros(SHAPE, np.int8)}, "recorded.names"),
    "no output": ({"layer_0": np.zeros(SHAPE, np.int8)}, "recorded.names"),
    "shape": ({"layer_1": np.zeros((1, 16, 15, 8), np.int8)}, "recorded.shape"),
    "type": ({"layer_1": np.zeros(SHAPE, np.int16)}, "recorded.type"),
    "words": ({"layer_1": np.full(SHAPE, "a")}, "recorded.shape"),
    "runs": ({"layer_1": np.zeros((2, *SHAPE), np.int8), "layer_0": np.zeros((3, *SHAPE), np.int8)}, "recorded.runs"),
}


@pytest.mark.parametrize("name", UNFIT)
def test_recorded_values_that_do_not_fit_are_told(name: str, tmp_path: Path) -> None:
    arrays, code = UNFIT[name]
    with pytest.raises(DataError) as caught:
        _answer(tmp_path, arrays)
    assert code in {finding.code for finding in caught.value.findings}
    assert all(finding.help for finding in caught.value.findings)


def test_recorded_values_alone_are_refused(tmp_path: Path) -> None:
    chain = _chain(tmp_path / "chain.tflite", 1)
    path = _recorded(chain, tmp_path)
    with pytest.raises(UsageError, match="stands before any TFLite file"):
        verify_files([path, chain], DataOptions(), ConvertOptions())


def test_a_damaged_recording_is_told(tmp_path: Path) -> None:
    chain = _chain(tmp_path / "chain.tflite", 1)
    path = _recorded(chain, tmp_path)
    data = bytearray(path.read_bytes())
    data[200:260] = bytes(60)
    path.write_bytes(data)
    with pytest.raises(DataError) as caught:
        verify_files([chain, path], DataOptions(), ConvertOptions())
    assert caught.value.findings[0].code.startswith("recorded.")
