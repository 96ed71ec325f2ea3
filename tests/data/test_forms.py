"""The forms that samples may have: recordings, lists, dict files, a folder for each input, layouts, Python's own."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from test_samples import FLAT, NHWC, RAMP, TWO, picture, taking

from vitrify.core.errors import DataError, UsageError
from vitrify.core.findings import Finding
from vitrify.data import Preprocess, Samples, open_samples
from vitrify.data.feeds import KEPT, Feed

SOUND = taking(("x", (1, 8), "float32"))
RATE = 16_000


def wav(path: Path, values: np.ndarray, bits: int = 16, kind: int = 1, channels: int = 1, rate: int = RATE,
        extensible: bool = False) -> Path:
    """Write a WAV file; ``values`` of -1..1, interleaved."""
    if kind == 3:
        data = values.astype(f"<f{bits // 8}").tobytes()
    elif bits == 8:
        data = np.clip(np.rint(values * 128) + 128, 0, 255).astype(np.uint8).tobytes()
    else:
        top = 1 << (bits - 1)
        whole = np.clip(np.rint(values.astype(np.float64) * top), -top, top - 1).astype("<i4")
        data = whole.view(np.uint8).reshape(-1, 4)[:, :bits // 8].tobytes()
    width = bits // 8 * channels
    head = struct.pack("<HHIIHH", 0xFFFE if extensible else kind, channels, rate, rate * width, width, bits)
    if extensible:
        head += struct.pack("<HHI", 22, bits, 0) + struct.pack("<H", kind) + bytes(14)
    other = b"LIST" + struct.pack("<I", 3) + b"abc\0"
    body = b"WAVE" + other + b"fmt " + struct.pack("<I", len(head)) + head
    body += b"data" + struct.pack("<I", len(data)) + data
    path.write_bytes(b"RIFF" + struct.pack("<I", len(body)) + body)
    return path


WAVE = np.sin(np.arange(24) * 0.7) * 0.9


@pytest.mark.parametrize(("bits", "kind", "extensible", "step"), [
    (8, 1, False, 1 / 128), (16, 1, False, 1 / 32768), (24, 1, False, 1e-6), (32, 1, False, 1e-6), (32, 3, False, 1e-6),
    (64, 3, False, 1e-6), (24, 1, True, 1e-6), (32, 3, True, 1e-6)], ids=str)
def test_recordings(bits: int, kind: int, extensible: bool, step: float, tmp_path: Path) -> None:
    wav(tmp_path / "a.wav", WAVE, bits, kind, extensible=extensible)
    samples = list(open_samples(tmp_path, SOUND))
    assert len(samples) == 3
    assert np.abs(np.concatenate([s["x"][0] for s in samples]) - WAVE).max() <= step


@pytest.mark.parametrize(("length", "hop", "starts"), [(24, 0, [0, 8, 16]), (24, 4, [0, 4, 8, 12, 16]),
                                                      (20, 8, [0, 8]), (5, 0, [0])], ids=str)
def test_frames(length: int, hop: int, starts: list[int], tmp_path: Path) -> None:
    wav(tmp_path / "a.wav", WAVE[:length], 32, 3)
    samples = list(open_samples(tmp_path, SOUND, Preprocess(hop=hop)))
    padded = np.concatenate([WAVE[:length], np.zeros(8)])
    assert [np.allclose(s["x"][0], padded[at:at + 8], atol=1e-6) for s, at in zip(samples, starts, strict=True)] \
        == [True] * len(starts)


def test_channels_are_mixed_and_integers_kept(tmp_path: Path) -> None:
    both = np.stack([WAVE, -WAVE / 2], axis=1).reshape(-1)
    wav(tmp_path / "a.wav", both, channels=2)
    (first, *_) = open_samples(tmp_path, SOUND)
    assert np.allclose(first["x"][0], WAVE[:8] / 4, atol=1e-4)
    wav(tmp_path / "a.wav", WAVE)
    (first, *_) = open_samples(tmp_path, taking(("x", (1, 8, 1), "int16")))
    assert np.array_equal(first["x"].reshape(-1), np.rint(WAVE[:8] * 32768).astype(np.int16))


@pytest.mark.parametrize(("given", "wanted"), [(8000, 16000), (44100, 16000), (48000, 16000), (16000, 22050)], ids=str)
def test_resampling_keeps_a_tone(given: int, wanted: int, tmp_path: Path) -> None:
    tone, long = 440.0, given
    wav(tmp_path / "a.wav", np.sin(2 * np.pi * tone * np.arange(long) / given) * 0.5, 32, 3, rate=given)
    (sample, *_) = open_samples(tmp_path, taking(("x", (1, wanted // 2), "float32")),
                                Preprocess(rate=wanted, resample=True, hop=wanted // 4))
    expected = np.sin(2 * np.pi * tone * np.arange(wanted // 2) / wanted) * 0.5
    inner = slice(64, -64)                               # the tone begins suddenly
    assert np.abs(sample["x"][0] - expected)[inner].max() < 2e-3


BAD_SOUNDS: dict[str, tuple[Callable[[Path], object], str, str]] = {
    "other rate": (lambda p: wav(p, WAVE, rate=8000), "data.rate", "8000 samples a second, the model takes 16000"),
    "text": (lambda p: p.write_text("no sound at all"), "data.unreadable", "no RIFF WAVE"),
    "empty": (lambda p: p.write_bytes(b""), "data.unreadable", "no RIFF WAVE"),
    "no data": (lambda p: wav(p, WAVE[:0]), "data.unreadable", "holds no sound"),
    "12 bits": (lambda p: (wav(p, WAVE), p.write_bytes(p.read_bytes().replace(b"\x10\0data", b"\x0c\0data"))),
                "data.unreadable", "12 bits is none of"),
}


@pytest.mark.parametrize("case", BAD_SOUNDS)
def test_recordings_that_do_not_do(case: str, tmp_path: Path) -> None:
    make, code, message = BAD_SOUNDS[case]
    make(tmp_path / "a.wav")
    with pytest.raises(DataError, match=message) as caught:
        open_samples(tmp_path, SOUND, Preprocess(rate=RATE))
    assert caught.value.findings[0].code == code
    assert caught.value.findings[0].where.endswith("a.wav")


def test_recordings_for_a_model_of_pictures(tmp_path: Path) -> None:
    wav(tmp_path / "a.wav", WAVE)
    with pytest.raises(DataError, match="recordings do not fit the model's inputs: 'x'"):
        open_samples(tmp_path, NHWC)


def arrays_in(folder: Path, count: int = 3) -> list[Path]:
    for number in range(count):
        np.save(folder / f"{number}.npy", np.full((1, 5), number, np.float32))
    return [folder / f"{number}.npy" for number in range(count)]


LISTS: dict[str, tuple[str, str]] = {
    "text": ("list.txt", "# chosen\n2.npy\n\n0.npy\n"), "json": ("list.json", '["2.npy", "0.npy"]'),
    "json by name": ("list.json", '{"x": ["2.npy", "0.npy"]}'),
    "json of numbers": ("list.json", '{"x": [[2, 2, 2, 2, 2], [0, 0, 0, 0, 0]]}'),
    "json of samples": ("list.json", '[{"x": [2, 2, 2, 2, 2]}, {"x": [0, 0, 0, 0, 0]}]')}


@pytest.mark.parametrize("case", LISTS)
def test_lists(case: str, tmp_path: Path) -> None:
    name, text = LISTS[case]
    arrays_in(tmp_path)
    (tmp_path / name).write_text(text)
    assert [float(s["x"][0, 0]) for s in open_samples(tmp_path / name, FLAT)] == [2, 0]


@pytest.mark.parametrize(("text", "message"), [
    ("0.npy\nnone.npy\n", "1 of the 2 files that list.txt names are not there: .*none.npy"),
    ("# nothing\n", "list.txt names no files")], ids=["missing", "empty"])
def test_lists_that_do_not_do(text: str, message: str, tmp_path: Path) -> None:
    arrays_in(tmp_path)
    (tmp_path / "list.txt").write_text(text)
    with pytest.raises(DataError, match=message):
        open_samples(tmp_path / "list.txt", FLAT)


@pytest.mark.parametrize(("text", "message"), [
    ('{"x": [[1, 2], [3]]}', "cannot read list.json"), ('{"x": ["a", 1]}', "other things than numbers"),
    ('{"y": [1, 2, 3, 4, 5]}', "has no array 'x'; it has 'y'"), ('{"x": [[1, 2, 3]]}', r"holds float64\[1,3\]"),
    ("{", "cannot read list.json")], ids=["ragged", "words", "name", "shape", "broken"])
def test_json_that_does_not_do(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "list.json").write_text(text)
    with pytest.raises(DataError, match=message):
        open_samples(tmp_path / "list.json", FLAT)


def safetensors(path: Path, arrays: dict[str, np.ndarray]) -> Path:
    header: dict[str, Any] = {"__metadata__": {"format": "np"}}
    data, names = b"", {"float32": "F32", "int64": "I64"}
    for name, array in arrays.items():
        header[name] = {"dtype": names[str(array.dtype)], "shape": list(array.shape),
                        "data_offsets": [len(data), len(data) + array.nbytes]}
        data += array.tobytes()
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)
    return path


A, B = np.random.default_rng(0).random((4, 5)).astype(np.float32), np.arange(4)


def by_folder(root: Path) -> Path:
    for name, array in (("a", A), ("b", B)):
        (root / name).mkdir()
        for number, value in enumerate(array):
            np.save(root / name / f"{number}.npy", value[None])
    return root


def by_json(root: Path) -> Path:
    by_folder(root)
    (root / "all.json").write_text(json.dumps({n: [f"{n}/{i}.npy" for i in range(4)] for n in "ab"}))
    return root / "all.json"


SEVERAL: dict[str, Callable[[Path], Path]] = {
    "safetensors": lambda p: safetensors(p / "s.safetensors", {"a": A, "b": B}), "folders": by_folder, "json": by_json}


@pytest.mark.parametrize("case", SEVERAL)
def test_several_inputs(case: str, tmp_path: Path) -> None:
    samples = open_samples(SEVERAL[case](tmp_path), TWO)
    found = list(samples)
    assert np.array_equal(np.concatenate([s["a"] for s in found]), A)
    assert np.array_equal(np.concatenate([s["b"] for s in found]), B)
    assert samples.fingerprint()
    assert samples.name(1)


def test_a_folder_without_one_of_the_inputs(tmp_path: Path) -> None:
    by_folder(tmp_path)
    for file in (tmp_path / "b").iterdir():
        file.unlink()
    (tmp_path / "b").rmdir()
    with pytest.raises(DataError, match="has nothing for 'b'") as caught:
        open_samples(tmp_path, TWO)
    assert caught.value.findings[0].help == "add the samples of it as b/"


def test_unequal_folders(tmp_path: Path) -> None:
    by_folder(tmp_path)
    (tmp_path / "b" / "3.npy").unlink()
    with pytest.raises(DataError, match="unequal numbers of samples: 'a' 4, 'b' 3"):
        open_samples(tmp_path, TWO)


@pytest.mark.parametrize(("content", "message"), [
    (b"", "cannot read"), (struct.pack("<Q", 1 << 60) + b"{", "its header has"),
    (struct.pack("<Q", 2) + b"[]", "cannot read"), (struct.pack("<Q", 70) + b'{"x":{"dtype":"F32","shape":[1,5],'
                                                    b'"data_offsets":[0,8]}}'.ljust(70), "not as its header says")],
                         ids=["empty", "huge", "list", "offsets"])
def test_broken_safetensors(content: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / "s.safetensors").write_bytes(content)
    with pytest.raises(DataError, match=message):
        open_samples(tmp_path / "s.safetensors", FLAT)


NCHW = taking(("x", (1, 3, 4, 6), "float32"))


def test_another_layout_is_told_and_can_be_declared(tmp_path: Path) -> None:
    values = np.random.default_rng(0).random((2, 4, 6, 3)).astype(np.float32)
    np.save(tmp_path / "a.npy", values)
    with pytest.raises(DataError, match=r"a\.npy holds float32") as caught:
        open_samples(tmp_path, NCHW)
    assert (caught.value.findings[0].code, caught.value.findings[0].help) == (
        "data.layout", "say so with --prepare layout=nhwc, or transpose the array")
    found = list(open_samples(tmp_path, NCHW, Preprocess(layout="nhwc")))
    assert np.array_equal(np.concatenate([s["x"] for s in found]), values.transpose(0, 3, 1, 2))


def test_arrays_of_pixels_are_pictures(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.stack([RAMP, RAMP]))
    how = Preprocess(mean=(0.5,), std=(0.25,), color="bgr")
    (one, _) = open_samples(tmp_path, NCHW, how)
    picture(tmp_path / "b.png")
    assert np.array_equal(one["x"], next(iter(open_samples(tmp_path / "b.png", NCHW, how)))["x"])


def test_a_scale_of_ones_own(tmp_path: Path) -> None:
    picture(tmp_path / "a.png")
    (sample,) = open_samples(tmp_path, NHWC, Preprocess(scale=1, mean=(127.5,), std=(127.5,)))
    assert np.allclose(sample["x"][0], (RAMP - 127.5) / 127.5)
    unit = Preprocess(scale=1, mean=(127.5,), std=(127.5,)).in_units
    assert np.allclose([*unit.mean, *unit.std], 0.5)


def test_files_that_cannot_be_read_are_left_out_among_good_ones(tmp_path: Path) -> None:
    for name in "abc":
        picture(tmp_path / f"{name}.png")
    (tmp_path / "b.png").write_bytes(b"none")
    left: list[Finding] = []
    assert [n for n, _ in open_samples(tmp_path, NHWC).numbered(skipped=left)] == [0, 2]
    assert [Path(f.where).name for f in left] == ["b.png"]
    (tmp_path / "c.png").write_bytes(b"none")
    with pytest.raises(DataError, match=r"cannot read b\.png[\s\S]*cannot read c\.png"):
        list(open_samples(tmp_path, NHWC).walk(skipped=[]))


def test_others_stand_in_for_pictures_that_cannot_be_read(tmp_path: Path) -> None:
    for number in range(10):
        picture(tmp_path / f"{number}.png")
    for number in (0, 5):
        (tmp_path / f"{number}.png").write_bytes(b"none")
    chosen = open_samples(tmp_path, NHWC).readable(2)
    assert len(list(chosen)) == 2
    assert len(open_samples(tmp_path, NHWC).readable(20)) == 10


def test_array_files_that_cannot_be_read_are_left_out(tmp_path: Path) -> None:
    arrays_in(tmp_path)
    (tmp_path / "1.npy").write_bytes(b"none")
    samples = open_samples(tmp_path, FLAT)
    assert [float(s["x"][0, 0]) for s in samples] == [0, 2]
    assert [f.code for f in samples.skipped] == ["data.unreadable"]


def test_a_flood_of_findings_is_cut(tmp_path: Path) -> None:
    for number in range(9):
        np.save(tmp_path / f"{number}.npy", np.zeros(3, np.float32))
    with pytest.raises(DataError, match="the same holds for 4 more files") as caught:
        open_samples(tmp_path, FLAT)
    assert len(caught.value.findings) == 6


def test_any_beginning_of_enough_is_spread(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.arange(16, dtype=np.float32).repeat(5).reshape(16, 5))
    samples = open_samples(tmp_path, FLAT, enough=True)
    assert sorted(int(s["x"][0, 0]) for s in samples) == list(range(16))
    assert [int(s["x"][0, 0]) for s in samples][:4] == [0, 8, 4, 12]


VALUES = np.arange(20, dtype=np.float32).reshape(4, 5)
FEEDS: dict[str, Callable[[], object]] = {
    "array": lambda: VALUES, "dict": lambda: {"x": VALUES}, "list": lambda: list(VALUES),
    "generator": lambda: (row for row in VALUES), "of dicts": lambda: ({"x": row} for row in VALUES),
    "of batches": lambda: (VALUES[at:at + 2] for at in (0, 2)), "with labels": lambda: ((row, 3) for row in VALUES),
    "numbers": lambda: [list(map(int, row)) for row in VALUES]}


@pytest.mark.parametrize("case", FEEDS)
def test_what_python_gives(case: str, tmp_path: Path) -> None:
    feed = Feed(FEEDS[case](), tmp_path).bind(FLAT)
    assert np.array_equal(np.concatenate([s["x"] for s in feed]), VALUES)
    assert isinstance(feed.kept(), Samples)
    assert np.array_equal(np.concatenate([s["x"] for s in feed.kept()]), VALUES)
    assert [f.code for f in feed.findings] == (["data.extra"] if case == "with labels" else [])


def test_few_of_many_are_kept(tmp_path: Path) -> None:
    feed = Feed((np.full(5, i, np.float32) for i in range(1000)), tmp_path).bind(FLAT)
    assert sum(1 for _ in feed) == 1000
    kept = [int(s["x"][0, 0]) for s in feed.kept()]
    assert KEPT // 2 < len(kept) <= KEPT
    assert np.ptp(np.diff(kept)) == 0


def test_pictures_from_python(tmp_path: Path) -> None:
    Image.fromarray(RAMP).save(tmp_path / "a.png")
    kept = tmp_path / "kept"
    kept.mkdir()
    feed = Feed([str(tmp_path / "a.png"), RAMP], kept, Preprocess(mean=(0.5,))).bind(NCHW)
    one, two = feed
    assert np.array_equal(one["x"], two["x"])
    assert feed.declared == Preprocess(mean=(0.5,))


def _three() -> Iterator[np.ndarray]:
    yield from (np.zeros(5, np.float32), np.zeros(5, np.float32), np.zeros(4, np.float32))


@pytest.mark.parametrize(("data", "message"), [
    (_three(), r"item 2 holds float32\[4\], input 'x' takes float32\[1,5\]"),
    ([object()], "is of type object, no array"),
    ([{"y": VALUES}], "no array for input 'x'; there are 'y'"), ([["a", "b"]], "is of type str, no array")],
                         ids=["shape", "object", "name", "words"])
def test_what_python_should_not_give(data: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=message):
        list(Feed(data, tmp_path).bind(FLAT))


def test_data_of_no_kind(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="data is of type int"):
        Feed(3, tmp_path)
