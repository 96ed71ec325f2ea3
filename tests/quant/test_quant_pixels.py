"""Pictures enter an int8 model as their pixels: mean and std go into the first convolution."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from quant_graphs import Array, Net, run, sqnr

import vitrify.ops as ops
from vitrify.data import Preprocess, Samples, open_samples
from vitrify.data.binding import identity_interface, quantization_of, to_file_inputs
from vitrify.ir import Model
from vitrify.quant import QuantizeResult, Recipe, Statistics, quantize
from vitrify.runtimes.litert.calibrate import calibrate_here
from vitrify.tflite import write

PER_CHANNEL = Preprocess(color="bgr", mean=(0.485, 0.456, 0.406), std=(0.229, 0.224, 0.225))
PADS = [[0, 0], [1, 1], [1, 1], [0, 0]]


def pictures(folder: Path) -> Path:
    made = folder / "pictures"
    made.mkdir()
    random = np.random.default_rng(3)
    for number in range(3):
        pixels = random.integers(0, 256, (12, 10, 3)).astype(np.uint8)
        pixels[:4] = 250
        Image.fromarray(pixels).save(made / f"{number}.png")
    return made


def conv(net: Net, pad: bool = True, other_reader: bool = False) -> Model:
    x = net.add(ops.Pad(), net.x, net.constant(PADS)) if pad else net.x
    y = net.conv(x, 5, padding=ops.Padding.VALID)
    return net.model(y, net.add(ops.Relu(), net.x)) if other_reader else net.model(y)


def quantized(model: Model, preprocess: Preprocess, folder: Path) -> tuple[QuantizeResult, Samples]:
    write(model, folder / "float.tflite")
    samples = open_samples(pictures(folder), identity_interface(model), preprocess)
    return quantize(model, calibrate_here(str(folder / "float.tflite"), samples, Recipe())), samples


def details(result: QuantizeResult) -> list[dict[str, object]]:
    tensor = result.model.main.inputs[0]
    assert tensor.quantization is not None
    return [{"shape": tensor.shape, "dtype": np.int8,
             "quantization_parameters": {"scales": tensor.quantization.scale,
                                         "zero_points": tensor.quantization.zero_point}}]


def given(result: QuantizeResult, sample: dict[str, Array]) -> Array:
    interface = result.model.interface or identity_interface(result.model)
    return to_file_inputs(interface, sample, details(result))[0]


CASES = {
    "per_channel": (PER_CHANNEL, True),
    "half": (Preprocess(mean=(0.5,), std=(0.5,)), True),
    "on_a_level": (Preprocess(mean=(127 / 255,), std=(128 / 255,)), False),
    "plain": (Preprocess(), False),
}


@pytest.mark.parametrize("pad", [True, False], ids=["padded", "bare"])
@pytest.mark.parametrize("name", CASES)
def test_the_file_takes_pixels(name: str, pad: bool, tmp_path: Path) -> None:
    preprocess, folded = CASES[name]
    model = conv(Net(1, 12, 10, 3), pad)
    result, samples = quantized(model, preprocess, tmp_path)
    for index, sample in enumerate(samples):
        pixels = np.asarray(Image.open(samples.files[index]))
        pixels = pixels[..., ::-1] if preprocess.color == "bgr" else pixels
        assert np.array_equal(given(result, sample)[0], pixels.astype(np.int16) - 128)
    assert bool(result.model.interface and result.model.interface.inputs[0].scale) == folded
    assert ("pixels" in [entry.name for entry in result.ledger.entries]) == folded


@pytest.mark.parametrize("name", CASES)
def test_the_answers_stay(name: str, tmp_path: Path) -> None:
    model = conv(Net(1, 12, 10, 3), pad=False)
    result, samples = quantized(model, CASES[name][0], tmp_path)
    for sample in samples:
        (wanted,), (found,) = run(model, sample).values(), run(result.model, sample).values()
        assert sqnr(wanted, found) > 36


def test_an_input_with_other_readers_keeps_its_values(tmp_path: Path) -> None:
    result, samples = quantized(conv(Net(1, 12, 10, 3), other_reader=True), PER_CHANNEL, tmp_path)
    assert result.model.interface is None or not result.model.interface.inputs[0].scale
    sample = next(iter(samples))
    quantization = quantization_of(details(result)[0])
    assert quantization is not None
    error = np.abs(quantization.dequantize(given(result, sample)) - sample["x"])
    assert error.max() <= quantization.scale[0] * 0.51


def test_what_pictures_were_is_kept_with_the_statistics(tmp_path: Path) -> None:
    model = conv(Net(1, 12, 10, 3))
    write(model, tmp_path / "float.tflite")
    samples = open_samples(pictures(tmp_path), identity_interface(model), PER_CHANNEL)
    seen = calibrate_here(str(tmp_path / "float.tflite"), samples, Recipe())
    seen.save(tmp_path / "seen.npz")
    again = Statistics.load(tmp_path / "seen.npz")
    assert again.pictures == PER_CHANNEL
    assert list(again.moments) == list(seen.moments)
    for name, moments in seen.moments.items():
        assert np.array_equal(again.moments[name].second, moments.second)
        assert again.moments[name].count == moments.count > 0
