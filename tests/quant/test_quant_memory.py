"""What calibration will take of memory is told before it begins, and comes true."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from quant_graphs import Net, noise, stored

import vitrify.ops as ops
from vitrify.core.progress import Silent
from vitrify.ir import Model
from vitrify.pipeline.options import DataOptions
from vitrify.pipeline.steps import calibrate_model
from vitrify.quant import Recipe
from vitrify.quant.calibration.memory import predicted_bytes
from vitrify.quant.calibration.observe import watches
from vitrify.tflite import write

CALIBRATE = """
import sys
from pathlib import Path
from vitrify import tflite
from vitrify.data import open_samples
from vitrify.data.binding import identity_interface
from vitrify.quant import Recipe
from vitrify.runtimes.litert.calibrate import calibrate_here
calibrate_here(sys.argv[1], open_samples(sys.argv[2], identity_interface(tflite.read(sys.argv[1]))), Recipe())
print(next(line for line in Path("/proc/self/status").read_text().splitlines() if "VmHWM" in line).split()[1])
"""


def small() -> Model:
    net = Net(1, 16, 16, 3)
    return net.model(net.conv(net.x, 4))


def wide_maps() -> Model:
    net = Net(1, 320, 320, 3)
    x = net.x
    for _ in range(6):
        x = net.add(ops.Logistic(), net.conv(x, 32, 1))
    return net.model(x)


def many_weights() -> Model:
    net = Net(1, 2048)
    x = net.x
    for _ in range(4):
        x = net.add(ops.FullyConnected(), x, net.weights(2048, 2048), net.constant(np.zeros(2048)))
    return net.model(x)


MODELS = {"small": small, "wide-maps": wide_maps, "many-weights": many_weights}


@pytest.mark.skipif(sys.platform != "linux", reason="the peak of a process is read from /proc")
@pytest.mark.parametrize("name", MODELS)
def test_the_prediction_comes_true(name: str, tmp_path: Path) -> None:
    model = MODELS[name]()
    write(model, tmp_path / "float.tflite")
    stored(model, noise(model), tmp_path)
    ran = subprocess.run([sys.executable, "-c", CALIBRATE, tmp_path / "float.tflite", tmp_path / "samples"],
                         capture_output=True, text=True, check=True, env=os.environ | {"OMP_NUM_THREADS": "1"})
    measured = int(ran.stdout.split()[-1]) << 10
    assert 0.7 * measured < predicted_bytes(model.main, watches(model.main, Recipe())) < 1.5 * measured


def test_it_is_told_before_the_first_sample(tmp_path: Path) -> None:
    told: list[str] = []

    class Told(Silent):
        def finish(self, name: str, text: str) -> None:
            told.append(f"{name}: {text}")

        def advance(self, done: int, total: int) -> None:
            told.append(f"{done} of {total}")

    model = small()
    path = tmp_path / "float.tflite"
    write(model, path)
    stored(model, noise(model, 3), tmp_path)
    _, facts = calibrate_model(path, model, DataOptions(path=tmp_path / "samples"), Recipe(), None, Told())
    assert told[0].startswith("calibrate: 3 samples will take about ")
    assert told[1:] == ["1 of 3", "2 of 3", "3 of 3"]
    assert facts.predicted_bytes > 1 << 20
