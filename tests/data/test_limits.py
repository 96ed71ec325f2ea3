"""What inputs may hold: indices within their table, and numbers where a file has integers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import vitrify as vt
from vitrify import ops
from vitrify.data.binding import identity_interface
from vitrify.data.limits import Limit, index_limits
from vitrify.ir import DType, Graph, Model, Tensor

ROWS = 100
TABLE = np.random.default_rng(0).normal(size=(ROWS, 8)).astype(np.float32)
IDS = [{"ids": np.array([[1, 2, 3, 4, 99]])}, {"ids": np.array([[5, 62, 33, 14, 0]])}]


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tokens") / "tokens.onnx"
    nodes = [helper.make_node("Gather", ["table", "ids"], ["e"], name="embed"),
             helper.make_node("MatMul", ["e", "k"], ["y"])]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("ids", TensorProto.INT64, [1, 5])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 5, 3])],
                              [numpy_helper.from_array(TABLE, "table"), numpy_helper.from_array(TABLE[:8, :3], "k")])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)
    return path


FORMS: dict[str, Callable[[Path], vt.Model | Path]] = {
    "source": lambda path: path,
    "float": vt.load,
    "int8": lambda path: vt.quantize(vt.load(path), data=IDS),
}


@pytest.mark.parametrize("form", FORMS)
def test_a_token_beyond_the_vocabulary_is_refused(form: str, source: Path) -> None:
    model = FORMS[form](source)
    for token in (ROWS, -ROWS - 1, 1 << 30):
        with pytest.raises(vt.VitrifyError, match=rf"'ids' holds {token}.*: it is an index of -100\.\.99") as told:
            vt.run(model, {"ids": np.array([[1, 2, 3, 4, token]])})
        assert [f.code for f in told.value.findings] == ["data.index"]
    last, first = (vt.run(model, {"ids": np.array([[1, 2, 3, 4, token]])})["y"] for token in (ROWS - 1, -ROWS))
    assert np.isfinite(last).all()
    assert np.isfinite(first).all()


def test_so_is_one_among_the_samples(source: Path) -> None:
    with pytest.raises(vt.VitrifyError, match=r"input 'ids' holds 100 at \[0, 4\]") as told:
        vt.quantize(source, data=[*IDS, {"ids": np.array([[1, 2, 3, 4, ROWS]])}])
    assert "sample 2" in told.value.findings[0].where


def looked_up(*through: ops.Operator) -> Model:
    """A table that is looked into at an input, which goes through other operators first."""
    graph = Graph()
    ids = Tensor("ids", DType.INT32, (4,))
    graph.inputs.append(ids)
    value = ids
    for number, op in enumerate(through):
        seven = Tensor(f"m{number}", DType.INT32, (), data=np.array(7, np.int32))
        more = [seven] if isinstance(op, ops.FloorMod) else []
        value = graph.add(op, [value, *more], name=f"n{number}").output
    table = Tensor("table", DType.FLOAT32, TABLE.shape, data=TABLE)
    graph.set_outputs([graph.add(ops.Gather(axis=0), [table, value], name="embed").output])
    return Model([graph])


@pytest.mark.parametrize(("model", "limit"), [
    (looked_up(), Limit(0, ROWS - 1, "embed")),
    (looked_up(ops.Squeeze()), Limit(0, ROWS - 1, "embed")),
    (looked_up(ops.FloorMod()), None),           # the model's own: every number is an index then
    (looked_up(ops.Neg()), None),
], ids=["direct", "moved", "wrapped_by_the_model", "computed"])
def test_limits_come_from_the_table(model: Model, limit: Limit | None) -> None:
    assert index_limits(model, identity_interface(model)).get("ids") == limit


def doubled() -> Model:
    graph = Graph()
    x = Tensor("x", DType.FLOAT32, (1, 4))
    graph.inputs.append(x)
    two = Tensor("two", DType.FLOAT32, (), data=np.array(2, np.float32))
    graph.set_outputs([graph.add(ops.Mul(), [x, two], name="double").output])
    return Model([graph])


def test_nan_is_told_by_input() -> None:
    model = doubled()
    int8 = vt.quantize(model, data=np.random.default_rng(1).normal(size=(4, 4)).astype(np.float32))
    given = {"x": np.array([[1, np.nan, 0, np.nan]], np.float32)}
    said = r"input 'x' holds NaN: 2 of 4 values, the first at \[0, 1\]"
    with pytest.raises(vt.VitrifyError, match=said) as told:
        vt.run(int8, given)
    assert told.value.findings[0].code == "data.not_finite"
    assert "int8, which has no NaN" in told.value.findings[0].why
    with pytest.warns(RuntimeWarning, match=said):
        assert np.isnan(next(iter(vt.run(model, given).values()))).sum() == 2
    masked = {"x": np.array([[1, -np.inf, 0, np.inf]], np.float32)}      # as masks have them: the ends of the range
    assert np.isfinite(next(iter(vt.run(int8, masked).values()))).all()
