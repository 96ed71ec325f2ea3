"""How far a detector's scores and boxes are off, and which outputs are scores."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from vitrify import ops
from vitrify.core.progress import Silent
from vitrify.ir import DType, Graph, Model, Tensor
from vitrify.pipeline.options import DataOptions
from vitrify.pipeline.quantizing.scores import FOUND, SIDE, Off, ScoreJudge, scores_of
from vitrify.pipeline.steps import calibrate_model, quantize_model
from vitrify.quant import QuantizeResult, Recipe
from vitrify.tflite import read, write

Array = np.ndarray[Any, np.dtype[Any]]
SIZE, CLASSES = 8, 3
ANCHORS = SIZE * SIZE


def constant(name: str, data: Array) -> Tensor:
    kind = DType.INT32 if data.dtype.kind == "i" else DType.FLOAT32
    made = data.astype(np.int32 if kind is DType.INT32 else np.float32)
    return Tensor(name, kind, made.shape, data=made)


def detector(reach: float = 6.0, gain: float = 4.0) -> Model:
    """Boxes in pixels and scores of a few classes, side by side; what is found grows with ``gain``."""
    random, graph = np.random.default_rng(5), Graph()
    x = Tensor("x", DType.FLOAT32, (1, SIZE, SIZE, 3))
    graph.inputs.append(x)

    def branch(name: str, channels: int, size: float, bias: float) -> Tensor:
        weights = constant(f"{name}_w", random.standard_normal((channels, 1, 1, 3)) * size)
        made = graph.add(ops.Conv2D(), [x, weights, constant(f"{name}_b", np.full(channels, bias))], name=name).output
        return graph.add(ops.Reshape(new_shape=(1, ANCHORS, channels)),
                         [made, constant(f"{name}_s", np.array([1, ANCHORS, channels]))], name=f"{name}_flat").output

    grid = np.random.default_rng(7).uniform(0, SIDE, (1, ANCHORS, 2))
    parts = [branch(name, 2, reach, reach) for name in ("near", "far")]
    corners = [graph.add(op, [constant(f"grid_{i}", grid), part], name=f"corner_{i}").output
               for i, (op, part) in enumerate(zip((ops.Sub(), ops.Add()), parts, strict=True))]
    boxes = graph.add(ops.Concatenation(axis=2), corners, name="boxes").output
    scores = graph.add(ops.Logistic(), [branch("classes", CLASSES, gain, -gain)], name="scores").output
    graph.set_outputs([graph.add(ops.Concatenation(axis=2), [boxes, scores], name="both").output])
    return Model([graph])


class Case:
    """A detector in a folder, calibrated."""

    def __init__(self, folder: Path, model: Model) -> None:
        self.path, self.folder = folder / "float.tflite", folder
        write(model, self.path)
        self.model = read(self.path)
        samples = np.random.default_rng(2).standard_normal((6, SIZE, SIZE, 3)).astype(np.float32)
        np.save(folder / "samples.npy", samples)
        self.samples = [{"x": sample[None]} for sample in samples]
        self.data = DataOptions(path=folder / "samples.npy")
        self.statistics, _ = calibrate_model(self.path, self.model, self.data, Recipe(), None, Silent())

    def made(self, **recipe: Any) -> QuantizeResult:
        return quantize_model(self.model, self.statistics, Recipe(**recipe))

    def judge(self) -> ScoreJudge:
        return ScoreJudge(self.model, scores_of(self.made(), self.model), self.samples, self.folder)


@pytest.fixture(scope="module")
def case(tmp_path_factory: pytest.TempPathFactory) -> Case:
    return Case(tmp_path_factory.mktemp("scores"), detector())


def test_scores_are_the_shares_that_the_host_puts_beside_boxes(case: Case) -> None:
    (name,) = scores_of(case.made(), case.model)
    tensor = next(t for node in case.model.main for t in node.outputs if t.name == name)
    assert tensor.producer is not None
    assert tensor.producer.op.kind == "LOGISTIC"
    assert scores_of(case.made(outputs="keep"), case.model) == []




def test_what_is_off_is_measured_on_what_is_found(case: Case) -> None:
    judge = case.judge()
    assert judge.finds
    fine, coarse = judge.off(case.made(activations="int16")), judge.off(case.made())
    assert 0 <= fine.score < coarse.score < 0.05
    assert 0 < fine.place <= coarse.place                       # what the host computes with has 16 bits in both
    assert coarse.share(0.02) == max(coarse.score / 0.02, coarse.place)
    assert str(coarse) == f"scores within {coarse.score:.3f} and boxes within {coarse.place:.1f} pixels of {SIDE}"


def test_it_equals_what_a_user_gets(case: Case) -> None:
    """The same by running both files as a user does, sample by sample."""
    from vitrify import runtimes

    made = case.made()
    off = case.judge().off(made)
    write(made.model, case.folder / "int8.tflite")
    with (runtimes.open(case.path, kernels="xnnpack") as reference,
          runtimes.open(case.folder / "int8.tflite", kernels="optimized") as candidate):
        worst = 0.0
        for sample in case.samples:
            (wanted,), (given,) = reference.run(sample).values(), candidate.run(sample).values()
            found = wanted[..., 4:] > FOUND
            worst = max(worst, float(np.abs(wanted - given)[..., 4:][found].max(initial=0)))
    assert off.score == pytest.approx(worst, abs=1e-5)          # the samples with most found hold the worst


@pytest.mark.parametrize(("gain", "finds"), [(4.0, True), (0.02, True), (-30.0, True)])
def test_scores_that_count(gain: float, finds: bool, tmp_path: Path) -> None:
    assert Case(tmp_path, detector(gain=gain)).judge().finds is finds


def test_where_nothing_is_found(tmp_path: Path) -> None:
    quiet = detector(gain=0.02)
    bias = next(n for n in quiet.main if n.name == "classes")
    quiet.main.set_input(bias, 2, constant("low", np.full(CLASSES, -8.0)))
    judge = Case(tmp_path, quiet).judge()
    assert not judge.finds


@pytest.mark.parametrize(("score", "place", "allowed", "share"), [(0.01, 0.2, 0.02, 0.5), (0.01, 3.0, 0.02, 3.0),
                                                                 (0.0, 0.0, 0.02, 0.0)])
def test_the_worse_of_both_counts(score: float, place: float, allowed: float, share: float) -> None:
    assert Off(score, place).share(allowed) == pytest.approx(share)
