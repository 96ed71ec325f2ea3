"""`verify` of compiled files: bit for bit, the first operator that differs, its reproduction, the way round."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import msgspec
import numpy as np
import pytest

from vitrify import ops, tflite
from vitrify.backends.base import CompilerOptions
from vitrify.core.errors import UsageError
from vitrify.core.files import write_atomically
from vitrify.core.findings import Severity
from vitrify.pipeline.building.build import build_run
from vitrify.pipeline.compiling.compile import compile_file
from vitrify.pipeline.inspecting.streams import inspect_commands
from vitrify.pipeline.options import BuildOptions, ConvertOptions, DataOptions
from vitrify.pipeline.verifying.verify import verify_files
from vitrify.results import RunRecord
from vitrify.runtimes.npusim import NpuSim

sys.path.append(str(Path(__file__).parents[1] / "backends"))
from vela_networks import Network

NOTHING = DataOptions(), ConvertOptions()


@pytest.fixture(scope="module")
def summed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A SUM over two axes, which Vela 5.2 reduces over one, with operators before and behind it."""
    net = Network(1, 12, 10, 20)
    total = net.add(ops.Sum(keep_dims=True), [net.conv(net.x, 20, 3), net.ints(1, 2)], (1, 1, 1, 20), scale=4.0,
                    zero_point=0)
    kept = net.add(ops.Relu(), [total], (1, 1, 1, 20), scale=4.0, zero_point=0)
    both = net.add(ops.Concatenation(axis=3), [total, kept], (1, 1, 1, 40), scale=4.0, zero_point=0)
    return net.save(tmp_path_factory.mktemp("sum") / "sum.tflite", both)


@pytest.fixture(scope="module")
def damaged(summed: Path) -> Path:
    """The model as Vela compiles it when nobody goes round its fault."""
    output = summed.with_name("as_it_is.tflite")
    compile_file(summed, "imx93", output, compiler=CompilerOptions(as_it_is=True))
    return output


def test_a_compiled_file_is_its_source_bit_for_bit(summed: Path) -> None:
    output = summed.with_name("good.tflite")
    told = compile_file(summed, "imx93", output).findings
    assert [f.headline for f in told if f.code == "compile.avoided"]
    found = verify_files([summed, output], *NOTHING, on="npusim")
    row = found.stages[0]
    assert found.ok
    assert all(one.equal for one in [*row.outputs, *row.tensors])
    assert len(row.tensors) >= 2
    assert "SUM as a MEAN" in found.findings[0].why


def test_the_first_wrong_operator_is_named_and_cut_out(summed: Path, damaged: Path) -> None:
    found = verify_files([summed, damaged], *NOTHING)
    finding = next(f for f in found.findings if f.severity is Severity.ERROR)
    assert not found.ok
    assert finding.code == "compile.damaged"
    assert "SUM 'sum4'" in finding.headline
    assert finding.where == "node 'sum4'"
    assert found.first_divergence is not None
    assert "SUM 'sum4'" in found.first_divergence
    assert "one-axis-sums" in finding.help
    guilty = damaged.with_name("as_it_is_guilty.tflite")
    assert [node.op.kind for node in tflite.read(guilty).main] == ["SUM"]
    repeat = finding.why.split("to repeat: ")[1].split("; ")[0]
    assert shlex.split(repeat)[:3] == ["vitrify", "compile", guilty.name]


def test_what_is_left_to_the_cpu_is_right(summed: Path) -> None:
    output = summed.with_name("ignored.tflite")
    compile_file(summed, "imx93", output, compiler=CompilerOptions(as_it_is=True, options={"ignore-ops": "sum"}))
    with NpuSim(output) as runtime:
        steps = [step for step in runtime.program.steps if step not in runtime.program.npu]
    assert [step.operators for step in steps] == [("SUM",)]      # type: ignore[union-attr]
    with pytest.raises(UsageError, match="no operator 'NOTHING'"):
        compile_file(summed, "imx93", output, compiler=CompilerOptions(options={"ignore-ops": "nothing"}))


def test_a_build_goes_round_the_fault_with_a_right_result(summed: Path, tmp_path: Path) -> None:
    build_run(BuildOptions(model=summed, target="imx93"), tmp_path / "run",
              lambda record, folder, path: write_atomically(path, record.name.encode()))
    text = next(tmp_path.joinpath("run").rglob("run.json")).read_bytes()
    record = msgspec.json.decode(text, type=RunRecord)
    assert record.verify_compiled is not None
    assert record.verify_compiled.ok
    assert all(row.equal for row in record.verify_compiled.outputs)
    compiled = next(tmp_path.joinpath("run").rglob("*_vela.tflite"))
    x = np.random.default_rng(5).integers(-128, 128, (1, 12, 10, 20)).astype(np.int8)
    with NpuSim(compiled) as runtime:
        out = runtime.trace_raw([x])
    graph = tflite.read(summed).main
    made = {t.name: t for n in graph for t in n.outputs}
    before = next(n for n in graph if n.op.kind == "SUM").input(0)
    real = before.quantization.dequantize(out[before.name]).sum((1, 2), keepdims=True)     # type: ignore[union-attr]
    name = next(n for n in graph if n.op.kind == "SUM").output.name
    wanted = np.clip(np.rint(real / 4.0), -128, 127)
    assert np.abs(out[name].astype(int).reshape(wanted.shape) - wanted).max() <= 1
    assert name in made


def test_what_runs_nowhere_is_refused(summed: Path, damaged: Path) -> None:
    with pytest.raises(UsageError, match="no form is compiled"):
        verify_files([summed, summed], *NOTHING, on="npusim")
    with pytest.raises(UsageError, match="nothing here is called 'board'"):
        verify_files([summed, damaged], *NOTHING, on="board")


def test_inspect_tells_the_commands(summed: Path, damaged: Path) -> None:
    found = inspect_commands(damaged)
    assert found.ok
    assert found.streams[0].accelerator == "ethos-u65-256"
    assert any(block.node == "sum4" and block.operator == "SUM" for block in found.streams[0].blocks)
    assert not any(block.changed for block in found.streams[0].blocks)
    assert any(block.changed for block in inspect_commands(damaged, registers=True).streams[0].blocks)
    with pytest.raises(UsageError, match="no command stream"):
        inspect_commands(summed)
