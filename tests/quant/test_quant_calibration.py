"""Calibration: what is observed, that it streams, and that a killed run goes on to the same table."""

import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from quant_graphs import Net, noise, statistics_of, stored

import vitrify.ops as ops
from vitrify.core.errors import DataError, ModelError
from vitrify.data import open_samples, random_samples
from vitrify.data.binding import identity_interface
from vitrify.ir import Model
from vitrify.quant import Recipe, Statistics, quantize
from vitrify.quant.calibration.observe import watches
from vitrify.runtimes.litert.calibrate import calibrate, calibrate_here
from vitrify.tflite import write


def small(tmp_path: Path) -> tuple[Path, Model]:
    net = Net(1, 16, 16, 3)
    first = net.add(ops.HardSwish(), net.conv(net.x, 4, name="first"))
    pooled = net.add(ops.MaxPool2D(filter_height=2, filter_width=2, stride_h=2, stride_w=2), first, name="pool")
    model = net.model(net.add(ops.Logistic(), net.conv(pooled, 2, name="last"), name="out"))
    write(model, tmp_path / "float.tflite")
    return tmp_path / "float.tflite", model


def test_only_what_needs_a_range_is_observed(tmp_path: Path) -> None:
    _, model = small(tmp_path)
    recipe = Recipe(bias_correction=False)
    assert [w.key for w in watches(model.main, recipe)] == [
        "x", "first_conv_2d", "hard_swish1_hard_swish", "last_conv_2d", "out_logistic"]


def test_ranges_are_those_of_the_values(tmp_path: Path) -> None:
    net = Net(1, 8, 8, 3)
    model = net.model(net.add(ops.Mul(), net.x, net.constant(np.float32(2)), name="double"))
    arrays = noise(model, count=5)
    statistics = statistics_of(model, tmp_path, arrays=arrays)
    whole = np.stack([a["x"] for a in arrays])
    assert statistics["x"].range.low == whole.min()
    assert statistics["double_mul"].range.high == 2 * whole.max()
    assert statistics["double_mul"].axis_high[3].tolist() == (2 * whole.max(axis=(0, 1, 2, 3))).tolist()
    assert statistics.samples == 5


def test_two_halves_merge_to_the_whole(tmp_path: Path) -> None:
    path, model = small(tmp_path)
    samples = stored(model, noise(model, count=6), tmp_path)
    recipe = Recipe(calibrator="percentile")
    whole = calibrate_here(str(path), samples, recipe)
    halves = []
    for part in (slice(0, 3), slice(3, 6)):
        chosen = type(samples)(inputs=samples.inputs, files=samples.files, chosen=samples.chosen[part])
        halves.append(calibrate_here(str(path), chosen, recipe))
    halves[1].merge(halves[0])
    for name in whole:
        one, two = whole[name], halves[1][name]
        assert one.range == two.range
        assert one.histogram is not None
        assert two.histogram is not None
        assert one.histogram.counts.tolist() == two.histogram.counts.tolist()
        if one.means is not None:
            assert np.allclose(one.means, two.means, rtol=1e-12)
    assert halves[1].samples == 6


@pytest.mark.parametrize("recipe", [Recipe(), Recipe(calibrator="percentile")], ids=["minmax", "histograms"])
def test_statistics_read_back_bit_for_bit(recipe: Recipe, tmp_path: Path) -> None:
    path, model = small(tmp_path)
    made = calibrate_here(str(path), stored(model, noise(model), tmp_path), recipe)
    made.save(tmp_path / "one.npz")
    Statistics.load(tmp_path / "one.npz").save(tmp_path / "two.npz")
    assert (tmp_path / "one.npz").read_bytes() == (tmp_path / "two.npz").read_bytes()


KILLED = """
import os, signal, sys
import vitrify.runtimes.litert.calibrate as calibrate
from vitrify.data import open_samples
from vitrify.data.binding import identity_interface
from vitrify.quant import Recipe
from vitrify.tflite import read
calibrate.CHECKPOINT_SECONDS = 0.0
def progress(done, total):
    if done == total // 2:
        os.kill(os.getpid(), signal.SIGKILL)
path, data, checkpoint = sys.argv[1:]
samples = open_samples(data, identity_interface(read(path)))
calibrate.calibrate_here(path, samples, Recipe(calibrator="percentile"), checkpoint, progress)
"""


def test_a_killed_run_goes_on_to_the_same_table(tmp_path: Path) -> None:
    path, model = small(tmp_path)
    samples = stored(model, noise(model, count=8), tmp_path)
    recipe = Recipe(calibrator="percentile")
    calibrate_here(str(path), samples, recipe, str(tmp_path / "whole.npz"))
    died = subprocess.run([sys.executable, "-c", KILLED, path, tmp_path / "samples", tmp_path / "part.npz"])
    assert died.returncode == -signal.SIGKILL
    assert Statistics.load(tmp_path / "part.npz").samples == 4
    steps: list[int] = []
    calibrate_here(str(path), samples, recipe, str(tmp_path / "part.npz"), lambda done, total: steps.append(done))
    assert steps == [5, 6, 7, 8]
    assert (tmp_path / "part.npz").read_bytes() == (tmp_path / "whole.npz").read_bytes()


