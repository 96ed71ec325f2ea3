"""Element types that TFLite has no kernels for: held in wider ones, rounded as `ml_dtypes` rounds; empty tensors."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from onnx_makers import Case, Feed, by_litert, imported, model, saved

from vitrify.core.errors import ModelError, UnsupportedError, UsageError
from vitrify.importers import load
from vitrify.importers.onnx.elements import SMALL_FLOATS
from vitrify.importers.onnx.reading.tensors import NAMES

Array = np.ndarray[Any, np.dtype[Any]]
NUMBERS = {name: number for number, name in NAMES.items()}


def values(name: str) -> Array:
    """Every value of a small float as float32, what lies half-way between neighbours, a little off, and far beyond."""
    dtype = np.dtype(getattr(ml_dtypes, name))
    bits = 4 if "4" in name.split("_")[0] else 8
    own = np.arange(2**bits, dtype=np.uint8).view(dtype).astype(np.float32)
    own = np.unique(own[np.isfinite(own)])
    ties = (own[1:] + own[:-1]) / 2
    near = np.concatenate([np.nextafter(ties, np.float32(s)) for s in (-np.inf, np.inf)])
    return np.concatenate([own, ties, near, np.float32([1e-30, -1e-30, 1e30, -1e30])])


def cast_model(values: Array, to: int, **attributes: Any) -> onnx.ModelProto:
    """x cast to the type and back to float, so that nothing is rounded outside of the file."""
    nodes = [
        helper.make_node("Cast", ["x"], ["s"], "small", to=to, **attributes),
        helper.make_node("Cast", ["s"], ["y"], "back", to=TensorProto.FLOAT),
    ]
    return model(nodes, {"x": values}, {}, ["y"], 25)


@pytest.mark.parametrize("name", SMALL_FLOATS)
def test_small_floats_round_to_nearest_even(name: str, tmp_path: Path) -> None:
    x = values(name)
    most = SMALL_FLOATS[name].most
    with np.errstate(over="ignore"):
        wanted = np.clip(x, -most, most).astype(getattr(ml_dtypes, name)).astype(np.float32)
    got = by_litert(imported(cast_model(x, NUMBERS[name]), tmp_path), {"x": x})["y"]
    np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("name", [name for name in SMALL_FLOATS if name.startswith("float8")])
def test_small_floats_overflow_when_not_saturated(name: str, tmp_path: Path) -> None:
    x = np.float32([SMALL_FLOATS[name].most, 1e6, -1e6, np.inf, -np.inf, np.nan, 1.0])
    with np.errstate(over="ignore", invalid="ignore"):
        wanted = x.astype(getattr(ml_dtypes, name)).astype(np.float32)
    got = by_litert(imported(cast_model(x, NUMBERS[name], saturate=0), tmp_path), {"x": x})["y"]
    np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("mode", ["up", "down", "nearest"])
def test_powers_of_two(mode: str, tmp_path: Path) -> None:
    x = np.float32([1, 1.25, 1.5, 1.75, 2, 3, 1e-20, 1e20])
    exponent = {"up": np.ceil, "down": np.floor, "nearest": None}[mode]
    if exponent is not None:
        wanted = np.exp2(exponent(np.log2(x.astype(np.float64))))
    else:
        below = np.exp2(np.floor(np.log2(x.astype(np.float64))))
        wanted = np.where(x - below >= 2 * below - x, 2 * below, below)
    got = by_litert(imported(cast_model(x, NUMBERS["float8_e8m0fnu"], round_mode=mode), tmp_path), {"x": x})["y"]
    np.testing.assert_array_equal(got, wanted.astype(np.float32))


@pytest.mark.parametrize("name", ["int4", "uint4", "int2", "uint2"])
def test_small_integers_wrap(name: str, tmp_path: Path) -> None:
    x = np.float32(np.arange(-20, 21))
    wanted = np.arange(-20, 21).astype(getattr(ml_dtypes, name)).astype(np.float32)
    np.testing.assert_array_equal(by_litert(imported(cast_model(x, NUMBERS[name]), tmp_path), {"x": x})["y"], wanted)


@pytest.mark.parametrize("kind", ["Add", "Sub", "Mul", "Div", "Max", "Less", "Mod"])
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16"])
def test_small_integers_compute_and_wrap(kind: str, dtype: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    a, b = rng.integers(low, high, 40).astype(dtype), np.maximum(rng.integers(1, high, 40), 1).astype(dtype)
    numpy_kind = {"Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Max": np.maximum, "Less": np.less,
                  "Mod": np.mod, "Div": lambda x, y: np.trunc(x / y).astype(x.dtype)}[kind]  # fmt: skip
    case = Case(kind, [Feed(a), Feed(b)], opset=18)
    got = by_litert(imported(case.proto(), tmp_path), case.feeds())["y0"]
    np.testing.assert_array_equal(got, numpy_kind(a, b))


def test_float32_gets_no_casts(tmp_path: Path) -> None:
    case = Case("Add", [(2, 3), (2, 3)])
    assert [n.op.kind for n in imported(case.proto(), tmp_path).main] == ["ADD"]


def test_a_type_without_exact_kernel_is_refused(tmp_path: Path) -> None:
    case = Case("Elu", [Feed(np.arange(4, dtype=np.int32))])
    with pytest.raises((UnsupportedError, ModelError), match=r"Elu 'the node': .*int32"):
        imported(case.proto(), tmp_path)


BITS: dict[str, tuple[Array, int]] = {
    "to int": (np.float32([1.0, -2.5]), TensorProto.INT32),
    "to float": (np.int32([0x3F800000, -1]), TensorProto.FLOAT),
    "to signed": (np.uint8([200, 3]), TensorProto.INT8),
    "to unsigned": (np.int16([-1, 7]), TensorProto.UINT16),
}


@pytest.mark.parametrize("case", BITS)
def test_bits(case: str, tmp_path: Path) -> None:
    x, to = BITS[case]
    proto = model([helper.make_node("BitCast", ["x"], ["y"], to=to)], {"x": x}, {}, ["y"], 26)
    got = by_litert(imported(proto, tmp_path), {"x": x})["y"]
    np.testing.assert_array_equal(got.view(np.uint8), x.view(np.uint8))


def empty(outputs: list[str], *nodes: onnx.NodeProto, axes: Array | None = None) -> onnx.ModelProto:
    """A model whose input ``e`` has no elements."""
    feeds = {"x": np.ones((2, 3), np.float32), "e": np.zeros((2, 0), np.float32)}
    return model(nodes, feeds, {} if axes is None else {"axes": axes}, outputs, 18)


def test_an_empty_input_is_known(tmp_path: Path) -> None:
    nodes = [helper.make_node("ReduceMax", ["e", "axes"], ["m"]), helper.make_node("Max", ["x", "m"], ["y"])]
    path = saved(empty(["y"], *nodes, axes=np.array([1])), tmp_path)
    imported = load(path, {"e": [2, 0]})
    assert imported.interface is not None
    assert [(b.name, b.shape, b.position) for b in imported.interface.inputs] == [("x", (2, 3), 0), ("e", (2, 0), -1)]


def test_a_size_of_zero_must_stand_in_the_file(tmp_path: Path) -> None:
    path = saved(Case("Relu", [(2, 3)]).proto(), tmp_path)
    with pytest.raises(UsageError, match=r"has a dimension below 1: \[0, 3\]"):
        load(path, {"x0": [0, 3]})


def test_an_empty_output_is_refused(tmp_path: Path) -> None:
    path = saved(empty(["y"], helper.make_node("Relu", ["e"], ["y"])), tmp_path)
    with pytest.raises(UnsupportedError, match=r"output 'y' has no elements: its shape is \[2, 0\]"):
        load(path, {"e": [2, 0]})


def test_an_input_nobody_reads_may_be_open(tmp_path: Path) -> None:
    proto = Case("Relu", [(2, 3)]).proto()
    proto.graph.input.append(helper.make_tensor_value_info("unused", TensorProto.FLOAT, ["n", "m"]))
    assert load(saved(proto, tmp_path)).main.outputs[0].shape == (2, 3)


def test_what_is_known_is_computed_by_reference(tmp_path: Path) -> None:
    nodes = [helper.make_node("Unique", ["c"], ["u"]), helper.make_node("Add", ["x", "u"], ["y"])]
    constant = np.float32([3, 1, 3, 2, 1])
    proto = model(nodes, {"x": np.ones((2, 3), np.float32)}, {"c": constant}, ["y"], 18)
    got = by_litert(imported(proto, tmp_path), {"x": np.ones((2, 3), np.float32)})["y"]
    np.testing.assert_array_equal(got, [[2, 3, 4], [2, 3, 4]])


def test_source_types_outside_of_numpy(tmp_path: Path) -> None:
    """A run of its own: nothing has loaded `ml_dtypes` before, and the output has the source's type."""
    proto = cast_model(np.float32([1.0, 2.5]), NUMBERS["bfloat16"])
    proto.graph.output[0].name = "s"
    proto.graph.output[0].type.tensor_type.elem_type = TensorProto.BFLOAT16
    path = saved(proto, tmp_path)
    code = f"""
import subprocess
import sys
from pathlib import Path
import sys, vitrify
from vitrify.importers import load
from vitrify.data.binding import to_source_outputs
import numpy as np
model = load(Path({str(path)!r}))
assert "ml_dtypes" not in sys.modules
found = to_source_outputs(model.interface, [np.float32([1.0, 2.5])], [{{"dtype": np.float32}}])
print(found["s"].dtype.name, found["s"].tolist())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "bfloat16 [1.0, 2.5]\n"


def codes(name: str) -> tuple[Array, onnx.TensorProto]:
    """Every code of the type, as `ml_dtypes` reads it, and as a constant."""
    bits = 4 if name.startswith("float4") else 8
    array = np.arange(2**bits, dtype=np.uint8).view(getattr(ml_dtypes, name))
    data = array.view(np.uint8)
    packed = (data[::2] | data[1::2] << 4).astype(np.uint8) if bits == 4 else data
    return array.astype(np.float32), helper.make_tensor("c", NUMBERS[name], array.shape, packed.tobytes(), raw=True)


@pytest.mark.parametrize("name", [*SMALL_FLOATS, "float8_e8m0fnu"])
@pytest.mark.parametrize("form", ["initializer", "constant"])
def test_small_floats_are_read(name: str, form: str, tmp_path: Path) -> None:
    wanted, constant = codes(name)
    cast = helper.make_node("Cast", ["c"], ["f"], to=TensorProto.FLOAT)
    where = helper.make_node("Where", ["x", "f", "z"], ["y"])
    x = np.ones(wanted.shape, np.bool_)
    nodes = [helper.make_node("Constant", [], ["c"], value=constant)] if form == "constant" else []
    proto = model([*nodes, cast, where], {"x": x}, {"z": np.zeros(1, np.float32)}, ["y"], 25)
    if form == "initializer":
        proto.graph.initializer.append(constant)
    np.testing.assert_array_equal(by_litert(imported(proto, tmp_path), {"x": x})["y"], wanted)


def test_a_cast_like_a_constant_of_few_bits(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("CastLike", ["x", "c"], ["s"]),
        helper.make_node("Cast", ["s"], ["y"], to=TensorProto.FLOAT),
    ]
    x = np.float32([1.05, 300, 1e6])
    proto = model(nodes, {"x": x}, {}, ["y"], 25)
    proto.graph.initializer.append(codes("float8_e4m3fn")[1])
    np.testing.assert_array_equal(by_litert(imported(proto, tmp_path), {"x": x})["y"], np.float32([1, 288, 448]))
