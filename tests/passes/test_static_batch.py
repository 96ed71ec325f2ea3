"""Shapes that a file computes at run time, with a free batch."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from graph_maker import Maker, kinds

from vitrify import ops
from vitrify.ir import DType, Model, Quantization, Tensor
from vitrify.passes import optimize
from vitrify.tflite import read, write


def dynamic_reshape() -> Model:
    """A Keras reshape: SHAPE, STRIDED_SLICE and PACK around a batch of -1."""
    maker = Maker()
    x = maker.input(1, 4, 4, 8)
    x.dtype, x.quantization, x.shape_signature = DType.INT8, Quantization.per_tensor(0.05), (-1, 4, 4, 8)
    shape = maker.op(ops.Shape(out_type=DType.INT32.value), x)
    batch = maker.op(ops.StridedSlice(shrink_axis_mask=1), shape, maker.ints(0), maker.ints(1), maker.ints(1))
    target = maker.op(ops.Pack(values_count=2), batch, maker.const(128, np.int32))

    out = Tensor("out", DType.INT8, (1, 128), quantization=x.quantization)
    out.shape_signature = (-1, 128)
    maker.graph.add(ops.Reshape(), [x, target], [out])
    return maker.model(out)


def run(path: Path, x: np.ndarray) -> np.ndarray:
    from ai_edge_litert.interpreter import Interpreter
    interpreter = Interpreter(str(path))
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], x)
    interpreter.invoke()
    result: np.ndarray = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
    return result


def test_free_batch_is_pinned_and_the_shape_folded(tmp_path: Path) -> None:
    write(dynamic_reshape(), tmp_path / "before.tflite")
    model = read(tmp_path / "before.tflite")
    assert kinds(model) == ["SHAPE", "STRIDED_SLICE", "PACK", "RESHAPE"]
    ledger = optimize(model)
    write(model, tmp_path / "after.tflite")
    assert kinds(read(tmp_path / "after.tflite")) == ["RESHAPE"]
    assert model.main.inputs[0].shape_signature == ()
    pinned = next(entry for entry in ledger.entries if entry.name == "pin-free-dimensions")
    assert pinned.note == "pinned 'x' [-1,4,4,8] -> [1,4,4,8]"
    x = np.random.default_rng(0).integers(-128, 128, (1, 4, 4, 8)).astype(np.int8)
    np.testing.assert_array_equal(run(tmp_path / "after.tflite", x), run(tmp_path / "before.tflite", x))


def replaced_row() -> Model:
    """What a loop over a list does in each turn: all rows before number i, another row, and all after it."""
    maker = Maker()
    x, row, i = maker.input(4, 1, 3), maker.input(1, 1, 3), maker.input(1)
    i.dtype = DType.INT32
    after = maker.op(ops.Add(), i, maker.ints(1))
    size = maker.op(ops.Concatenation(axis=0), i, maker.ints(-1, -1))
    begin = maker.op(ops.Concatenation(axis=0), after, maker.ints(0, 0))

    def rows(name: str, first: Tensor, extent: Tensor, shape: tuple[int, ...], signature: tuple[int, ...]) -> Tensor:
        out = Tensor(name, DType.FLOAT32, shape)
        out.shape_signature = signature
        maker.graph.add(ops.Slice(), [x, first, extent], [out])
        return out

    start = rows("start", maker.ints(0, 0, 0), size, (1, 1, 1), (-1, -1, -1))
    rest = rows("rest", begin, maker.ints(-1, -1, -1), (1, 1, 3), (-1, 1, 3))
    plain = Tensor("plain", DType.FLOAT32, (1, 1, 1))
    plain.shape_signature = (-1, -1, -1)
    maker.graph.add(ops.Neg(), [start], [plain])
    out = Tensor("out", DType.FLOAT32, (4, 1, 3))
    maker.graph.add(ops.Concatenation(axis=0), [plain, row, rest], [out])
    return maker.model(out)


def test_what_depends_on_values_stays_free(tmp_path: Path) -> None:
    model = replaced_row()
    optimize(model)
    write(model, tmp_path / "model.tflite")
    from ai_edge_litert.interpreter import Interpreter
    interpreter = Interpreter(str(tmp_path / "model.tflite"))
    interpreter.allocate_tensors()
    x, row = np.arange(12, dtype=np.float32).reshape(4, 1, 3), np.full((1, 1, 3), 99, np.float32)
    for i in range(4):
        for place, array in zip(interpreter.get_input_details(), (x, row, np.array([i], np.int32)), strict=True):
            interpreter.set_tensor(place["index"], array)
        interpreter.invoke()
        found = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
        np.testing.assert_array_equal(found, np.concatenate([-x[:i], row, x[i + 1:]]))