@pytest.mark.parametrize("change", ["model", "samples", "garbage"])
def test_a_checkpoint_of_something_else_is_not_taken_up(change: str, tmp_path: Path) -> None:
    path, model = small(tmp_path)
    samples = stored(model, noise(model, count=4), tmp_path)
    checkpoint = tmp_path / "checkpoint.npz"
    calibrate_here(str(path), samples, Recipe(), str(checkpoint))
    if change == "model":
        path.write_bytes(path.read_bytes() + b"\0")
    if change == "samples":
        samples = type(samples)(inputs=samples.inputs, files=samples.files, chosen=samples.chosen[:3])
    if change == "garbage":
        checkpoint.write_bytes(b"PK nothing")
    steps: list[int] = []
    calibrate_here(str(path), samples, Recipe(), str(checkpoint), lambda done, total: steps.append(done))
    assert steps[0] == 1


def test_memory_does_not_grow_with_the_samples(tmp_path: Path) -> None:
    net = Net(1, 160, 160, 3)
    model = net.model(net.conv(net.x, 4, stride_h=2, stride_w=2))
    write(model, tmp_path / "float.tflite")
    many = 2000
    np.lib.format.open_memmap(tmp_path / "data.npy", "w+", np.float32, (many, 160, 160, 3)).flush()     # 614 MB
    script = ("import sys, resource; from vitrify.runtimes.litert.calibrate import calibrate_here; "
              "from vitrify.data import open_samples; from vitrify.data.binding import identity_interface; "
              "from vitrify.quant import Recipe; from vitrify.tflite import read; p, d = sys.argv[1:]; "
              "resource.setrlimit(resource.RLIMIT_DATA, (400 << 20,) * 2); "
              "s = open_samples(d, identity_interface(read(p))); print(calibrate_here(p, s, Recipe()).samples)")
    done = subprocess.run([sys.executable, "-c", script, tmp_path / "float.tflite", tmp_path / "data.npy"],
                          capture_output=True, text=True)
    assert done.stdout.strip() == str(many), done.stderr


def test_in_a_process_of_its_own(tmp_path: Path) -> None:
    path, model = small(tmp_path)
    samples = stored(model, noise(model), tmp_path)
    steps: list[tuple[int, int]] = []
    made = calibrate(path, samples, Recipe(), progress=lambda done, total: steps.append((done, total)))
    assert steps == [(1, 4), (2, 4), (3, 4), (4, 4)]
    here = calibrate_here(str(path), samples, Recipe())
    assert {n: made[n].range for n in made} == {n: here[n].range for n in here}


def test_errors_come_out_of_the_process(tmp_path: Path) -> None:
    path, model = small(tmp_path)
    samples = stored(model, noise(model), tmp_path)
    for name in ("001", "002", "003"):
        (tmp_path / "samples" / f"{name}.npz").write_bytes(b"PK\x03\x04broken")
    with pytest.raises(DataError, match=r"cannot read 002\.npz"):
        calibrate(path, samples, Recipe())
    with pytest.raises(ModelError):
        calibrate(tmp_path / "samples" / "000.npz", samples, Recipe())
    with pytest.raises(DataError, match="no calibration samples"):
        calibrate(path, random_samples(identity_interface(model), 0), Recipe())


def test_random_samples_mark_the_run(tmp_path: Path) -> None:
    path, model = small(tmp_path)
    statistics = calibrate_here(str(path), random_samples(identity_interface(model), 2, seed=1), Recipe())
    assert statistics.is_random
    assert [f.code for f in quantize(model, statistics).findings] == ["quant.random"]
    real = calibrate_here(str(path), open_samples(stored(model, noise(model), tmp_path).files[0],
                                                  identity_interface(model)), Recipe())
    assert quantize(model, real).findings == ()


def test_tails_are_cut_on_large_maps_only() -> None:
    net = Net(1, 256, 256, 3)
    large = net.conv(net.x, 4, stride_h=4, stride_w=4, name="stride4")
    small_map = net.conv(large, 4, stride_h=2, stride_w=2, name="stride8")
    model = net.model(net.conv(small_map, 4, name="output"))
    assert {w.key: w.histogram for w in watches(model.main, Recipe(trials="none"))} == {
        "x": False, "stride4_conv_2d": True, "stride8_conv_2d": False, "output_conv_2d": False}
    assert not any(w.histogram for w in watches(model.main, Recipe(calibrator="minmax", trials="none")))
    assert all(w.histogram for w in watches(model.main, Recipe()))              # trials may ask for any calibrator
    assert all(w.histogram for w in watches(model.main, Recipe(calibrator="least-error")))
