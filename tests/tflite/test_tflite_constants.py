"""Constants: their bytes, their place in the file and in memory."""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tflite_small as small
import tflite_trees as trees
from ai_edge_litert import schema_py_generated as tfl

from vitrify import ops
from vitrify.core.errors import ModelError
from vitrify.ir import DType, Quantization, Tensor
from vitrify.tflite import read_bytes, to_bytes, write, writing

CONSTANTS: dict[str, tuple[Tensor, bytes | None]] = {
    "float32": (small.constant("c", np.array([[1.5, -2]], np.float32)), np.array([1.5, -2], "<f4").tobytes()),
    "scalar": (small.constant("c", np.array(7, np.int32)), b"\x07\0\0\0"),
    "bool": (small.constant("c", np.array([True, False])), b"\x01\0"),
    "int64": (small.constant("c", np.array([-1], np.int64)), b"\xff" * 8),
    "float16": (small.constant("c", np.array([1], np.float16)), b"\x00\x3c"),
    "transposed": (small.constant("c", np.arange(6, dtype=np.int8).reshape(2, 3).T), bytes([0, 3, 1, 4, 2, 5])),
    "strided": (small.constant("c", np.arange(6, dtype=np.int8)[::2]), bytes([0, 2, 4])),
    "int4": (Tensor("c", DType.INT4, (3,), data=np.array([0x21, 0x03], np.uint8)), b"\x21\x03"),
    "string": (Tensor("c", DType.STRING, (1,), data=np.frombuffer(b"\x01\0\0\0abc", np.uint8)), b"\x01\0\0\0abc"),
    "no_elements": (small.constant("c", np.empty((0, 4), np.float32)), b""),
}


@pytest.mark.parametrize("name", CONSTANTS)
def test_constant(name: str) -> None:
    tensor, expected = CONSTANTS[name]
    content = to_bytes(small.reading(tensor))
    tree = trees.unpack(content)
    found = next(t for t in tree.subgraphs[0].tensors if t.name == b"c")
    assert bytes(tree.buffers[found.buffer].data) == expected
    again = read_bytes(content).main.nodes[0].input(1)
    assert again.type == tensor.type
    assert np.array_equal(again.data, tensor.data)
    assert not again.data.flags.writeable


MISFITS = {
    "dtype": (Tensor("c", DType.INT8, (2,), data=np.zeros(2, np.float32)),
              "data of type float32 in a tensor of type int8"),
    "size": (Tensor("c", DType.INT8, (2,), data=np.zeros(3, np.int8)), r"data of 3 bytes, int8\[2\] needs 2"),
    "packed": (Tensor("c", DType.INT4, (5,), data=np.zeros(2, np.uint8)), r"data of 2 bytes, int4\[5\] needs 3"),
}


@pytest.mark.parametrize("name", MISFITS)
def test_data_that_does_not_fit_is_not_written(name: str, tmp_path: Path) -> None:
    tensor, text = MISFITS[name]
    with pytest.raises(ModelError, match=text):
        write(small.reading(tensor), tmp_path / "model.tflite")
    assert list(tmp_path.iterdir()) == []


def test_data_in_memory_once_is_written_once() -> None:
    data = np.arange(1000, dtype=np.float32)
    model = small.reading(small.constant("c", data))
    graph = model.main
    graph.add(ops.Custom(custom_code="Reads"), [small.constant("d", data.reshape(10, 100))],
              [Tensor("z", DType.FLOAT32, (1,))])
    content = to_bytes(model)
    assert content.count(data.tobytes()) == 1
    c, d = (n.inputs[-1] for n in read_bytes(content).main)
    assert np.shares_memory(c.data, d.data)
    assert to_bytes(read_bytes(content)) == content


def test_contents_of_buffers_are_aligned() -> None:
    model = small.float_ends(small.conv_model(DType.INT8))
    model.metadata["odd"] = b"12345"
    content = to_bytes(model)
    root = tfl.Model.GetRootAs(content)
    start = np.frombuffer(content, np.uint8).__array_interface__["data"][0]
    places = [root.Buffers(i).DataAsNumpy().__array_interface__["data"][0] - start
              for i in range(1, root.BuffersLength())]
    assert len(places) >= 3
    assert [p % writing.BUFFER_ALIGNMENT for p in places] == [0] * len(places)


LARGE = """
import resource, sys
import vitrify.tflite as tflite
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
model = tflite.read(sys.argv[1])
tflite.contents(model)
read = resource.getrusage(resource.RUSAGE_SELF)
print(read.ru_maxrss - before, read.ru_utime + read.ru_stime)
"""


@pytest.mark.slow
def test_large_file_is_mapped_not_loaded(tmp_path: Path) -> None:
    path = tmp_path / "large.tflite"
    weights = np.zeros((300, 1 << 20), np.int8)
    write(small.reading(small.constant("c", weights, Quantization.per_tensor(1.0))), path)
    assert path.stat().st_size > 300 << 20
    run = subprocess.run([sys.executable, "-c", LARGE, str(path)], capture_output=True, text=True, check=True)
    grown_kb, seconds = map(float, run.stdout.split())
    assert grown_kb < 20_000, "the weights were loaded"
    assert seconds < 5


@pytest.mark.slow
def test_large_model_is_written_without_a_copy(tmp_path: Path) -> None:
    weights = np.ones((300, 1 << 20), np.int8)
    model = small.reading(small.constant("c", weights))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    write(model, tmp_path / "large.tflite")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 20_000
