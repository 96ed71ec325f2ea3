"""Compiled files as a runtime: opened like any model, run, traced and profiled by the source's names."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import vitrify
from vitrify import ops, runtimes, tflite
from vitrify.backends.vela import compile_model
from vitrify.backends.vela.compiled import read_compiled
from vitrify.core.errors import UnsupportedError, UsageError
from vitrify.runtimes.litert import LiteRT
from vitrify.runtimes.npusim import NpuSim, oracle, read_program
from vitrify.runtimes.npusim.disassembly import disassemble
from vitrify.runtimes.npusim.stream.payload import Accelerator, read_payload, write_payload
from vitrify.tflite.streams import STREAMS, add_metadata, decode_map

sys.path.append(str(Path(__file__).parents[1] / "backends"))
from vela_networks import Network


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A model with a cascade, a join and an operator on the CPU, and what Vela makes of it."""
    folder = tmp_path_factory.mktemp("npusim")
    net = Network(1, 48, 40, 8)
    first = net.conv(net.depthwise(net.conv(net.x, 32, 3)), 24, 3)
    joined = net.add(ops.Concatenation(axis=3), [first, net.conv(first, 16)], (1, 48, 40, 40))
    source = net.save(folder / "m.tflite", net.conv(net.gather(net.conv(joined, 16, 3, 2)), 8, 3))
    compile_model(source, "imx93", folder / "m_vela.tflite")
    return source, folder / "m_vela.tflite"


def values(source: Path) -> list[np.ndarray]:
    random = np.random.default_rng(3)
    return [random.integers(-128, 128, t.shape).astype(np.int8) for t in tflite.read(source).main.inputs]


def test_every_tensor_that_is_made_whole_equals_the_reference(files: tuple[Path, Path], tmp_path: Path) -> None:
    model = tflite.read(files[0])
    oracle(model)
    tflite.write(model, tmp_path / "oracle.tflite")
    with NpuSim(files[1]) as mine, LiteRT(tmp_path / "oracle.tflite") as reference:
        found = mine.trace_raw(values(files[0]))
        wanted = reference.trace_raw(values(files[0]), list(found))
    assert len(found) >= 6
    assert [name for name in found if not np.array_equal(found[name].reshape(wanted[name].shape), wanted[name])] == []


def test_it_is_opened_like_any_model(files: tuple[Path, Path]) -> None:
    source, compiled = files
    with runtimes.open(source) as one, runtimes.open(compiled) as other:
        sample = {b.name: np.random.default_rng(1).normal(size=b.shape).astype(np.float32)
                  for b in one.interface.inputs}
        assert isinstance(other, NpuSim)
        assert [b.name for b in other.interface.outputs] == [b.name for b in one.interface.outputs]
        for name, value in one.run(sample).items():
            assert np.array_equal(other.run(sample)[name], value)
    answer = vitrify.run(compiled, sample)
    assert all(np.isfinite(np.asarray(value)).all() for value in dict(answer).values())


def test_a_profile_counts_what_moves(files: tuple[Path, Path]) -> None:
    with NpuSim(files[1]) as runtime:
        found = runtime.profile(runs=1)
        arena = max(step.arena_bytes for step in runtime.program.npu)
    assert found.memory_bytes["arena"] == arena
    convolutions = [row for row in found.nodes if row.operator in ("CONV_2D", "DEPTHWISE_CONV_2D")]
    assert sum(row.macs for row in found.nodes) == sum(row.macs for row in found.commands) > 0
    assert all(row.macs and row.estimated_cycles for row in convolutions)
    assert {row.node for row in found.nodes} >= {"conv_2d3"} or len(found.nodes) >= 5
    assert sum(found.read_bytes.values()) > sum(found.written_bytes.values()) > 0


def test_the_file_says_itself_what_its_commands_compute(files: tuple[Path, Path], tmp_path: Path) -> None:
    program = read_program(files[1])
    said = decode_map(program.metadata[STREAMS], "m")
    assert said.target == "imx93"
    assert said.maker.startswith("Vela 5.2")
    assert len(said.streams) == len(program.npu) == len(read_compiled(files[1]).npu)
    for stream, step in zip(said.streams, program.npu, strict=True):
        acting = {command.offset for command in step.commands if command.spec.acts}
        assert stream
        assert {offset for offset, _ in stream} <= acting
    again = tmp_path / "again.tflite"
    again.write_bytes(files[1].read_bytes())
    add_metadata(again, {"more": b"1"})
    other = read_program(again)
    assert [step.commands for step in other.npu] == [step.commands for step in program.npu]
    assert other.metadata["more"] == b"1"
    assert other.metadata[STREAMS] == program.metadata[STREAMS]


def test_names_that_are_not_there(files: tuple[Path, Path]) -> None:
    with NpuSim(files[1]) as runtime, pytest.raises(UsageError, match="no tensor 'nothing'"):
        runtime.trace({b.name: np.zeros(b.shape, np.float32) for b in runtime.interface.inputs}, ["nothing"])
    with pytest.raises(UsageError, match="runs with the shapes"):
        runtimes.open(files[1], shapes={"x": 2})


def test_streams_of_an_ethos_u85_are_refused() -> None:
    words = np.zeros(4, np.uint32)
    for data in (write_payload(words, Accelerator(product=2, macs=256, shram_kb=48)), b"COP2" + bytes(12)):
        with pytest.raises(UnsupportedError, match="Ethos-U85"):
            read_payload(data)


def test_commands_are_told_in_the_names_of_the_source(files: tuple[Path, Path]) -> None:
    streams = list(disassemble(files[1]))
    blocks = [block for stream in streams for block in stream.blocks]
    assert not any(stream.fault for stream in streams)
    named = [block for block in blocks if block.node]
    kernels = [block for block in blocks if block.operation not in ("DMA_START", "STOP")]
    assert len(named) >= len(kernels) * 0.9
    first = next(block for block in kernels if block.operation == "CONV")
    assert set(first.details) >= {"ifm", "ofm", "kernel", "weights", "scales", "scaling", "activation", "block"}
    assert first.details["ifm"].startswith("int8[")


def test_a_damaged_stream_is_told_up_to_its_fault(files: tuple[Path, Path], tmp_path: Path) -> None:
    whole = next(iter(disassemble(files[1])))
    program = read_program(files[1])
    data = files[1].read_bytes()
    offset = [block.offset for block in whole.blocks if block.operation == "CONV"][1]
    words = next(iter([program.npu[0]])).commands
    marker = np.array([command.spec.code | command.value << 16 for command in words[:1]], "<u4").tobytes()
    start = data.index(b"COP1")
    begin = data.index(marker, start)
    broken = tmp_path / "broken.tflite"
    broken.write_bytes(data[:begin + offset] + b"\xff\xff\xff\xff" + data[begin + offset + 4:])
    found = next(iter(disassemble(broken)))
    assert found.fault.startswith("npusim.unknown-command")
    assert 0 < len(found.blocks) < len(whole.blocks)
