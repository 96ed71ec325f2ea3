"""Fourier transforms, windows and mel filters against ONNX Runtime."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx_makers import Case, Feed, by_runtime, imported, same_as_runtime, saved

from vitrify.core.errors import UnsupportedError

RNG = np.random.default_rng(13)


def i64(value: int) -> np.ndarray:
    return np.array(value, np.int64)


def f(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


REAL, COMPLEX = (2, 12, 5, 1), (2, 12, 5, 2)
TRANSFORMS = {
    "17": Case("DFT", [REAL], {"axis": 1}, opset=17, tolerance=1e-5),
    "17, default axis": Case("DFT", [COMPLEX], opset=17, tolerance=1e-5),
    "17, onesided": Case("DFT", [REAL], {"axis": 1, "onesided": 1}, opset=17, tolerance=1e-5),
    "17, inverse": Case("DFT", [COMPLEX], {"axis": 2, "inverse": 1}, opset=17, tolerance=1e-5),
    "17, longer": Case("DFT", [REAL, i64(16)], {"axis": 1}, opset=17, tolerance=1e-5),
    "20": Case("DFT", [COMPLEX], opset=20, tolerance=1e-5),
    "20, axis": Case("DFT", [COMPLEX, None, i64(1)], opset=20, tolerance=1e-5),
    "20, shorter": Case("DFT", [COMPLEX, i64(8), i64(1)], opset=20, tolerance=1e-5),
    "20, much shorter": Case("DFT", [(1, 50, 2), i64(3), i64(1)], opset=20, tolerance=1e-5),
    "20, onesided, odd": Case("DFT", [REAL, i64(11), i64(-3)], {"onesided": 1}, opset=20, tolerance=1e-5),
    "frames": Case("STFT", [(2, 90, 1), i64(10), None, i64(32)], opset=17, tolerance=1e-5),
    "frames, window": Case("STFT", [(2, 90, 1), i64(7), f(25)], opset=17, tolerance=1e-5),
    "frames, window and length": Case("STFT", [(1, 64, 1), i64(16), f(16), i64(16)], opset=17, tolerance=1e-5),
    "frames, both sides": Case(
        "STFT", [(2, 90, 1), i64(10), f(32), i64(32)], {"onesided": 0}, opset=17, tolerance=1e-5
    ),
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_transform_equals_onnx_runtime(name: str, tmp_path: Path) -> None:
    same_as_runtime(TRANSFORMS[name], tmp_path)


def test_frames_are_one_convolution(tmp_path: Path) -> None:
    built = imported(TRANSFORMS["frames, window"].proto(), tmp_path)
    assert [n.op.kind for n in built.main] == ["RESHAPE", "CONV_2D", "RESHAPE"]


def test_inverse_of_one_side_gives_real_numbers_back(tmp_path: Path) -> None:
    """ONNX Runtime has no inverse of a one-sided spectrum: numpy tells what it is."""
    from onnx_makers import by_litert

    case = Case("DFT", [(2, 7, 3, 2), None, i64(1)], {"inverse": 1, "onesided": 1}, opset=20)
    x = case.feeds()["x0"]
    got = by_litert(imported(case.proto(), tmp_path), case.feeds())["y0"]
    wanted = np.fft.irfft(x[..., 0] + 1j * x[..., 1], axis=1)[..., None]
    np.testing.assert_allclose(got, wanted, atol=2e-6)


CONSTANTS = {
    **{
        f"{kind}, {size}, {periodic}": Case(kind, [i64(size)], {"periodic": periodic}, opset=17)
        for kind in ("HannWindow", "HammingWindow", "BlackmanWindow")
        for size, periodic in ((10, 1), (11, 0), (16, 1))
    },
    "mel": Case(
        "MelWeightMatrix",
        [i64(20), i64(256), i64(16000), np.array(20, np.float32), np.array(7600, np.float32)],
        opset=17,
    ),
}


@pytest.mark.parametrize("name", CONSTANTS)
def test_constant_equals_onnx_runtime(name: str, tmp_path: Path) -> None:
    case = CONSTANTS[name]
    wanted = by_runtime(saved(case.proto(), tmp_path), {})["y0"]
    made = imported(case.proto(), tmp_path).main.outputs[0].producer
    assert made is not None
    np.testing.assert_allclose(made.input(0).data, wanted.reshape(made.input(0).shape), atol=1e-6)


REFUSED = {
    "random numbers": (Case("RandomUniformLike", [(2, 3)]), "feed them as an input of the model"),
    "coin tosses": (Case("Bernoulli", [(2, 3)]), "feed them as an input of the model"),
    "files of pictures": (Case("ImageDecoder", [Feed(np.zeros(9, np.uint8))], opset=20), "decode the picture before"),
    "a huge matrix": (Case("DFT", [(1, 1 << 14, 1)], opset=17), "at most 16777216 are made"),
    "a huge signal": (Case("DFT", [(1, 1 << 23, 1), i64(2)], opset=17), "at most 16777216 are made"),
    "a huge window": (Case("HannWindow", [i64(1 << 27)], opset=17), "at most 4,194,304 are made"),
    "a huge length": (Case("DFT", [(1, 8, 1), i64(1 << 40)], opset=17), "at most 16777216 are made"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_says_what_helps(name: str, tmp_path: Path) -> None:
    case, text = REFUSED[name]
    with pytest.raises(UnsupportedError, match=text):
        imported(case.proto(), tmp_path)
