"""The order checker: what compilers make is clean, and a wait that is missing where it matters is told."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from vitrify.runtimes.npusim.compiled import NpuStep, read_program
from vitrify.runtimes.npusim.ordering import hazards

sys.path.append(str(Path(__file__).parent))
from npusim_cases.compilers import ARENAS, COMPILERS, Compilers, Setting
from npusim_cases.pen import all_cases

LOOSENED = ("SOFTMAX", "chain residual", "FULLY_CONNECTED", "MEAN")
WAITS = ("DMA_WAIT", "KERNEL_WAIT")
NAMES = ("CONV_2D 3x3", "SOFTMAX ten rows", "LOGISTIC image", "chain large", "chain rows int16", "chain residual",
         "TILE depth", "BATCH_MATMUL plain", "UNIDIRECTIONAL_SEQUENCE_LSTM plain", "MEAN large", "RESIZE_BILINEAR x8",
         "CONCATENATION of a layer and a slice", "FULLY_CONNECTED deep", "TRANSPOSE_CONV 40 channels")


@pytest.fixture(scope="module")
def streams(tmp_path_factory: pytest.TempPathFactory) -> dict[str, NpuStep]:
    folder, compilers, found = tmp_path_factory.mktemp("order"), Compilers(), {}
    cases = {case.name: case for case in all_cases()}
    for name in NAMES:
        source = cases[name].save(folder / "case.tflite")
        for compiler in COMPILERS:
            for target in ("ethos-u65-256", "ethos-u55-128"):
                if compiler.version.startswith("5"):
                    made, _ = compilers.compile(source, folder / "out", Setting(compiler, target, arena=ARENAS[1]))
                    if made is not None:
                        found |= {f"{name}, {compiler.name}, {target}, {number}": step
                                  for number, step in enumerate(read_program(made).npu)}
    compilers.close()
    return found


def test_what_compilers_make_is_clean(streams: dict[str, NpuStep]) -> None:
    wrong = {name: str(found[0]) for name, step in streams.items() if (found := list(hazards(step)))}
    assert wrong == {}
    assert sum(command.spec.name in WAITS for step in streams.values() for command in step.commands) > 50


def test_each_wait_that_is_left_out_is_told_where_it_matters(streams: dict[str, NpuStep]) -> None:
    told, silent = 0, []
    for name, step in streams.items():
        for place, command in enumerate(step.commands):
            if command.spec.name in WAITS:
                without = step._replace(commands=step.commands[:place] + step.commands[place + 1:])
                found = list(hazards(without))
                told += bool(found)
                if not found:
                    silent.append(f"{name}: {command.spec.name} at byte {command.offset}")
    assert told > 40
    assert len(silent) <= told // 2, silent


def test_a_block_dependency_that_is_loosened_is_told_where_it_matters(streams: dict[str, NpuStep]) -> None:
    """Zero lets a kernel begin when the one before has ended; three within its last blocks."""
    told = 0
    for name, step in streams.items():
        for place, command in enumerate(step.commands):
            if name.startswith(LOOSENED) and command.spec.name == "BLOCKDEP" and command.value == 0:
                loose = step._replace(commands=(*step.commands[:place], command._replace(value=3),
                                                *step.commands[place + 1:]))
                told += bool(list(hazards(loose)))
    assert told >= 1
