"""ONNX's own node tests (`onnx.backend.test`), each imported, cleaned up, written and run in LiteRT.

Inputs that decide shapes or parameters (the shape of a Reshape, the axes of a reduction) are graph inputs in these
tests. Where the import asks for such a value, it is given as a constant, as a user does with ``--value``.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
import onnx
from onnx import numpy_helper

from vitrify import tflite
from vitrify.core.errors import UnsupportedError, VitrifyError
from vitrify.data.binding import to_file_inputs, to_source_outputs
from vitrify.importers import load
from vitrify.ir import Model
from vitrify.passes import optimize

Array = np.ndarray[Any, np.dtype[Any]]
Outcome = Literal["passed", "refused", "failed"]

TRAINING = {"Adam", "Adagrad", "Momentum", "Gradient"}
TEXT = {"StringNormalizer", "StringConcat", "StringSplit", "RegexFullMatch", "TfIdfVectorizer", "LabelEncoder"}
# What makes its whole result of small numbers, the first input included.
CONSTANT_ONLY = {"Range", "ConstantOfShape", "Loop", "HannWindow", "HammingWindow", "BlackmanWindow", "MelWeightMatrix"}
# What the shape of the result depends on the values of the input in.
DYNAMIC = {"NonZero", "Unique", "Compress"}


# Whose only inputs say how large the result is.
LENGTHS = ("_range_", "constantofshape", "hannwindow", "hammingwindow", "blackmanwindow")


@dataclass(frozen=True)
class NodeTest:
    """One test: a model, its inputs and what it must give."""

    name: str
    model: onnx.ModelProto
    inputs: dict[str, Array]
    outputs: dict[str, Array]
    rtol: float
    atol: float

    @property
    def kind(self) -> str:
        """The operator under test: that of the file's first node, or of the name for an expanded function."""
        return self.model.graph.node[0].op_type


@dataclass(frozen=True)
class Result:
    """What came out. ``reason`` names the refusal or the difference."""

    outcome: Outcome
    reason: str = ""


def left_out(case: Any) -> str:
    """Say why a test is none of a static tensor program; empty for those that are taken."""
    graph = case.model.graph
    kinds = {n.op_type for n in graph.node}
    if {n.domain for n in graph.node} - {"", "ai.onnx"}:
        return "training" if "training" in str({n.domain for n in graph.node}) else "another domain"
    if kinds & TRAINING or "train" in case.name.split("_"):
        return "training"
    if kinds & TEXT:
        return "strings"
    values = [*graph.input, *graph.output]
    if any(not v.type.HasField("tensor_type") for v in values):
        return "sequences and optionals"
    if any(v.type.tensor_type.elem_type == onnx.TensorProto.STRING for v in values):
        return "strings"
    if kinds & DYNAMIC:
        return "a shape that depends on values"
    return ""


def _array(value: Any) -> Array:
    return numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else np.asarray(value)


@cache
def collected() -> tuple[tuple[NodeTest, ...], dict[str, str]]:
    """Return the tests that count, and the names of the others with the reason."""
    from onnx.backend.test.loader import load_model_tests

    taken: list[NodeTest] = []
    others: dict[str, str] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cases = load_model_tests(kind="node")
    for case in cases:
        reason = left_out(case)
        if reason:
            others[case.name] = reason
            continue
        given, wanted = case.data_sets[0]
        graph = case.model.graph
        taken.append(NodeTest(
            case.name, case.model,
            dict(zip([i.name for i in graph.input], map(_array, given), strict=False)),
            dict(zip([o.name for o in graph.output], map(_array, wanted), strict=False)), case.rtol, case.atol))
    return tuple(taken), others


def offers(case: NodeTest) -> Iterator[dict[str, Array]]:
    """Which inputs are given as constants: none, then small integers, then all small ones but the first input.

    A tensor without elements has nothing that could change at run time, and is a constant always.
    """
    empty = {n: a for n, a in case.inputs.items() if a.size == 0}
    yield from ({**empty, **given} for given in _more(case))


def _more(case: NodeTest) -> Iterator[dict[str, Array]]:
    yield {}
    first = next(iter(case.inputs), "")
    small = {n: a for n, a in case.inputs.items() if a.ndim <= 1}
    whole = {n: a for n, a in small.items() if a.dtype.kind in "iu" and (n != first or case.kind in CONSTANT_ONLY)}
    if whole:
        yield whole
    rest = {n: a for n, a in small.items() if n != first or n in whole or case.kind == "Range"}
    if len(rest) > len(whole):
        yield rest
    if any(word in case.name for word in LENGTHS):
        yield small


def imported(case: NodeTest, path: Path) -> Model:
    """Import and clean up, with as few constants as the import takes."""
    shapes = {n: a.shape for n, a in case.inputs.items()}
    refusal: VitrifyError | None = None
    for constants in offers(case):
        try:
            model = load(path, shapes={n: s for n, s in shapes.items() if n not in constants}, values=constants)
            optimize(model)
            return model
        except UnsupportedError as error:
            refusal = error
    assert refusal is not None
    raise refusal


def run(case: NodeTest, folder: Path) -> Result:
    """Take one test the whole way."""
    path = folder / "model.onnx"
    path.write_bytes(case.model.SerializeToString())
    try:
        model = imported(case, path)
    except UnsupportedError as error:
        return Result("refused", error.findings[0].headline)
    except VitrifyError as error:
        return Result("failed", error.findings[0].headline)
    return judged(case, executed(model, case.inputs))


def executed(model: Model, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """Run the model in LiteRT's reference kernels."""
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    assert model.interface is not None
    content = bytes(tflite.to_bytes(model))
    try:
        interpreter = Interpreter(model_content=content, num_threads=1,
                                  experimental_op_resolver_type=OpResolverType.BUILTIN_REF)
    except ValueError as error:
        if "Didn't find op" not in str(error):  # LiteRT 2.3 has no reference kernels for CEIL, ROUND and ELU
            raise
        interpreter = Interpreter(model_content=content, num_threads=1, experimental_op_resolver_type=
                                  OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES)
    interpreter.allocate_tensors()
    given = {b.name: inputs[b.name] for b in model.interface.inputs}
    details = interpreter.get_input_details()
    for detail, array in zip(details, to_file_inputs(model.interface, given, details), strict=True):
        interpreter.set_tensor(detail["index"], array)
    interpreter.invoke()
    found = interpreter.get_output_details()
    arrays = [interpreter.get_tensor(d["index"]) for d in found]
    return to_source_outputs(model.interface, arrays, found)


# The relative rounding of types that the tests' references compute in, step by step; a result is held as float32.
ROUNDING = {"float32": 2.0**-24, "bfloat16": 2.0**-9}


def judged(case: NodeTest, found: Mapping[str, Array]) -> Result:
    """Compare with what the test wants, at the test's own tolerance or two roundings of its largest value."""
    for name, wanted in case.outputs.items():
        got = found[name]
        if got.shape != wanted.shape:
            return Result("failed", f"'{name}' has the shape {got.shape}, not {wanted.shape}")
        left, right = (v if v.dtype.kind in "biu" else v.astype(np.float64) for v in (got, wanted))
        finite = np.abs(right[np.isfinite(right)]) if right.dtype.kind == "f" else np.zeros(0)
        noise = 2 * ROUNDING.get(wanted.dtype.name, 0.0) * float(finite.max(initial=0.0))
        if not np.allclose(left, right, case.rtol, max(case.atol, noise), equal_nan=True):
            return Result("failed", f"'{name}' differs")
    return Result("passed")
