"""Samples: shapes and layouts from the model, every bad file named, never all in memory."""

import pickle
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import vitrify.data.preprocess as preprocess_module
from vitrify.core.errors import DataError, UsageError
from vitrify.data import Preprocess, open_samples, random_samples
from vitrify.ir import InputBinding, Interface


def taking(*inputs: tuple[str, tuple[int, ...], str]) -> Interface:
    """An interface with these inputs."""
    bindings = (InputBinding(name=n, shape=s, dtype=d, position=i) for i, (n, s, d) in enumerate(inputs))
    return Interface(inputs=tuple(bindings), outputs=())


NHWC = taking(("x", (1, 4, 6, 3), "float32"))
FLAT = taking(("x", (1, 5), "float32"))
RAMP = np.arange(4 * 6 * 3, dtype=np.uint8).reshape(4, 6, 3)


def picture(path: Path, pixels: np.ndarray = RAMP, **kwargs: object) -> Path:
    Image.fromarray(pixels).save(path, **kwargs)      # type: ignore[arg-type]
    return path


@pytest.mark.parametrize(("shape", "expected"), [
    ((1, 4, 6, 3), RAMP[None]), ((4, 6, 3), RAMP), ((1, 3, 4, 6), RAMP.transpose(2, 0, 1)[None]),
    ((3, 4, 6), RAMP.transpose(2, 0, 1))], ids=["NHWC", "HWC", "NCHW", "CHW"])
def test_layout_follows_the_input(shape: tuple[int, ...], expected: np.ndarray, tmp_path: Path) -> None:
    picture(tmp_path / "a.png")
    (sample,) = open_samples(tmp_path, taking(("x", shape, "float32")))
    assert sample["x"].dtype == np.float32
    assert np.allclose(sample["x"], expected / 255)


@pytest.mark.parametrize(("options", "expected"), [
    ({}, RAMP / 255), ({"color": "bgr"}, RAMP[:, :, ::-1] / 255),
    ({"mean": (0.5,), "std": (0.5,)}, (RAMP / 255 - 0.5) / 0.5),
    ({"mean": (0.1, 0.2, 0.3), "std": (1.0, 2.0, 4.0)}, (RAMP / 255 - [0.1, 0.2, 0.3]) / [1, 2, 4]),
], ids=["plain", "bgr", "one mean", "mean per channel"])
def test_values(options: dict[str, object], expected: np.ndarray, tmp_path: Path) -> None:
    picture(tmp_path / "a.png")
    (sample,) = open_samples(tmp_path, NHWC, Preprocess(**options))      # type: ignore[arg-type]
    assert np.allclose(sample["x"][0], expected, atol=1e-6)


def test_gray_for_one_channel(tmp_path: Path) -> None:
    picture(tmp_path / "a.png")
    (sample,) = open_samples(tmp_path, taking(("x", (1, 1, 4, 6), "float32")))
    assert np.allclose(sample["x"][0, 0] * 255, np.asarray(Image.fromarray(RAMP).convert("L")))


FITS: dict[str, Callable[[np.ndarray], bool]] = {
    "stretch": lambda x: bool(np.allclose(x, 1)),
    "letterbox": lambda x: bool(np.allclose(x[8:24], 1) and np.allclose(x[[0, 7, 24, 31]], 114 / 255)),
    "crop": lambda x: bool(np.allclose(x, 1)),
}


@pytest.mark.parametrize("fit", FITS)
def test_fits_keep_what_they_promise(fit: str, tmp_path: Path) -> None:
    picture(tmp_path / "a.png", np.full((20, 40, 3), 255, np.uint8))
    (sample,) = open_samples(tmp_path, taking(("x", (1, 32, 32, 3), "float32")),
                             Preprocess(fit=fit, interpolation="nearest"))      # type: ignore[arg-type]
    assert FITS[fit](sample["x"][0])


def test_crop_takes_the_middle(tmp_path: Path) -> None:
    pixels = np.zeros((100, 200, 3), np.uint8)
    pixels[6:94, 56:144] = 255                  # a little more than 87.5 % of the 100 x 100 in the middle
    picture(tmp_path / "a.png", pixels)
    (sample,) = open_samples(tmp_path, taking(("x", (1, 50, 50, 3), "float32")), Preprocess(fit="crop"))
    assert sample["x"].min() > 0.9


