"""Damaged streams: a typed error or a result, within bounds of time and memory, and nothing outside a region."""

from __future__ import annotations

import sys
import time
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from vitrify.core.errors import ModelError
from vitrify.runtimes.npusim.compiled import NpuStep, read_program
from vitrify.runtimes.npusim.machine.machine import Machine
from vitrify.runtimes.npusim.stream.payload import U65_256, Accelerator, read_payload, write_payload
from vitrify.runtimes.npusim.stream.words import decode, encode

sys.path.append(str(Path(__file__).parent))
from npusim_cases.compilers import FIRST, Compilers
from npusim_cases.pen import all_cases

SOURCES = ("CONV_2D 3x3", "DEPTHWISE_CONV_2D 5x5", "SOFTMAX ten rows", "ADD first larger", "LOGISTIC image int16",
           "AVERAGE_POOL_2D 3x3 stride 1", "TRANSPOSE_CONV 3x3 stride 2",
           "chain rows", "TILE depth", "LEAKY_RELU image")
SECONDS = 10.0
_GUARD = 4096
Arrays = np.ndarray[Any, np.dtype[Any]]


@pytest.fixture(scope="module")
def steps(tmp_path_factory: pytest.TempPathFactory) -> list[NpuStep]:
    folder, compilers = tmp_path_factory.mktemp("hostile"), Compilers()
    cases = {case.name: case for case in all_cases()}
    found = []
    for name in SOURCES:
        made, said = compilers.compile(cases[name].save(folder / "case.tflite"), folder / "out", FIRST)
        assert made is not None, said
        found += list(read_program(made).npu)
    compilers.close()
    return found


def words_of(step: NpuStep) -> Arrays:
    return encode([(command.spec.name, command.value) for command in step.commands])


def guarded(size: int, fill: int) -> tuple[Arrays, Arrays]:
    """A region of zeros between guards, and the whole."""
    whole = np.full(size + 2 * _GUARD, fill, np.uint8)
    whole[_GUARD:_GUARD + size] = 0
    return whole[_GUARD:_GUARD + size], whole


def outcome(accelerator: Accelerator, words: Arrays, step: NpuStep, constants: Arrays, fill: int) -> tuple[str, bytes]:
    """What went wrong, and the arena; guards around every region stay as they were."""
    arena, around = guarded(step.arena_bytes, fill)
    fast, beside = guarded(step.fast_bytes, fill)
    fixed, before = guarded(constants.size, fill)
    fixed[:] = constants
    said = ""
    try:
        Machine(accelerator, fixed, arena, fast).run(tuple(decode(words)))
    except ModelError as error:
        said = f"{error.findings[0].code} {error.findings[0].headline} {error.findings[0].where}"
    for whole in (around, beside, before):
        assert (whole[:_GUARD] == fill).all()
        assert (whole[-_GUARD:] == fill).all()
    assert (fixed == constants).all()
    return said, arena.tobytes()


def mutated(random: np.random.Generator, words: Arrays) -> Arrays:
    """Bits turned, a word of another kind, words left out or moved, an end cut off."""
    changed = words.copy()
    kind = random.integers(0, 6)
    places = random.integers(0, len(words), 2)
    if kind == 0:
        for at in places:
            changed[at] ^= np.uint32(1 << int(random.integers(0, 32)))
    elif kind == 1:      # a value of a command that stays one
        changed[places[0]] = words[places[0]] & 0xFFFF | np.uint32(int(random.integers(0, 1 << 16)) << 16)
    elif kind == 2:
        changed[places[0]] = np.uint32(random.integers(0, 1 << 32))
    elif kind == 3:
        changed = np.delete(changed, slice(places[0], places[0] + 1 + random.integers(0, 4)))
    elif kind == 4:
        changed[places] = changed[places[::-1]]
    else:
        changed = changed[:places[0]]
    return changed


