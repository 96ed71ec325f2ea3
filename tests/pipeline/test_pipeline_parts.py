"""The small parts: hashes, time left, words, destinations, staged files, the run's folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from vitrify.core.errors import ModelError, UsageError
from vitrify.core.hashing import fingerprint, hash_file, hash_value
from vitrify.core.progress import TimeLeft, duration
from vitrify.core.words import bytes_text, counted, decibels, percent
from vitrify.pipeline.building.run import Memory, open_run
from vitrify.pipeline.building.sources import hash_model
from vitrify.pipeline.files import destination, refuse_overlap, staged
from vitrify.pipeline.options import DataOptions
from vitrify.results import RunRecord

WORDS = [
    (duration(0.04), "0.0 s"), (duration(59.6), "1 min 00 s"), (duration(185), "3 min 05 s"),
    (duration(3720), "1 h 02 min"), (bytes_text(0), "0 B"), (bytes_text(999), "999 B"),
    (bytes_text(1500), "1.5 kB"), (bytes_text(4_745_517), "4.75 MB"),
    (percent(None), "an unknown share"), (percent(1.0), "100%"), (percent(0.99999), "99.9%"), (percent(0.5), "50.0%"),
    (decibels(None), ""), (decibels(None, True), "equal"), (decibels(21.66), "21.7 dB"),
    (counted(1, "sample"), "1 sample"), (counted(0, "sample"), "0 samples"),
]


@pytest.mark.parametrize(("given", "wanted"), WORDS, ids=[wanted or "nothing" for _, wanted in WORDS])
def test_words(given: str, wanted: str) -> None:
    assert given == wanted


def test_time_left_follows_the_last_steps() -> None:
    now = [0.0]
    left = TimeLeft(clock=lambda: now[0])
    assert left.seconds(0, 100) is None
    for step in range(1, 11):
        now[0] += 2.0
        remaining = left.seconds(step, 100)
    assert remaining == pytest.approx(180.0)
    for step in range(11, 60):
        now[0] += 0.5
        remaining = left.seconds(step, 100)
    assert remaining == pytest.approx(41 * 0.5)
    assert left.seconds(60, 0) is None


def test_hashes(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    one.write_bytes(b"x" * 3_000_000)
    two.write_bytes(b"x" * 3_000_000)
    assert hash_file(one) == hash_file(two)
    assert hash_value({"a": 1, "b": 2}) == hash_value({"b": 2, "a": 1}) != hash_value({"a": 2, "b": 1})
    assert fingerprint([one]) != fingerprint([two])


def test_weights_beside_a_model_count(tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx")
    import numpy as np

    weights = onnx.numpy_helper.from_array(np.ones((64, 64), np.float32), "w")
    graph = onnx.helper.make_graph([], "g", [], [], [weights])
    path = tmp_path / "model.onnx"
    onnx.save(onnx.helper.make_model(graph), str(path), save_as_external_data=True, location="w.data", size_threshold=0)
    before = hash_model(path)
    assert before == hash_model(path)
    (tmp_path / "w.data").write_bytes(b"\0" * 100)
    assert hash_model(path) != before


def test_destination(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    source = tmp_path / "net.onnx"
    source.write_bytes(b"x")
    assert destination(source, None, "_int8.tflite") == Path("net_int8.tflite")
    assert destination(source, Path("new/folder/out.tflite"), "") == Path("new/folder/out.tflite")
    (tmp_path / "link.onnx").symlink_to(source)
    with pytest.raises(UsageError, match="the model itself, which is never changed"):
        refuse_overlap({"-o": Path("link.onnx")}, {"MODEL": source})
    refuse_overlap({"-o": Path("net_int8.tflite"), "--save-recipe": None}, {"MODEL": source}, tmp_path)
    (tmp_path / "run").mkdir()
    for name in ("run.json", "statistics.npz"):
        (tmp_path / "run" / name).write_bytes(b"")
    refuse_overlap({"statistics": tmp_path / "run" / "statistics.npz"}, {"MODEL": source}, tmp_path)


def test_a_staged_file_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    target = tmp_path / "out.tflite"
    target.write_bytes(b"old")

    def half() -> None:
        with staged(target) as aside:
            aside.write_bytes(b"half")
            raise ModelError.of("x", f"{aside} is bad", where=str(aside))

    with pytest.raises(ModelError, match=r"out\.tflite is bad") as caught:
        half()
    assert caught.value.findings[0].where == str(target)
    assert [(p.name, p.read_bytes()) for p in tmp_path.iterdir()] == [("out.tflite", b"old")]
    with staged(target) as aside:
        aside.write_bytes(b"new")
    assert target.read_bytes() == b"new"


def test_a_run_remembers_what_is_still_so(tmp_path: Path) -> None:
    with open_run(tmp_path) as run:
        assert run.recall("make it") is None
        (tmp_path / "kept").write_bytes(b"abc")
        run.keep("kept", "kept")
        run.remember("make it", Memory(key="k", record=RunRecord(artifacts=run.record.artifacts)))
        run.save()
    (tmp_path / ".kept.123.part").write_bytes(b"left by a kill")
    with open_run(tmp_path) as run:
        memory = run.recall("make it")
        assert memory is not None
        assert run.holds(memory.record.artifacts["kept"])
        (tmp_path / "kept").write_bytes(b"abd")
        assert not run.holds(memory.record.artifacts["kept"])
        (tmp_path / ".stages" / "make-it.json").write_text('{"key": "k", "record": {')
        assert run.recall("make it") is None
    assert not list(tmp_path.glob("*.part"))


UNITS: dict[str, tuple[tuple[float, ...], tuple[float, ...], str]] = {
    "imagenet": ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225), ""),
    "pixels_as_they_are": ((0.0,), (1 / 255,), ""),
    "in_pixels": ((123.675, 116.28, 103.53), (58.395, 57.12, 57.375),
                  "--mean 0.485,0.456,0.406 --std 0.229,0.224,0.225"),
    "mean_in_pixels": ((123.675,), (1.0,), "--mean 0.485 --std 0.00392157"),
    "mean_in_pixels_only": ((123.675,), (0.229,), "--mean 0.485 --std 0.229"),
    "std_in_pixels": ((0.0,), (255.0,), "--mean 0 --std 1"),
}


@pytest.mark.parametrize("case", UNITS)
def test_mean_and_std_in_pixels_are_told(case: str) -> None:
    mean, std, help = UNITS[case]
    found = DataOptions(path=Path("photos"), mean=mean, std=std).unit_findings()
    assert [f.help for f in found] == ([f"divide by 255: {help}"] if help else [])
