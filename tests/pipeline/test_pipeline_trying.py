"""Trying calibrators and roundings: what keeps most of the outputs on the samples is taken, and told."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from vitrify import ops
from vitrify.core.progress import Silent
from vitrify.ir import DType, Graph, Model, Tensor
from vitrify.pipeline.options import DataOptions
from vitrify.pipeline.quantizing.trials import tried
from vitrify.pipeline.steps import calibrate_model, quantize_model
from vitrify.quant.recipe import parse_recipe
from vitrify.runtimes import open as open_runtime
from vitrify.tflite import read, write
from vitrify.verify.metrics import sqnr_db

BEST = parse_recipe("", "best")


def network() -> Model:
    """A convolution whose map has a few values a hundred times as large as all others, and one that reads it."""
    random, graph = np.random.default_rng(6), Graph()
    x = Tensor("x", DType.FLOAT32, (1, 32, 32, 3))
    graph.inputs.append(x)

    def convolution(name: str, source: Tensor, shape: tuple[int, ...]) -> Tensor:
        weights = Tensor(f"{name}_w", DType.FLOAT32, shape, data=random.standard_normal(shape).astype(np.float32))
        bias = Tensor(f"{name}_b", DType.FLOAT32, shape[:1], data=np.zeros(shape[0], np.float32))
        return graph.add(ops.Conv2D(), [source, weights, bias], name=name).output

    first = graph.add(ops.Relu6(), [convolution("first", x, (8, 1, 1, 3))], name="act").output
    graph.set_outputs([convolution("second", first, (4, 1, 1, 8))])
    return Model([graph])


@pytest.fixture(scope="module")
def case(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Model, DataOptions]:
    folder = tmp_path_factory.mktemp("trying")
    path = folder / "float.tflite"
    write(network(), path)
    samples = np.random.default_rng(1).standard_normal((8, 32, 32, 3)).astype(np.float32)
    samples[:, 0, 0] *= 100                                     # one pixel stretches the ranges of all
    np.save(folder / "samples.npy", samples)
    return path, read(path), DataOptions(path=folder / "samples.npy")


def kept(path: Path, model: Model, candidate: Model, data: DataOptions) -> float:
    """The SQNR over all samples together."""
    samples = list(data.open(model.interface).walk(skipped=[])) if model.interface else [
        {"x": sample[None]} for sample in np.load(str(data.path))]
    file = path.with_name("candidate.tflite")
    write(candidate, file)
    with open_runtime(path, kernels="xnnpack") as left, open_runtime(file, kernels="optimized") as right:
        pairs = [(*left.run(s).values(), *right.run(s).values()) for s in samples]
    return sqnr_db(np.stack([a for a, _ in pairs]), np.stack([b for _, b in pairs]))


def test_what_was_taken_keeps_no_less(case: tuple[Path, Model, DataOptions]) -> None:
    path, model, data = case
    statistics, _ = calibrate_model(path, model, data, BEST, None, Silent())
    chosen, line = tried(model, path, statistics, BEST, data)
    assert line is not None
    assert line.name == "trials"
    asked = int(line.summary.split()[0])
    assert asked > 3
    made = [quantize_model(model, statistics, recipe).model for recipe in (BEST, chosen)]
    before, after = (kept(path, model, candidate, data) for candidate in made)
    assert after >= before - 0.1
    assert (line.changes > 0) == (chosen != BEST)
    if line.changes:
        assert "dB" in line.note
    again, same = tried(model, path, statistics, BEST, data)
    assert (again, same) == (chosen, line)                      # nothing in it is left to chance