def _try(steps: list[NpuStep], count: int, seed: int) -> dict[str, int]:
    random, codes = np.random.default_rng(seed), {}
    for number in range(count):
        step = steps[number % len(steps)]
        words = mutated(random, words_of(step))
        constants = step.constants.copy()
        if number % 5 == 0 and constants.size:
            constants[random.integers(0, constants.size, 3)] ^= np.uint8(1 << int(random.integers(0, 8)))
        started = time.process_time()
        said, arena = outcome(step.accelerator, words, step, constants, 0)
        assert time.process_time() - started < SECONDS, said
        if number % 3 == 0:
            assert (said, arena) == outcome(step.accelerator, words, step, constants, 0xFF)
        code = said.partition(" ")[0]
        codes[code] = codes.get(code, 0) + 1
    return codes


def test_mutated_streams_end_in_results_or_typed_errors(steps: list[NpuStep]) -> None:
    codes = _try(steps, 300, 0)
    assert {"npusim.out-of-bounds", "npusim.unknown-command", "npusim.field"} <= set(codes)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_ten_thousand_mutations(steps: list[NpuStep]) -> None:
    codes = _try(steps, 10_000, 1)
    assert sum(codes.values()) == 10_000
    assert {"npusim.out-of-bounds", "npusim.unknown-command", "npusim.field", "npusim.geometry",
            "npusim.register-not-set", "npusim.truncated"} <= set(codes)


HUGE = {"OFM_HEIGHT_M1": 0xFFFF, "OFM_WIDTH_M1": 0xFFFF, "OFM_DEPTH_M1": 0xFFFF, "IFM_DEPTH_M1": 0xFFFF,
        "KERNEL_HEIGHT_M1": 0xFFFF, "KERNEL_WIDTH_M1": 0xFFFF}


@pytest.mark.parametrize("names", [(name,) for name in HUGE] + [tuple(HUGE)], ids=lambda one: one[0] if len(one) == 1
                         else "all")
def test_huge_shapes_are_refused_before_they_are_laid_out(steps: list[NpuStep], names: tuple[str, ...]) -> None:
    refused = 0
    for step in steps:
        words = encode([(command.spec.name, HUGE[command.spec.name] if command.spec.name in names else command.value)
                        for command in step.commands])
        if (words == words_of(step)).all():
            continue
        tracemalloc.start()
        started = time.process_time()
        said, _ = outcome(step.accelerator, words, step, step.constants, 0)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        refused += bool(said)      # an elementwise command has no kernel and takes its depth from the result
        assert time.process_time() - started < SECONDS
        assert peak < 200e6
    assert refused >= 5


@pytest.mark.parametrize("name", ["IFM_BASE0", "OFM_BASE0", "WEIGHT_BASE", "SCALE_BASE", "IFM_STRIDE_Y",
                                  "OFM_STRIDE_X"])
@pytest.mark.parametrize("value", [1 << 39, (1 << 40) - 64, 1 << 20])
def test_regions_out_of_bounds_are_refused(steps: list[NpuStep], name: str, value: int) -> None:
    refused = 0
    for step in steps:
        if any(command.spec.name == name for command in step.commands):
            words = encode([(command.spec.name, value if command.spec.name == name else command.value)
                            for command in step.commands])
            said, _ = outcome(step.accelerator, words, step, step.constants, 0)
            refused += said.startswith("npusim.out-of-bounds")
    assert refused > 0


def test_a_stream_of_another_accelerator_is_told(steps: list[NpuStep]) -> None:
    """Weights lie in another order, or a second core lacks its part."""
    for other in (Accelerator(product=1, macs=512, shram_kb=96), Accelerator(product=0, macs=32, shram_kb=16)):
        said, _ = outcome(other, words_of(steps[0]), steps[0], steps[0].constants, 0)
        assert said.partition(" ")[0] in ("npusim.register-not-set", "npusim.weight-stream", "npusim.weight-order")


def test_truncated_and_mutated_payloads_end_in_typed_errors(steps: list[NpuStep]) -> None:
    payload = write_payload(words_of(steps[0]), U65_256)
    random, refused = np.random.default_rng(0), 0
    for number in range(400):
        data = bytearray(payload[:int(random.integers(0, len(payload)))] if number % 2 else payload)
        for at in random.integers(0, max(len(data), 1), 2):
            if at < len(data):
                data[at] ^= 1 << int(random.integers(0, 8))
        try:
            tuple(decode(read_payload(bytes(data)).words))
        except ModelError as error:
            refused += error.findings[0].code.startswith("npusim.")
    assert refused > 250
