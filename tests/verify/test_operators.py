"""The error analysis: who did it, and not only where it hurts."""

from pathlib import Path

import numpy as np
import pytest

from vitrify import ops
from vitrify.core.errors import UsageError
from vitrify.core.progress import Silent
from vitrify.ir import DType, Graph, Model, Quantization, Tensor
from vitrify.pipeline.options import DataOptions
from vitrify.pipeline.steps import calibrate_model
from vitrify.quant import Recipe, quantize
from vitrify.results import AnalysisRow
from vitrify.tflite import read, write
from vitrify.verify.operators import analyze

CHANNELS = 6
TIED = Recipe(split_levels=1)
"""Leaves the parts of joins as they are."""


def network() -> Model:
    """Two branches of very different size, joined; what reads the join hears the quiet one."""
    random, graph = np.random.default_rng(5), Graph()
    x = Tensor("x", DType.FLOAT32, (1, 8, 8, 4))
    graph.inputs.append(x)
    parts = []
    for scale in (1.0, 20.0):
        made = convolution(graph, x, f"conv_{scale:g}", random.standard_normal((CHANNELS, 3, 3, 4)) * scale / 5)
        parts.append(graph.add(ops.Tanh(), [made], name="tanh").output if scale == 1 else made)
    join = graph.add(ops.Concatenation(axis=3), parts, name="join").output
    weights = random.standard_normal((4, 1, 1, 2 * CHANNELS)) / np.repeat([1.0, 2e3], CHANNELS)
    graph.set_outputs([convolution(graph, join, "last", weights)])
    return Model([graph])


def convolution(graph: Graph, x: Tensor, name: str, weights: np.ndarray) -> Tensor:
    inputs = [x, Tensor(f"{name}/w", DType.FLOAT32, weights.shape, data=weights.astype(np.float32)),
              Tensor(f"{name}/b", DType.FLOAT32, weights.shape[:1], data=np.zeros(len(weights), np.float32))]
    return graph.add(ops.Conv2D(), inputs, name=name).output


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, list[dict[str, np.ndarray]]]:
    folder = tmp_path_factory.mktemp("operators")
    write(network(), folder / "float.tflite")
    samples = np.random.default_rng(1).standard_normal((3, 8, 8, 4)).astype(np.float32)
    np.save(folder / "samples.npy", samples)
    model = read(folder / "float.tflite")
    statistics, _ = calibrate_model(folder / "float.tflite", model, DataOptions(path=folder / "samples.npy"), TIED,
                                    None, Silent())
    write(quantize(model, statistics, TIED).model, folder / "int8.tflite")
    return folder / "float.tflite", folder / "int8.tflite", [{"x": sample[None]} for sample in samples]


@pytest.fixture(scope="module")
def analyzed(files: tuple[Path, Path, list[dict[str, np.ndarray]]]) -> AnalysisRow:
    before, after, samples = files
    return analyze(before, after, samples, names=("float", "int8"))


def test_the_join_is_found_guilty(analyzed: AnalysisRow) -> None:
    worst = analyzed.worst(1)[0]
    assert (worst.operator, worst.node) == ("CONCATENATION", "join")
    assert worst.share is not None
    assert worst.share > 0.8
    assert worst.part_db is not None
    assert worst.part_db < 20 < (worst.single.sqnr_db or 0)         # as a whole it looks well


def test_what_is_inherited_is_not_charged(analyzed: AnalysisRow) -> None:
    rows = {row.node: row for row in analyzed.operators}
    last, first = rows["last"], rows["conv_20"]
    assert (last.share or 0) < 0.2
    assert first.single.max_lsb is not None
    assert first.single.max_lsb <= 2
    assert sum(row.share or 0 for row in analyzed.operators) == pytest.approx(1)


def test_values_are_spread_alike(analyzed: AnalysisRow) -> None:
    shown = {row.tensor: row for row in analyzed.distributions}
    assert shown
    for row in shown.values():
        assert sum(row.float_counts) == sum(row.integer_counts) > 0
        assert row.low < row.high
        assert 0 <= row.saturated <= 1
        assert 0 <= row.dead <= 1
        assert 0 < row.levels <= 256


def test_an_operator_that_is_wrong_is_named(files: tuple[Path, Path, list[dict[str, np.ndarray]]],
                                            tmp_path: Path) -> None:
    before, after, samples = files
    model = read(after)
    node = next(n for n in model.main if n.name == "conv_20")
    weights = node.input(1)
    assert weights.data is not None
    assert isinstance(weights.quantization, Quantization)
    weights.data = np.roll(weights.data, 1, axis=0)
    write(model, tmp_path / "wrong.tflite")
    row = next(r for r in analyze(before, tmp_path / "wrong.tflite", samples).operators if r.node == "conv_20")
    assert row.single.sqnr_db is not None
    assert row.single.sqnr_db < 3


def test_files_with_nothing_in_common_are_refused(files: tuple[Path, Path, list[dict[str, np.ndarray]]],
                                                  tmp_path: Path) -> None:
    before, _, samples = files
    graph = Graph()
    x = Tensor("z", DType.FLOAT32, (1, 8, 8, 4))
    graph.inputs.append(x)
    graph.set_outputs([graph.add(ops.Relu(), [x], name="other").output])
    write(Model([graph]), tmp_path / "other.tflite")
    with pytest.raises(UsageError) as caught:
        analyze(before, tmp_path / "other.tflite", samples)
    assert [f.code for f in caught.value.findings] == ["verify.operators"]
