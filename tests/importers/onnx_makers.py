"""Tiny ONNX models, and what ONNX Runtime and LiteRT say about them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from vitrify import tflite
from vitrify.importers import load
from vitrify.ir import Model

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class Feed:
    """A graph input with the values it gets in the test."""

    values: Array


@dataclass
class Case:
    """One node. ``inputs``: a shape is a random float input, an array a constant, a Feed an input, None is left out."""

    kind: str
    inputs: Sequence[tuple[int, ...] | Array | Feed | None]
    attributes: Mapping[str, Any] = field(default_factory=dict)
    opset: int = 17
    outputs: int = 1
    low: float = -3.0
    high: float = 3.0
    tolerance: float = 2e-6

    def feeds(self) -> dict[str, Array]:
        """The graph inputs' values."""
        rng = np.random.default_rng(7)
        found: dict[str, Array] = {}
        for i, given in enumerate(self.inputs):
            if isinstance(given, tuple):
                found[f"x{i}"] = rng.uniform(self.low, self.high, given).astype(np.float32)
            elif isinstance(given, Feed):
                found[f"x{i}"] = given.values
        return found

    def proto(self) -> onnx.ModelProto:
        """The model."""
        feeds = self.feeds()
        names = [f"x{i}" if given is not None else "" for i, given in enumerate(self.inputs)]
        node = helper.make_node(self.kind, names, [f"y{i}" for i in range(self.outputs)], "the node", **self.attributes)
        constants = {f"x{i}": given for i, given in enumerate(self.inputs) if isinstance(given, np.ndarray)}
        return model([node], feeds, constants, node.output, self.opset)


def model(
    nodes: Sequence[onnx.NodeProto],
    feeds: Mapping[str, Array],
    constants: Mapping[str, Array],
    outputs: Sequence[str],
    opset: int = 17,
) -> onnx.ModelProto:
    """A model whose graph inputs have the shapes and types of ``feeds``."""
    graph = helper.make_graph(
        nodes,
        "tiny",
        [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape) for n, a in feeds.items()],
        [helper.make_empty_tensor_value_info(o) for o in outputs],
        [numpy_helper.from_array(a, n) for n, a in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def value(name: str, shape: Sequence[Any], kind: int = TensorProto.FLOAT) -> onnx.ValueInfoProto:
    """A declared input or output."""
    return helper.make_tensor_value_info(name, kind, shape)


def saved(proto: onnx.ModelProto, folder: Path) -> Path:
    """Write the model into ``folder``."""
    path = folder / "model.onnx"
    path.write_bytes(proto.SerializeToString())
    return path


def by_runtime(path: Path, feeds: Mapping[str, Array]) -> dict[str, Array]:
    """ONNX Runtime's outputs by name."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(path, options)
    names = [o.name for o in session.get_outputs()]
    return dict(zip(names, session.run(names, dict(feeds)), strict=True))


def by_litert(imported: Model, feeds: Mapping[str, Array]) -> dict[str, Array]:
    """LiteRT's outputs by the source's names."""
    from ai_edge_litert.interpreter import Interpreter

    assert imported.interface is not None
    interpreter = Interpreter(model_content=bytes(tflite.to_bytes(imported)), num_threads=1)
    interpreter.allocate_tensors()
    for binding in imported.interface.inputs:
        detail = interpreter.get_input_details()[binding.position]
        interpreter.set_tensor(detail["index"], feeds[binding.name].astype(detail["dtype"]))
    interpreter.invoke()
    details = interpreter.get_output_details()
    return {b.name: interpreter.get_tensor(details[b.parts[0].position]["index"]) for b in imported.interface.outputs}


def imported(proto: onnx.ModelProto, folder: Path, **options: Any) -> Model:
    """Save and import."""
    return load(saved(proto, folder), **options)


def sqnr_db(got: Array, wanted: Array) -> float:
    """Signal to error, in decibels."""
    error = float(((got.astype(np.float64) - wanted) ** 2).sum())
    return float("inf") if error == 0 else float(10 * np.log10((wanted.astype(np.float64) ** 2).sum() / error))


def same_as_runtime(case: Case, folder: Path) -> Model:
    """Check a case against ONNX Runtime as imported and after the passes; return the model after them."""
    from vitrify.ir.validation import problems
    from vitrify.passes import optimize

    path, feeds = saved(case.proto(), folder), case.feeds()
    wanted, built = by_runtime(path, feeds), load(path)
    assert problems(built.main) == []
    for stage in ("as imported", "after the passes"):
        got = by_litert(built, feeds)
        assert list(got) == list(wanted)
        for output, value in wanted.items():
            assert got[output].shape == value.shape, stage
            span = max(float(np.abs(value.astype(np.float64)).max(initial=0)), 1e-30)
            error = float(np.abs(got[output].astype(np.float64) - value.astype(np.float64)).max(initial=0))
            assert error <= case.tolerance * span, f"{output} {stage}: error {error:.3g} of {span:.3g}"
        if stage == "as imported":
            optimize(built, input_layout="nchw", output_layout="nchw")
    return built
