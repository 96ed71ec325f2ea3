"""The versions that are written: LiteRT's reference kernels know them, so that nothing else computes in their place."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import integer_runs as runs
import ops_cases_elementwise
import ops_cases_recurrent
import ops_cases_shape
import ops_cases_window
import pytest
from integer_draw import DRAWS
from ops_harness import model_of

from vitrify.ir import DType, Graph, Model, Tensor
from vitrify.ops import Abs, Ceil, DepthToSpace, DepthwiseConv2D, StridedSlice, Tile
from vitrify.runtimes.litert import LiteRT
from vitrify.tflite import to_bytes, write

WITHOUT = {"CEIL", "ELU", "ROUND"}
"""What LiteRT 2.3 has no reference kernels for."""
GUARDED = {"strided_offset"}
"""What a runtime that does not know the version would compute wrongly without a word."""
DRAWN = 3

CHILD = """
import pickle, sys
from ai_edge_litert.interpreter import Interpreter, OpResolverType
said = {}
for name, data in pickle.load(sys.stdin.buffer).items():
    try:
        Interpreter(model_content=data, experimental_op_resolver_type=OpResolverType.BUILTIN_REF)
    except ValueError as error:
        said[name] = str(error)
sys.stdout.buffer.write(pickle.dumps(said))
"""


def models() -> Iterator[tuple[str, Model]]:
    """Every operator in every form that the tables of the tests have, and that random draws give."""
    for table in (ops_cases_elementwise, ops_cases_recurrent, ops_cases_shape, ops_cases_window):
        for name, case in table.CASES.items():
            if case.op.name not in WITHOUT and name not in GUARDED:
                yield name, model_of(case)
    for label in DRAWS:
        for number, (model, _) in enumerate(runs.cases(label, DRAWN) if label.split()[0] not in WITHOUT else ()):
            yield f"{label} {number}", model


def test_reference_kernels_take_every_version() -> None:
    given = {name: bytes(to_bytes(model)) for name, model in models()}
    assert len(given) > 400
    done = subprocess.run([sys.executable, "-c", CHILD], input=pickle.dumps(given), stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, check=True, timeout=600)
    assert pickle.loads(done.stdout) == {}


def test_a_runtime_says_which_kernels_run_a_file(tmp_path: Path) -> None:
    for op, kernels in ((Abs(), "reference"), (Ceil(), "optimized")):
        graph = Graph()
        graph.inputs.append(tensor(DType.FLOAT32, 1, 4))
        graph.set_outputs(graph.add(op, graph.inputs).outputs)
        write(Model([graph]), tmp_path / "model.tflite")
        with LiteRT(tmp_path / "model.tflite", kernels="reference") as runtime:
            assert runtime.name.endswith(f", {kernels} kernels")


def tensor(dtype: DType, *shape: int) -> Tensor:
    return Tensor("x", dtype, shape)


LOWERED = {
    "ABS int32": (Abs(), [tensor(DType.INT32, 2, 3)], 1),
    "TILE int8": (Tile(), [tensor(DType.INT8, 2, 3), tensor(DType.INT32, 2)], 1),
    "DEPTH_TO_SPACE int8": (DepthToSpace(block_size=2), [tensor(DType.INT8, 1, 2, 2, 4)], 1),
    "DEPTHWISE_CONV_2D int4": (DepthwiseConv2D(), [tensor(DType.INT8, 1, 4, 4, 2), tensor(DType.INT4, 1, 3, 3, 2)], 3),
    "STRIDED_SLICE new axis": (StridedSlice(new_axis_mask=1), [tensor(DType.FLOAT32, 2, 3)], 1),
    "STRIDED_SLICE int8, 5 axes": (StridedSlice(), [tensor(DType.INT8, 1, 2, 3, 4, 5)], 4),
    "STRIDED_SLICE offset": (StridedSlice(offset=True), [tensor(DType.FLOAT32, 2, 3)], 8),
}


@pytest.mark.parametrize("name", LOWERED)
def test_no_more_than_a_node_needs(name: str) -> None:
    op, inputs, version = LOWERED[name]
    graph = Graph()
    node = graph.add(op, inputs, [Tensor("y", inputs[0].dtype, inputs[0].shape)])
    assert op.version(node) == version
