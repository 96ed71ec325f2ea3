"""Sweeps: the grid, cliffs to the exact step, and what a sweep of a real model leaves behind."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec
import pytest
from sweep_models import bound, residuals, sound

from vitrify.core.errors import UnsupportedError, UsageError
from vitrify.ir import Node
from vitrify.pipeline import versions
from vitrify.pipeline.convert import convert_file
from vitrify.pipeline.measuring import correcting
from vitrify.pipeline.options import ConvertOptions, DataOptions
from vitrify.pipeline.sweeping.cells import Task, measure_here
from vitrify.pipeline.sweeping.cliffs import find_cliffs
from vitrify.pipeline.sweeping.grid import Setting, Size, read_arenas, read_precisions, read_sizes, settings_of
from vitrify.pipeline.sweeping.resizing import resizable
from vitrify.pipeline.sweeping.sweep import SweepOptions, sweep_file
from vitrify.results import CellRow, Coverage, SweepResult
from vitrify.targets import base
from vitrify.targets.rules.rule import Breach, Variant, rule

STOPPED = Path(__file__).with_name("stopped_sweep.py")


@pytest.mark.parametrize(("texts", "found"), [
    (["160:640:32"], [(n, n) for n in range(160, 641, 32)]),
    (["224,192", "224"], [(192, 192), (224, 224)]),
    (["480x640,320"], [(320, 320), (480, 640)]),
    (["100:160:40"], [(100, 100), (140, 140)]),
    (["64:64"], [(64, 64)]),
    ([], []),
], ids=["range", "list", "unequal", "ends before", "one", "none"])
def test_sizes(texts: list[str], found: list[tuple[int, int]]) -> None:
    assert list(map(tuple, read_sizes(texts))) == found


@pytest.mark.parametrize("text", ["", "640:160:32", "0", "-32", "160:640:0", "1x", "x2", "99999", "a:b:c", "224.5"])
def test_no_sizes(text: str) -> None:
    with pytest.raises(UsageError, match=r"sweep\.size"):
        read_sizes([text or "/"])


@pytest.mark.parametrize(("text", "found"), [("384K", 393216), ("1M", 1 << 20), ("8192", 8192), ("2MiB", 2 << 20)])
def test_arenas(text: str, found: int) -> None:
    assert read_arenas([text]) == (found,)


@pytest.mark.parametrize(("target", "modes", "count"), [
    ("imx93", ["all"], 3), ("ethos-u55-128", ["all"], 2), ("imx93", [], 1), ("ethos-u85-256", ["shared_sram"], 1)])
def test_modes(target: str, modes: list[str], count: int) -> None:
    found = settings_of(base.load(target), ("int8", "int16x8"), modes, ())
    assert len(found) == 2 * count


def test_the_usual_mode_is_the_targets() -> None:
    assert [settings_of(base.load(name), ("int8",), (), ())[0].memory_mode for name in ("imx93", "ethos-u55-128")] == [
        "Dedicated_Sram", "Shared_Sram"]


@pytest.mark.parametrize(("call", "code"), [
    (lambda: read_precisions(["int4"]), "sweep.precision"),
    (lambda: read_arenas(["many"]), "sweep.arena"),
    (lambda: settings_of(base.load("ethos-u55-128"), ("int8",), ["Dedicated_Sram"], ()), "sweep.memory-mode"),
    (lambda: SweepOptions(target="imx93", workers=0).grid(base.load("imx93"), ()), "sweep.workers"),
    (lambda: SweepOptions(target="imx93", sizes=("1:9000:1",)).grid(base.load("imx93"), ()), "sweep.cells"),
], ids=["precision", "arena", "mode", "workers", "cells"])
def test_refused_calls(call: Any, code: str) -> None:
    with pytest.raises(UsageError, match=code):
        call()


def _cell(size: int, **more: Any) -> CellRow:
    return CellRow(size=f"{size}x{size}", height=size, width=size, precision="int8", **more)


CLIFFS: dict[str, tuple[list[CellRow], list[tuple[str, str]]]] = {
    "even": ([_cell(s, latency_ms=s * s / 1e4, macs=s * s * 9) for s in (96, 128, 160)], []),
    "latency": ([_cell(s, latency_ms=s * s / 1e4 * (1 + (s > 128)), macs=s * s * 9) for s in (96, 128, 160, 192)],
                [("latency", "128x128")]),
    "latency without MACs": ([_cell(s, latency_ms=s * s / 1e4 * (1 + (s > 128))) for s in (96, 128, 160)],
                             [("latency", "128x128")]),
    "coverage": ([_cell(s, coverage=Coverage(nodes=1 - 0.2 * (s >= 128))) for s in (96, 128, 160)],
                 [("coverage", "96x96")]),
    "memory": ([_cell(s, far_bytes=1_000_000 * (1 + 3 * (s > 128))) for s in (96, 128, 160)], [("memory", "128x128")]),
    "on chip": ([_cell(s, near_bytes=s * 1000, near_limit_bytes=140_000) for s in (96, 128, 160)],
                [("on-chip", "128x128")]),
    "refused": ([_cell(96), _cell(128, problem="no"), _cell(160, problem="no")], [("refused", "96x96")]),
    "any order": ([_cell(s, latency_ms=s * s / 1e4 * (1 + (s > 128))) for s in (160, 96, 128)],
                  [("latency", "128x128")]),
    "two": ([_cell(s, latency_ms=s * s / 1e4 * 2 ** (s // 128)) for s in (96, 128, 160, 256)],
            [("latency", "96x96"), ("latency", "160x160")]),
}


@pytest.mark.parametrize("case", CLIFFS)
def test_cliffs(case: str) -> None:
    cells, expected = CLIFFS[case]
    assert [(cliff.kind, cliff.recommended) for cliff in find_cliffs(cells)] == expected


LIMIT = 150 * 1024


@pytest.fixture
def small_maps(monkeypatch: pytest.MonkeyPatch) -> None:
    """The i.MX 93 with a compiler of its own, which refuses feature maps beyond 150 KiB."""
    family = ModuleType("vitrify.targets.small_maps")
    family.__path__ = []
    family.variant = lambda core: Variant(core=core)  # type: ignore[attr-defined]
    family.settle = lambda graph, broken, core: {  # type: ignore[attr-defined]
        node: "cpu" if node in broken else "npu" for node in graph}

    def map_size(node: Node, variant: Variant) -> Iterator[Breach]:
        if node.output.nbytes > LIMIT:
            yield Breach(f"{node.output.nbytes} bytes, at most {LIMIT}")

    map_size.__module__ = f"{family.__name__}.rules"
    monkeypatch.setitem(sys.modules, family.__name__, family)
    rule("small.map-size", says="", why="", source="a double")(map_size)
    chip = msgspec.structs.replace(base.load("imx93"), family="small_maps", backend="none", name="double")
    monkeypatch.setattr(base, "load", lambda name: chip)
    monkeypatch.setattr(correcting, "load", lambda name: chip)


def _measured(file: Path, size: int, setting: Setting = Setting("int8")) -> CellRow:
    found: list[dict[str, Any]] = []
    sized = resizable(file, file.parent / "open")
    measure_here(Task(file=str(sized.file), source=str(file), target="double", size=Size(size, size),
                      conversion=sized.at(Size(size, size), ConvertOptions()), data=DataOptions(), settings=(setting,)),
                 found.append)
    return msgspec.convert(found[0], CellRow)


def test_a_refused_map_is_found_to_the_step(tmp_path: Path, small_maps: None) -> None:
    (tmp_path / "open").mkdir()
    file = residuals(tmp_path / "five.onnx")
    cells = [_measured(file, size) for size in range(128, 225, 32)]
    cliffs = find_cliffs(cells)
    padded = [64 * (size // 4 + 2) ** 2 for size in (160, 192)]       # the widest map, before the second stride
    assert padded[0] <= LIMIT < padded[1]
    assert [cell.cpu_nodes > 0 for cell in cells] == [cell.height > 160 for cell in cells]
    assert (cliffs[0].kind, cliffs[0].size_after, cliffs[0].recommended) == ("coverage", "192x192", "160x160")
    assert "small.map-size" in cliffs[0].headline


def test_a_model_without_a_picture_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError, match=r"sweep\.no-picture.*'signal' \[1,400\]"):
        resizable(sound(tmp_path / "sound.onnx"), tmp_path)


def test_a_tflite_file_keeps_its_size(tmp_path: Path) -> None:
    file = residuals(tmp_path / "five.onnx", 64)
    convert_file(file, tmp_path / "five.tflite", ConvertOptions())
    with pytest.raises(UsageError, match=r"sweep\.fixed-shapes.*cannot be made another"):
        sweep_file(tmp_path / "five.tflite", tmp_path / "out", SweepOptions(target="imx93", sizes=("96",)))


def test_a_graph_bound_to_its_size_gives_rows_with_the_reason(tmp_path: Path) -> None:
    result = sweep_file(bound(tmp_path / "bound.onnx"), tmp_path / "out",
                        SweepOptions(target="imx93", sizes=("64,96",), workers=1))
    assert [(bool(cell.problem), cell.size) for cell in result.cells] == [(False, "64x64"), (True, "96x96")]
    assert [(cliff.kind, cliff.recommended) for cliff in result.cliffs] == [("refused", "64x64")]
    assert "Reshape" in result.cells[1].problem
    assert any("open height and width" in finding.help for finding in result.findings)


def _sweep(arguments: list[str | Path], stop: int = 0) -> subprocess.CompletedProcess[str]:
    start = [str(STOPPED), str(stop)] if stop else ["-m", "vitrify"]
    return subprocess.run([sys.executable, *start, *map(str, arguments)], capture_output=True, text=True, timeout=300,
                          env=os.environ | {"OMP_NUM_THREADS": "1"})


def test_a_killed_sweep_goes_on_and_ends_the_same(tmp_path: Path) -> None:
    """One process, killed after a cell, and two processes give the same bytes; the JSON is what the schema says."""
    file, modes = residuals(tmp_path / "five.onnx"), "shared_sram,dedicated_sram"
    call: list[str | Path] = ["sweep", file, "--target", "imx93", "--size", "96:128:32", "--memory-mode", modes,
                              "--json"]
    before = versions.code()
    whole = _sweep([*call, "-o", tmp_path / "whole", "--workers", "2"])
    killed = _sweep([*call, "-o", tmp_path / "killed", "--workers", "1"], stop=1)
    assert killed.returncode == -9
    rest = _sweep([*call, "-o", tmp_path / "killed", "--workers", "1"])
    answers = [msgspec.json.decode(ran.stdout, type=SweepResult) for ran in (whole, rest)]
    is_same_code = versions.code() == before          # a change of it in the meantime begins anew, as it should
    assert [one.reused for one in answers] == [0, 1] or not is_same_code
    assert [cell.problem for cell in answers[0].cells] == [""] * 4
    assert (tmp_path / "whole/sweep.json").read_bytes() == (tmp_path / "killed/sweep.json").read_bytes()
    page = (tmp_path / "whole/sweep.html").read_text()
    assert page.count("<svg") == 5
    assert "128x128" in page
    options = SweepOptions(target="imx93", sizes=("96,128",), memory_modes=(modes,))
    assert sweep_file(file, tmp_path / "whole", options).reused == 4 or versions.code() != before


MOBILENET = Path(__file__).parents[2] / ".cache/zoo/mobilenet_v2.onnx"


@pytest.mark.slow
@pytest.mark.skipif(not MOBILENET.is_file(), reason="the model is not here")
def test_the_known_cliffs_of_mobilenet_are_marked(tmp_path: Path) -> None:
    """By Vela, the time jumps at 192 pixels and the need of memory outside the chip at 448."""
    result = sweep_file(MOBILENET, tmp_path, SweepOptions(target="imx93", sizes=("128:256:32,384:480:32",)))
    assert [(cliff.kind, cliff.size_after, cliff.recommended) for cliff in result.cliffs] == [
        ("latency", "192x192", "160x160"), ("memory", "448x448", "416x416")]