def test_exif_orientation_is_honoured(tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6                            # turned by 90 degrees clockwise for display
    pixels = np.zeros((6, 4, 3), np.uint8)
    pixels[5] = 255                             # the last stored row is the first shown column
    picture(tmp_path / "a.png", pixels, exif=exif)
    (sample,) = open_samples(tmp_path, NHWC)
    assert np.allclose(sample["x"][0, :, 0], 1)
    assert np.allclose(sample["x"][0, :, 1:], 0)


@pytest.mark.parametrize("mode", ["L", "LA", "RGBA", "P", "1", "I;16", "CMYK"])
def test_modes(mode: str, tmp_path: Path) -> None:
    if mode == "I;16":
        Image.fromarray(np.full((4, 6), 65535, np.uint16)).save(tmp_path / "a.png")
    else:
        ending = "tif" if mode == "CMYK" else "png"
        Image.new("RGB", (6, 4), (255, 255, 255)).convert(mode).save(tmp_path / f"a.{ending}")
    (sample,) = open_samples(tmp_path, NHWC)
    assert sample["x"].shape == (1, 4, 6, 3)
    assert np.allclose(sample["x"], 1)


def truncated(path: Path) -> None:
    picture(path / "bad.png", np.random.default_rng(0).integers(0, 255, (40, 40, 3), np.uint8))
    (path / "bad.png").write_bytes((path / "bad.png").read_bytes()[:600])


BAD_PICTURES: dict[str, tuple[Callable[[Path], object], str]] = {
    "truncated": (truncated, r"cannot read bad\.png"),
    "empty": (lambda p: (p / "bad.jpg").write_bytes(b""), r"cannot read bad\.jpg: not a picture"),
    "text": (lambda p: (p / "bad.png").write_text("hello"), r"cannot read bad\.png: not a picture"),
}


@pytest.mark.parametrize("case", BAD_PICTURES)
def test_unreadable_pictures_are_named(case: str, tmp_path: Path) -> None:
    make, message = BAD_PICTURES[case]
    picture(tmp_path / "a.png")
    make(tmp_path)
    samples = open_samples(tmp_path, NHWC)
    assert len(samples) == 2
    with pytest.raises(DataError, match=message):
        list(samples)


def test_giant_pictures_are_refused_before_they_are_decoded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    picture(tmp_path / "a.png", np.zeros((100, 200, 3), np.uint8))
    monkeypatch.setattr(preprocess_module, "MAX_PIXELS", 19_999)
    with pytest.raises(DataError, match=r"a\.png is refused: 200 x 100 pixels are above 19,999"):
        list(open_samples(tmp_path, NHWC))


def test_a_decompression_bomb_is_refused(tmp_path: Path) -> None:
    picture(tmp_path / "a.png")
    data = bytearray((tmp_path / "a.png").read_bytes())
    data[16:24] = (40_000).to_bytes(4, "big") * 2       # the header says 1.6 billion pixels
    import zlib
    data[29:33] = zlib.crc32(data[12:29]).to_bytes(4, "big")
    (tmp_path / "a.png").write_bytes(data)
    with pytest.raises(DataError, match=r"a\.png is refused"):
        list(open_samples(tmp_path, NHWC))


@pytest.mark.parametrize(("shape", "count"), [((1, 5), 1), ((5,), 1), ((7, 5), 7), ((7, 1, 5), 7)], ids=str)
def test_npy_shapes(shape: tuple[int, ...], count: int, tmp_path: Path) -> None:
    values = np.arange(np.prod(shape), dtype=np.float64).reshape(shape)
    np.save(tmp_path / "a.npy", values)
    samples = open_samples(tmp_path / "a.npy", FLAT)
    assert len(samples) == count
    assert np.array_equal(np.concatenate([s["x"] for s in samples]), values.reshape(-1, 5))
    assert next(iter(samples))["x"].dtype == np.float32


ARRAY_ERRORS = {
    "shape": (np.zeros((2, 6), np.float32), r"a\.npy holds float32\[2,6\], input 'x' takes float32\[1,5\]"),
    "rank": (np.zeros((2, 3, 1, 5), np.float32), r"a\.npy holds float32\[2,3,1,5\]"),
    "dtype": (np.zeros((2, 5), np.uint8), r"a\.npy holds uint8\[2,5\], input 'x' takes float32\[1,5\]"),
}


@pytest.mark.parametrize("case", ARRAY_ERRORS)
def test_arrays_that_do_not_fit(case: str, tmp_path: Path) -> None:
    array, message = ARRAY_ERRORS[case]
    np.save(tmp_path / "a.npy", array)
    with pytest.raises(DataError, match=message):
        open_samples(tmp_path, FLAT)


def test_all_bad_files_are_listed_at_once(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.zeros((2, 6), np.float32))
    (tmp_path / "b.npy").write_bytes(b"nothing")
    np.save(tmp_path / "c.npy", np.array([{}], object), allow_pickle=True)
    with pytest.raises(DataError) as caught:
        open_samples(tmp_path, FLAT)
    assert [f.code for f in caught.value.findings] == ["data.shape", "data.unreadable", "data.unreadable"]


TWO = taking(("a", (1, 5), "float32"), ("b", (1,), "int64"))


def test_npz_by_input_name(tmp_path: Path) -> None:
    a, b = np.random.default_rng(0).random((4, 5)), np.arange(4)
    np.savez_compressed(tmp_path / "s.npz", a=a, b=b, more=np.zeros(3))
    samples = list(open_samples(tmp_path, TWO))
    assert np.allclose(np.concatenate([s["a"] for s in samples]), a)
    assert np.array_equal(np.concatenate([s["b"] for s in samples]), b)
    assert samples[0]["b"].dtype == np.int64


@pytest.mark.parametrize(("arrays", "message"), [
    ({"a": np.zeros((4, 5))}, r"has no array 'b'; it has 'a'"),
    ({"a": np.zeros((4, 5)), "b": np.arange(3)}, r"unequal numbers of samples: 'a' 4, 'b' 3"),
    ({"a": np.zeros((4, 6)), "b": np.arange(4)}, r"holds float64\[4,6\]"),
    ({"a": np.zeros((4, 5)), "b": np.zeros(4)}, r"holds float64\[4\], input 'b' takes int64\[1\]"),
    ({"a": np.asfortranarray(np.zeros((4, 5))), "b": np.arange(4)}, "column by column"),
], ids=["missing", "counts", "shape", "dtype", "order"])
def test_npz_that_does_not_fit(arrays: dict[str, np.ndarray], message: str, tmp_path: Path) -> None:
    np.savez(tmp_path / "s.npz", **arrays)      # type: ignore[arg-type]
    with pytest.raises(DataError, match=message):
        open_samples(tmp_path, TWO)


def test_npz_is_streamed(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "s.npz", "w") as archive, archive.open("x.npy", "w", force_zip64=True) as stream:
        np.lib.format.write_array_header_1_0(stream, {"descr": "<f4", "fortran_order": False, "shape": (200, 100_000)})
        for number in range(200):
            stream.write(np.full(100_000, number, np.float32).tobytes())
    samples = open_samples(tmp_path, taking(("x", (1, 100_000), "float32")))
    tracemalloc.start()
    seen = [float(s["x"][0, -1]) for s in samples]
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert seen == list(range(200))
    assert peak < 4 << 20                       # the array itself has 80 MB


def test_order_is_that_of_the_names_and_samples_walk_again(tmp_path: Path) -> None:
    for name in ("b/2.npy", "a/9.npy", "b/10.npy"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        np.save(tmp_path / name, np.full((2, 5), float(Path(name).stem), np.float32))
    (tmp_path / "notes.txt").write_text("not a sample")
    samples = open_samples(tmp_path, FLAT)
    once = [float(s["x"][0, 0]) for s in samples]
    assert once == [9, 9, 10, 10, 2, 2]
    assert [float(s["x"][0, 0]) for s in samples] == once
    assert [float(s["x"][0, 0]) for s in samples.walk(3)] == once[3:]
    assert [float(s["x"][0, 0]) for s in pickle.loads(pickle.dumps(samples))] == once
    assert [float(s["x"][0, 0]) for s in open_samples(tmp_path, FLAT, limit=3)] == [9, 10, 2]
    assert samples.name(1).endswith("9.npy[1]")


@pytest.mark.parametrize(("make", "message"), [
    (lambda p: p / "nowhere", "there is no"), (lambda p: p, "no pictures, recordings, .npy or .npz files below"),
    (lambda p: (p / "model.bin").write_bytes(b"x") and p / "model.bin", "neither a picture nor"),
], ids=["missing", "empty", "other"])
def test_nothing_to_read(make: Callable[[Path], Path], message: str, tmp_path: Path) -> None:
    with pytest.raises((DataError, UsageError), match=message):
        open_samples(make(tmp_path), FLAT)


@pytest.mark.parametrize("interface", [FLAT, TWO, taking(("x", (1, 4, 4, 9), "float32"))],
                         ids=["flat", "two", "9 channels"])
def test_pictures_for_a_model_that_takes_none(interface: Interface, tmp_path: Path) -> None:
    picture(tmp_path / "a.png")
    with pytest.raises(DataError, match="pictures do not fit the model's inputs"):
        open_samples(tmp_path, interface)


def test_random_samples_are_the_same_each_time() -> None:
    one, two = list(random_samples(TWO, 3, seed=4)), list(random_samples(TWO, 3, seed=4))
    assert all(np.array_equal(a[k], b[k]) for a, b in zip(one, two, strict=True) for k in a)
    assert not np.array_equal(one[0]["a"], one[1]["a"])
    assert random_samples(TWO, 3).is_random


def test_a_changed_file_changes_the_fingerprint(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.zeros((2, 5), np.float32))
    before = open_samples(tmp_path, FLAT).fingerprint()
    assert open_samples(tmp_path, FLAT).fingerprint() == before
    assert open_samples(tmp_path, FLAT, Preprocess(mean=(0.5,))).fingerprint() != before
    np.save(tmp_path / "a.npy", np.ones((3, 5), np.float32))
    assert open_samples(tmp_path, FLAT).fingerprint() != before


@pytest.mark.parametrize(("options", "message"), [
    ({"std": (0.0,)}, "std must be above 0"), ({"mean": (1.0, 2.0)}, "mean takes 1 or 3 values, got 2"),
    ({"crop_fraction": 0}, r"crop_fraction must be in \(0, 1\]")], ids=["std", "mean", "crop"])
def test_wrong_preprocessing(options: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Preprocess(**options)      # type: ignore[arg-type]
