"""Which calibrator is taken is found out on the samples, where they differ in range."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from quant_graphs import Net, noise, run, sqnr, stored

import vitrify.ops as ops
from vitrify.ir import Model
from vitrify.pipeline.options import DataOptions
from vitrify.pipeline.quantizing.widening import quantize_enough
from vitrify.quant import QuantizeResult, Recipe
from vitrify.runtimes.litert.calibrate import calibrate_here
from vitrify.tflite import write

Array = np.ndarray[Any, np.dtype[Any]]
LOUD = 30.0


def deep() -> Model:
    net = Net(1, 8, 8, 4)
    x = net.x
    for _ in range(6):
        x = net.add(ops.Relu(), net.conv(x, 16, gain=1.4))
    return net.model(net.conv(x, 4))


def quantized(arrays: list[dict[str, Array]], folder: Path) -> tuple[Model, QuantizeResult, Recipe]:
    model, path = deep(), folder / "float.tflite"
    write(model, path)
    statistics = calibrate_here(str(path), stored(model, arrays, folder), Recipe())
    result, recipe = quantize_enough(model, path, statistics, Recipe(), DataOptions(path=folder / "samples"))
    return model, result, recipe


def test_one_loud_sample_does_not_decide(tmp_path: Path) -> None:
    quiet = noise(deep(), 12)
    arrays = [*quiet[:7], {k: v * np.float32(LOUD) for k, v in quiet[7].items()}]
    model, result, recipe = quantized(arrays, tmp_path)
    assert recipe.calibrator == "moving-average"
    assert [entry.name for entry in result.ledger.entries].count("trials") == 1
    kept = [sqnr(*(next(iter(run(m, sample).values())) for m in (model, result.model))) for sample in quiet[8:]]
    assert min(kept) > 18                      # 6 to 12 dB with the loudest sample's ranges


def test_samples_alike_need_no_trial(tmp_path: Path) -> None:
    _, result, recipe = quantized(noise(deep(), 8), tmp_path)
    assert recipe.calibrator == "mixed"
    assert "trials" not in [entry.name for entry in result.ledger.entries]
