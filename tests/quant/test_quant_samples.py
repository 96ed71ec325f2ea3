"""Calibration data: what is wrong with it is said and named, enough of it is enough, and it streams from Python."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from quant_graphs import Array, Net, noise, stored

import vitrify as vt
import vitrify.ops as ops
from vitrify.core.errors import DataError, ModelError, VitrifyError
from vitrify.core.findings import Finding
from vitrify.data import Preprocess, open_samples
from vitrify.data.binding import identity_interface
from vitrify.data.feeds import Feed
from vitrify.ir import Model
from vitrify.quant import Recipe, Statistics
from vitrify.quant.calibration.growth import is_step
from vitrify.quant.calibration.suspicion import is_over, order_finding
from vitrify.runtimes.litert.calibrate import calibrate, calibrate_here
from vitrify.tflite import write


def small(folder: Path, gain: float = 1.0) -> tuple[Path, Model]:
    net = Net(1, 16, 16, 3)
    first = net.add(ops.Relu(), net.conv(net.x, 4, name="first", gain=gain))
    pooled = net.add(ops.Mean(keep_dims=True), first, net.constant([1, 2]), name="pool")
    model = net.model(net.add(ops.Logistic(), net.conv(pooled, 2, 1, name="last"), name="out"))
    write(model, folder / "float.tflite")
    return folder / "float.tflite", model


def calibrated(folder: Path, arrays: Sequence[dict[str, Array]], recipe: Recipe = Recipe()) -> Statistics:
    shutil.rmtree(folder / "samples", ignore_errors=True)
    path, model = small(folder)
    return calibrate_here(str(path), stored(model, arrays, folder), recipe)


def found(statistics: Statistics, code: str) -> Finding:
    return next(finding for finding in statistics.notes if finding.code == code)


@pytest.mark.parametrize(("value", "word"), [(np.nan, "NaN"), (np.inf, "inf"), (-np.inf, "-inf")], ids=str)
def test_a_sample_that_is_not_finite_is_named(value: float, word: str, tmp_path: Path) -> None:
    path, model = small(tmp_path)
    arrays = noise(model, count=4)
    arrays[2]["x"][0, 3, 4, 1] = value
    samples = stored(model, arrays, tmp_path)
    with pytest.raises(DataError) as caught:
        calibrate(path, samples, Recipe())
    told = caught.value.findings[0]
    assert told.code == "data.not_finite"
    assert told.where.endswith("002.npz[0]")
    assert told.headline == (f"002.npz[0] holds {word} for input 'x': 1 of 768 values are not finite, the first at "
                             "[0, 3, 4, 1]")


@pytest.mark.parametrize(("place", "value", "what"), [(1, np.nan, "1 NaN of 108"), (1, np.inf, "1 infinite of 108"),
                                                     (2, np.nan, "1 NaN of 4")], ids=["weight", "infinite", "bias"])
def test_weights_that_are_not_finite_are_named(place: int, value: float, what: str, tmp_path: Path) -> None:
    _, model = small(tmp_path)
    node = next(iter(model.main))
    data = node.input(place).data
    assert data is not None
    data.reshape(-1)[0] = value
    write(model, tmp_path / "float.tflite")
    with pytest.raises(ModelError) as caught:
        calibrate(tmp_path / "float.tflite", stored(model, noise(model), tmp_path), Recipe())
    told = caught.value.findings[0]
    assert told.code == "model.not_finite"
    assert f"of CONV_2D 'first' holds {what} values" in told.headline


def test_an_infinity_that_masks_is_no_broken_weight(tmp_path: Path) -> None:
    net = Net(1, 4)
    masked = net.add(ops.Maximum(), net.x, net.constant(np.float32([-np.inf] * 4)))
    model = net.model(net.add(ops.Relu(), masked))
    write(model, tmp_path / "float.tflite")
    assert calibrate_here(str(tmp_path / "float.tflite"), stored(model, noise(model), tmp_path), Recipe()).samples == 4


def test_files_left_out_are_told(tmp_path: Path) -> None:
    path, model = small(tmp_path)
    samples = stored(model, noise(model, count=5), tmp_path)
    (tmp_path / "samples" / "001.npz").write_bytes(b"PK\x03\x04broken")
    statistics = calibrate(path, samples, Recipe())
    assert statistics.samples == 4
    told = found(statistics, "data.unreadable")
    assert told.severity.value == "warning"
    assert told.where.endswith("001.npz")
    assert "left out" in told.why


def test_equal_samples_and_constant_inputs(tmp_path: Path) -> None:
    _, model = small(tmp_path)
    one = noise(model, count=1)
    assert "all 3 samples are the same" in found(calibrated(tmp_path, one * 3), "calibration.equal").headline
    grey = [{"x": np.full((1, 16, 16, 3), 0.5, np.float32)} for _ in range(1)]
    assert "every value of input 'x' is 0.5" in found(calibrated(tmp_path, grey), "calibration.constant").headline
    assert not [f for f in calibrated(tmp_path, noise(model)).notes if f.code.startswith("calibration.")]


def test_the_sample_that_stretches_ranges_is_named(tmp_path: Path) -> None:
    _, model = small(tmp_path)
    arrays = noise(model, count=12)
    arrays[7]["x"] *= 5
    told = found(calibrated(tmp_path, arrays), "calibration.outlier")
    assert "007.npz[0] in" in told.where
    assert "1 sample of 12" in told.headline
    arrays = noise(model, count=12)
    assert not [f for f in calibrated(tmp_path, arrays).notes if f.code == "calibration.outlier"]


def test_ranges_that_still_grow(tmp_path: Path) -> None:
    _, model = small(tmp_path)
    rising = [{"x": sample["x"] * 2 ** number} for number, sample in enumerate(noise(model, count=8))]
    statistics = calibrated(tmp_path, rising)
    told = found(statistics, "calibration.few")
    assert "from 4 to 8 samples" in told.headline
    assert statistics.growth is not None
    assert statistics.growth[1] > 0.9


def test_steps() -> None:
    assert [n for n in range(100) if is_step(n)] == [4, 6, 8, 12, 16, 24, 32, 48, 64, 96]


def test_enough_samples_are_enough(tmp_path: Path) -> None:
    path, model = small(tmp_path)
    np.save(tmp_path / "many.npy", np.stack([a["x"][0] for a in noise(model, count=200)]))
    interface = identity_interface(model)
    statistics = calibrate(path, open_samples(tmp_path / "many.npy", interface, enough=True), Recipe())
    assert statistics.stopped
    assert 16 <= statistics.samples < 200
    assert not calibrate(path, open_samples(tmp_path / "many.npy", interface), Recipe()).stopped


def test_python_gives_the_same_table_as_files(tmp_path: Path) -> None:
    path, model = small(tmp_path)
    arrays = noise(model, count=9)
    files = calibrate_here(str(path), stored(model, arrays, tmp_path), Recipe())
    (tmp_path / "kept").mkdir()
    feed = Feed((dict(a) for a in arrays), tmp_path / "kept").bind(identity_interface(model))
    given = calibrate(path, feed, Recipe())
    assert {n: given[n].range for n in given} == {n: files[n].range for n in files}
    assert given.samples == 9
    assert len(feed.kept()) == 9


def test_a_feed_goes_on_where_it_was_stopped(tmp_path: Path) -> None:
    path, model = small(tmp_path)
    arrays, interface = noise(model, count=12), identity_interface(model)

    class StoppedError(Exception):
        pass

    def broken() -> Iterator[dict[str, Array]]:
        yield from map(dict, arrays[:6])
        raise StoppedError

    def begin(data: object, checkpoint: Path) -> Statistics:
        folder = tmp_path / checkpoint.stem
        folder.mkdir(exist_ok=True)
        return calibrate(path, Feed(data, folder).bind(interface), Recipe(), checkpoint)

    whole = tmp_path / "whole.npz"
    begin(map(dict, arrays), whole)
    part = tmp_path / "part.npz"
    begin(map(dict, arrays[:6]), part)
    with pytest.raises(StoppedError):
        begin(broken(), tmp_path / "other.npz")
    begin(map(dict, arrays), part)
    assert part.read_bytes() == whole.read_bytes()


LIMITED = """
import resource, sys
from pathlib import Path
import numpy as np
import vitrify as vt
from vitrify.tflite import read
model = read(sys.argv[1])
resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
random = np.random.default_rng(0)
one = random.random((3, 640, 640), np.float32)
count = int(sys.argv[2])
made = vt.quantize(model, data=(one * np.float32(n / count) for n in range(count)))       # 4.9 MB each
# not getrusage: after a fork it counts what the parent held
print(next(line for line in Path("/proc/self/status").read_text().splitlines() if "VmHWM" in line).split()[1])
"""


@pytest.mark.parametrize("count", [300, pytest.param(5000, marks=pytest.mark.slow)])
def test_a_generator_larger_than_memory(count: int, tmp_path: Path) -> None:
    net = Net(1, 3, 640, 640)
    write(net.model(net.add(ops.Relu(), net.x)), tmp_path / "float.tflite")
    ran = subprocess.run([sys.executable, "-c", LIMITED, str(tmp_path / "float.tflite"), str(count)],
                         capture_output=True, text=True,
                         env={"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "PATH": "/usr/bin"})
    assert ran.returncode == 0, ran.stderr
    assert int(ran.stdout.split()[-1]) < 300 << 10


@pytest.mark.parametrize(("low", "high", "verdict"), [(0, 1, None), (-1, 1, None), (0, 255, "too large"),
                                                     (0, 1 / 255, "too small")], ids=str)
def test_a_range_the_first_layer_was_not_made_for(low: float, high: float, verdict: str | None, tmp_path: Path) -> None:
    path, model = small(tmp_path)
    node = next(iter(model.main))
    for place, norm in ((1, 3.0), (2, 1.0)):
        data = node.input(place).data
        assert data is not None
        data *= norm / np.sqrt(np.square(data).reshape(len(data), -1).sum(axis=1).mean())
    write(model, path)
    statistics = calibrate_here(str(path), stored(model, noise(model, low=low, high=high), tmp_path), Recipe())
    told = [f for f in statistics.notes if f.code == "calibration.range"]
    assert [verdict in f.headline for f in told] == ([True] if verdict else [])


def red_or_blue(folder: Path) -> tuple[Path, Model]:
    """Sure of itself where there is more red than blue."""
    net = Net(1, 8, 8, 3)
    mean = net.add(ops.Mean(), net.x, net.constant([1, 2]))
    weights = net.constant(np.float32([[20, 0, -20], [0, 0, 0], [0, 0, 0]]), "w")
    scores = net.add(ops.FullyConnected(), mean, weights, net.constant(np.zeros(3, np.float32)))
    model = net.model(net.add(ops.Softmax(beta=1.0), scores))
    write(model, folder / "float.tflite")
    return folder / "float.tflite", model


@pytest.mark.parametrize("color", ["rgb", "bgr"])
def test_colours_in_the_wrong_order(color: str, tmp_path: Path) -> None:
    path, model = red_or_blue(tmp_path)
    random = np.random.default_rng(1)
    (tmp_path / "photos").mkdir()
    for number in range(12):
        pixels = random.integers(0, 120, (8, 8, 3), np.uint8)
        pixels[:, :, 0] += np.uint8(random.integers(60, 130))
        Image.fromarray(pixels).save(tmp_path / "photos" / f"{number}.png")
    samples = open_samples(tmp_path / "photos", identity_interface(model), Preprocess(color=color))  # type: ignore[arg-type]
    told = [f for f in calibrate_here(str(path), samples, Recipe()).notes if f.code == "calibration.colors"]
    if color == "rgb":
        assert not told
    else:
        assert told[0].severity.value == "warning"
        assert told[0].help == "try --color rgb"


@pytest.mark.parametrize(("advantages", "severity"), [
    ([1.0, 1.1, 0.9, 1.2, 0.8, 1.0], "warning"), ([1.0, -0.6, 1.2, 0.1, 0.9, 0.2, 0.4, 0.3], "info"),
    ([0.1, -0.2, 0.3, -0.1, 0.2, -0.1], ""), ([-1.0] * 6, ""), ([1.0] * 5, "")],
    ids=["clear", "weak", "none", "right", "few"])
def test_how_sure_of_the_order(advantages: list[float], severity: str) -> None:
    assert [f.severity.value for f in order_finding(advantages, "rgb")] == ([severity] if severity else [])
    assert is_over(advantages) == (len(advantages) >= 6 and np.mean(advantages) <= 0)


def test_the_model_remembers_how_pictures_became_its_input(tmp_path: Path) -> None:
    _, model = small(tmp_path)
    (tmp_path / "photos").mkdir()
    random = np.random.default_rng(0)
    for number in range(3):
        Image.fromarray(random.integers(0, 255, (20, 20, 3), np.uint8)).save(tmp_path / "photos" / f"{number}.png")
    how = Preprocess(fit="letterbox", mean=(0.5,), std=(0.5,))
    made = vt.quantize(model, data=tmp_path / "photos", preprocess=how)
    write(made, tmp_path / "int8.tflite")
    seen = vt.inspect(tmp_path / "int8.tflite")
    assert (seen.preprocess["fit"], seen.preprocess["mean"]) == ("letterbox", [0.5])
    photo = tmp_path / "photos" / "1.png"
    (sample,) = open_samples(photo, identity_interface(model), how)
    by_path, by_array = vt.run(made, {"x": photo}), vt.run(made, sample)
    assert all(np.array_equal(by_path[name], by_array[name]) for name in by_array)
    compared = vt.verify(tmp_path / "float.tflite", tmp_path / "int8.tflite", data=tmp_path / "photos")
    assert compared.ok
    told = next(f for f in compared.findings if f.code == "data.remembered")
    assert "fit letterbox, mean 0.5, std 0.5" in told.headline
    other = vt.verify(tmp_path / "float.tflite", tmp_path / "int8.tflite", data=tmp_path / "photos",
                      preprocess=Preprocess())
    assert "data.prepared" in [f.code for f in other.findings]


REFUSED: dict[str, tuple[Callable[[Path], Any], str]] = {
    "empty folder": (lambda p: p, "data.empty"), "nothing": (lambda p: p / "none", "data.missing"),
    "no samples": (lambda p: iter(()), "data.empty"), "number": (lambda p: 3, "call.data"),
    "shape": (lambda p: np.zeros((4, 9), np.float32), "data.shape"),
    "layout": (lambda p: np.zeros((4, 3, 16, 16), np.float32), "data.layout"),
    "dtype": (lambda p: np.zeros((4, 16, 16, 3), np.int64), "data.dtype"),
    "inputs": (lambda p: {"y": np.zeros((1, 16, 16, 3), np.float32)}, "data.missing_input"),
    "not finite": (lambda p: np.full((1, 16, 16, 3), np.nan, np.float32), "data.not_finite")}


@pytest.mark.parametrize("case", REFUSED)
def test_data_that_does_not_do(case: str, tmp_path: Path) -> None:
    make, code = REFUSED[case]
    _, model = small(tmp_path)
    (tmp_path / "data").mkdir()
    with pytest.raises(VitrifyError) as caught:
        vt.quantize(model, data=make(tmp_path / "data"))
    assert [f.code for f in caught.value.findings] == [code]


def test_sizes_may_differ(tmp_path: Path) -> None:
    path, model = small(tmp_path)
    random = np.random.default_rng(0)
    for number, size in enumerate([(10, 30), (64, 16), (200, 100)]):
        Image.fromarray(random.integers(0, 255, (*size, 3), np.uint8)).save(tmp_path / f"{number}.png")
    assert calibrate(path, open_samples(tmp_path, identity_interface(model)), Recipe()).samples == 3
