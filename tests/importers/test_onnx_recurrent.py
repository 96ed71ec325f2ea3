"""LSTM, GRU and RNN in all their forms, against ONNX Runtime."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.numpy_helper
import onnx.parser
import pytest
from onnx import helper
from onnx_makers import by_litert, by_runtime, model, saved, sqnr_db

from vitrify.core.errors import ModelError, UnsupportedError
from vitrify.importers import load
from vitrify.passes import optimize

Array = np.ndarray[Any, np.dtype[Any]]
T, B, N, H = 6, 3, 5, 4
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
STATES = {"LSTM": 2, "GRU": 1, "RNN": 1}


def recurrent(kind: str, *, bias: bool = True, lengths: Array | str | None = None, state: str = "", holes: bool = False,
              outputs: str = "", steps: int = T, run_time: bool = False, **attributes: Any
              ) -> tuple[onnx.ModelProto, dict[str, Array]]:
    """A model of one layer, and its feeds. ``state``: "" none, "zeros" constants, "input" graph inputs."""
    rng = np.random.default_rng(5)
    sides = 2 if attributes.get("direction") == "bidirectional" else 1
    rows, first = GATES[kind] * H, attributes.get("layout", 0)

    def noise(*shape: int) -> Array:
        return rng.uniform(-0.8, 0.8, shape).astype(np.float32)

    shape = (B, sides, H) if first else (sides, B, H)
    given = {"x": 2 * (noise(B, steps, N) if first else noise(steps, B, N))}
    constants = {"w": noise(sides, rows, N), "r": noise(sides, rows, H)}
    names = ["x", "w", "r", "", "", "", "", ""]
    if bias:
        constants["b"], names[3] = noise(sides, 2 * rows), "b"
    if isinstance(lengths, str):
        given["lengths"], names[4] = np.array([2, steps, 0], np.int32), "lengths"
    elif lengths is not None:
        constants["lengths"], names[4] = lengths, "lengths"
    for i in range(STATES[kind] if state else 0):
        names[5 + i] = f"s{i}"
        if state == "zeros":
            constants[f"s{i}"] = np.zeros(shape, np.float32)
        else:
            given[f"s{i}"] = noise(*shape)
    if holes:
        constants["p"], names[7] = noise(sides, 3 * H), "p"
    if run_time:
        given.update(constants)
        constants = {}
    wanted = (outputs or ("y h c" if kind == "LSTM" else "y h")).split()
    made = ["y" if "y" in wanted else "", "h" if "h" in wanted else "", "c" if "c" in wanted else ""]
    made = made[: max(i for i, n in enumerate(made) if n) + 1]
    while not names[-1]:
        names.pop()
    node = helper.make_node(kind, names, made, "the layer", hidden_size=H, **attributes)
    return model([node], given, constants, wanted, 17), given


def named(*names: str, alpha: list[float] | None = None, beta: list[float] | None = None) -> dict[str, Any]:
    found: dict[str, Any] = {"activations": list(names)}
    if alpha:
        found["activation_alpha"] = alpha
    if beta:
        found["activation_beta"] = beta
    return found


CASES: dict[str, dict[str, Any]] = {
    **{f"{k} {d}": {"kind": k, "direction": d} for k in GATES for d in ("forward", "reverse", "bidirectional")},
    **{f"{k} {d} outputs only": {"kind": k, "direction": d, "outputs": "y h"} for k in ("LSTM", "RNN")
       for d in ("forward", "reverse", "bidirectional")},
    **{f"{k} last only": {"kind": k, "outputs": "h"} for k in GATES},
    **{f"{k} without bias": {"kind": k, "bias": False, "outputs": "y"} for k in GATES},
    **{f"{k} state": {"kind": k, "state": "input", "direction": "bidirectional"} for k in GATES},
    **{f"{k} zeros": {"kind": k, "state": "zeros", "outputs": "y"} for k in GATES},
    **{f"{k} one step": {"kind": k, "steps": 1, "state": "input"} for k in GATES},
    **{f"{k} one step from zeros": {"kind": k, "steps": 1, "outputs": "y h"} for k in GATES},
    **{f"{k} weights at run time": {"kind": k, "run_time": True, "direction": "bidirectional"} for k in GATES},
    **{f"{k} lengths {d}": {"kind": k, "lengths": np.array([2, 6, 4], np.int32), "direction": d, "state": "input"}
       for k in GATES for d in ("forward", "reverse", "bidirectional")},
    **{f"{k} all short": {"kind": k, "lengths": np.full(B, 4, np.int32), "direction": "reverse"} for k in GATES},
    **{f"{k} lengths at run time": {"kind": k, "lengths": "input", "state": "input"} for k in GATES},
    **{f"{k} whole lengths": {"kind": k, "lengths": np.full(B, T, np.int32), "outputs": "y"} for k in GATES},
    **{f"{k} clip": {"kind": k, "clip": 0.25, "direction": "bidirectional"} for k in GATES},
    "LSTM peepholes": {"kind": "LSTM", "holes": True, "direction": "bidirectional"},
    "LSTM peepholes fused": {"kind": "LSTM", "holes": True, "direction": "reverse", "outputs": "y"},
    "LSTM peepholes and state": {"kind": "LSTM", "holes": True, "state": "input"},
    "LSTM coupled": {"kind": "LSTM", "input_forget": 1},
    "LSTM relu": {"kind": "LSTM", **named("Sigmoid", "Relu", "Relu"), "outputs": "y"},
    "LSTM mixed": {"kind": "LSTM", **named("HardSigmoid", "Softsign", "Softplus", alpha=[0.3], beta=[0.4])},
    "GRU after": {"kind": "GRU", "linear_before_reset": 1, "direction": "bidirectional"},
    "GRU after with state": {"kind": "GRU", "linear_before_reset": 1, "state": "input"},
    "GRU after at run time": {"kind": "GRU", "linear_before_reset": 1, "run_time": True},
    "GRU mixed": {"kind": "GRU", "direction": "bidirectional",
                  **named("Sigmoid", "LeakyRelu", "HardSigmoid", "Elu", alpha=[0.2, 0.3, 0.7], beta=[0.5])},
    "RNN relu": {"kind": "RNN", **named("Relu")},
    "RNN affine": {"kind": "RNN", **named("Affine", alpha=[0.5], beta=[0.1])},
    "RNN scaled tanh": {"kind": "RNN", **named("ScaledTanh", alpha=[0.5], beta=[1.5])},
    "RNN thresholded": {"kind": "RNN", **named("ThresholdedRelu", alpha=[0.5])},
}


@pytest.mark.parametrize("name", CASES)
def test_layer_equals_onnx_runtime(name: str, tmp_path: Path) -> None:
    proto, given = recurrent(**CASES[name])
    path = saved(proto, tmp_path)
    wanted = by_runtime(path, given)
    imported = load(path)
    optimize(imported, input_layout="nchw", output_layout="nchw")
    got = by_litert(imported, given)
    for output, values in wanted.items():
        assert got[output].shape == values.shape
        assert sqnr_db(got[output], values) > 100, output


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
@pytest.mark.parametrize("direction", ["forward", "bidirectional"])
def test_batch_first(kind: str, direction: str, tmp_path: Path) -> None:
    """ONNX Runtime does not take layout 1, so the same layer with time first says what is right."""
    proto, given = recurrent(kind, state="input", direction=direction)
    swapped, _ = recurrent(kind, state="input", direction=direction, layout=1)
    for initializer in list(swapped.graph.initializer):
        swapped.graph.initializer.remove(initializer)
    swapped.graph.initializer.extend(proto.graph.initializer)
    wanted = by_runtime(saved(proto, tmp_path), given)
    imported = load(saved(swapped, tmp_path))
    optimize(imported, input_layout="nchw", output_layout="nchw")
    got = by_litert(imported, {n: np.ascontiguousarray(a.swapaxes(0, 1)) for n, a in given.items()})
    assert sqnr_db(got["y"].transpose(1, 2, 0, 3), wanted["y"]) > 100
    for name in wanted.keys() - {"y"}:
        assert sqnr_db(got[name].swapaxes(0, 1), wanted[name]) > 100


FORMS: dict[str, tuple[dict[str, Any], dict[str, int]]] = {
    "LSTM": ({"kind": "LSTM", "outputs": "y"}, {"UNIDIRECTIONAL_SEQUENCE_LSTM": 1, "RESHAPE": 1}),
    "LSTM from zeros": ({"kind": "LSTM", "outputs": "y", "state": "zeros"},
                        {"UNIDIRECTIONAL_SEQUENCE_LSTM": 1, "RESHAPE": 1}),
    "RNN": ({"kind": "RNN", "outputs": "y"}, {"UNIDIRECTIONAL_SEQUENCE_RNN": 1, "RESHAPE": 1}),
    "LSTM reverse, last": ({"kind": "LSTM", "outputs": "h", "direction": "reverse"},
                           {"UNIDIRECTIONAL_SEQUENCE_LSTM": 1, "REVERSE_V2": 1, "SLICE": 1}),
}


@pytest.mark.parametrize("name", FORMS)
def test_form(name: str, tmp_path: Path) -> None:
    options, wanted = FORMS[name]
    imported = load(saved(recurrent(**options)[0], tmp_path))
    optimize(imported, input_layout="nchw", output_layout="nchw")
    assert Counter(n.op.kind for n in imported.main) == wanted


STEP = {"LSTM": 11, "GRU": 11, "RNN": 3}


@pytest.mark.parametrize("kind", GATES)
def test_operators_of_a_step(kind: str, tmp_path: Path) -> None:
    def count(steps: int) -> int:
        options: dict[str, Any] = {"linear_before_reset": 1} if kind == "GRU" else {}
        imported = load(saved(recurrent(kind, steps=steps, state="input", **options)[0], tmp_path))
        optimize(imported, input_layout="nchw", output_layout="nchw")
        return len(imported.main)

    assert count(9) - count(8) == STEP[kind]


REFUSED: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "activation": ({"kind": "RNN", **named("Sine")}, UnsupportedError, "the activation 'Sine'"),
    "too few": ({"kind": "LSTM", **named("Tanh")}, ModelError, "1 activations for 3 gates"),
    "direction": ({"kind": "RNN", "direction": "sideways"}, ModelError, "direction 'sideways' is not one of"),
    "lengths": ({"kind": "RNN", "lengths": np.array([1, 9, 2], np.int32)}, ModelError, "sequences with 6 steps"),
    "count of lengths": ({"kind": "RNN", "lengths": np.array([1, 2], np.int32)}, ModelError, r"\[2\] sequence lengths"),
    "steps": ({"kind": "GRU", "steps": 1025}, UnsupportedError, "1025 time steps; at most 1,024"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusal(name: str, tmp_path: Path) -> None:
    options, error, message = REFUSED[name]
    with pytest.raises(error, match=message):
        load(saved(recurrent(**options)[0], tmp_path))


ZEROS = {
    "ConstantOfShape": """s = Shape <start = 1, end = 2> (x) d = Concat <axis = 0> (one, s, size)
        z = ConstantOfShape (d)""",
    "Expand": """s = Shape <start = 1, end = 2> (x) d = Concat <axis = 0> (one, s, size) z = Expand (nought, d)""",
}


@pytest.mark.parametrize("name", ZEROS)
def test_zeros_of_a_computed_shape_are_no_state(name: str, tmp_path: Path) -> None:
    proto, _ = recurrent("LSTM", state="zeros", outputs="y")
    extra = onnx.parser.parse_graph(
        f"g (float[6,3,5] x) => (float[1,3,4] z) <int64[1] one = {{1}}, int64[1] size = {{4}}, float nought = {{0}}> "
        f"{{ {ZEROS[name]} }}")
    layer = proto.graph.node.pop()
    layer.input[5] = layer.input[6] = "z"
    proto.graph.node.extend([*extra.node, layer])
    proto.graph.initializer.extend(extra.initializer)
    loaded = load(saved(proto, tmp_path))
    optimize(loaded, input_layout="nchw", output_layout="nchw")
    assert Counter(n.op.kind for n in loaded.main) == {"UNIDIRECTIONAL_SEQUENCE_LSTM": 1, "RESHAPE": 1}


@pytest.mark.parametrize(("batch", "reshapes"), [(1, 2), (3, 0)], ids=["batch 1", "batch 3"])
def test_exported_layers_keep_no_transposes(batch: int, reshapes: int, tmp_path: Path) -> None:
    """Two bidirectional layers, batch first, as PyTorch exports them."""
    text = f"""<ir_version: 8, opset_import: ["" : 17]>
    g (float[{batch},6,5] x) => (float[{batch},6,8] y) <int64[3] flat = {{0, 0, -1}}> {{
        xt = Transpose <perm = [1, 0, 2]> (x)
        a = LSTM <hidden_size = 4, direction = "bidirectional"> (xt, w0, r0, b0)
        at = Transpose <perm = [0, 2, 1, 3]> (a) af = Reshape (at, flat)
        b = LSTM <hidden_size = 4, direction = "bidirectional"> (af, w1, r1, b1)
        bt = Transpose <perm = [0, 2, 1, 3]> (b) bf = Reshape (bt, flat)
        y = Transpose <perm = [1, 0, 2]> (bf) }}"""
    proto = onnx.parser.parse_model(text)
    rng = np.random.default_rng(6)
    shapes = {"w0": (2, 16, 5), "r0": (2, 16, 4), "b0": (2, 32), "w1": (2, 16, 8), "r1": (2, 16, 4), "b1": (2, 32)}
    proto.graph.initializer.extend(
        onnx.numpy_helper.from_array(rng.uniform(-0.8, 0.8, s).astype(np.float32), n) for n, s in shapes.items())
    given = {"x": rng.uniform(-2, 2, (batch, 6, 5)).astype(np.float32)}
    path = saved(proto, tmp_path)
    loaded = load(path)
    optimize(loaded, input_layout="nchw", output_layout="nchw")
    found = Counter(n.op.kind for n in loaded.main)
    assert found.pop("RESHAPE", 0) == reshapes
    assert found == {"UNIDIRECTIONAL_SEQUENCE_LSTM": 4, "REVERSE_V2": 4, "CONCATENATION": 2}
    assert sqnr_db(by_litert(loaded, given)["y"], by_runtime(path, given)["y"]) > 100
