"""ONNX's own node tests (`onnx.backend.test`), each imported, cleaned up, written and run in LiteRT.

Inputs that decide shapes or parameters (the shape of a Reshape, the axes of a reduction) are graph inputs in these
tests. Where the import asks for such a value, it is given as a constant, as a user does with ``--value``.
"""

from __future__ import annotations

import re
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

# Why a test is none of a static tensor program, by a word that its name or one of its operators contains.
TRAINING = {"Adam", "Adagrad", "Momentum", "Gradient"}
TEXT = {"StringNormalizer", "StringConcat", "StringSplit", "RegexFullMatch", "TfIdfVectorizer", "LabelEncoder"}
RANDOM = {"Bernoulli", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Multinomial"}
# What the shape of the result depends on the values of the input in.
DYNAMIC = {"NonZero", "Unique", "Compress", "NonMaxSuppression"}
PICTURES = {"ImageDecoder"}
# Whose only inputs say how large the result is.
LENGTHS = ("_range_", "constantofshape", "hannwindow", "hammingwindow", "blackmanwindow", "melweight", "loop11")
# What rounding in a type coarser than the test's tolerance may do to a value, relative to it: two of its steps.
COARSE = {"bfloat16": 2.0**-6}
# A few roundings of float32, relative to the largest value of an output: how far a sum of such values may be off.
ROUNDING = 2.0**-22
FLOAT_STEP = 2.0**-23


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
        """The operator under test; names in a function written out begin with it."""
        nodes = self.model.graph.node
        written_out = (re.match(r"(\w+?)_test_\w+?_function_", name) for node in nodes for name in node.output)
        return next((found[1] for found in written_out if found), nodes[0].op_type)


@dataclass(frozen=True)
class Result:
    """What came out. ``reason`` names the refusal or the difference; ``known``: nothing was left to run."""

    outcome: Outcome
    reason: str = ""
    known: bool = False


def left_out(case: Any) -> str:
    """Say why a test is none of a static tensor program; empty for those that are taken."""
    graph = case.model.graph
    kinds = {n.op_type for n in graph.node}
    domains = {n.domain for n in graph.node} - {"", "ai.onnx"}
    if kinds & TRAINING or "train" in case.name or "training" in str(domains):
        return "training"
    if domains:
        return "another domain than ONNX's own"
    values = [*graph.input, *graph.output]
    if any(not v.type.HasField("tensor_type") for v in values):
        return "sequences and optionals"
    if kinds & TEXT or any(v.type.tensor_type.elem_type == onnx.TensorProto.STRING for v in values):
        return "strings"
    if kinds & PICTURES:
        return "decoding of picture files"
    if kinds & RANDOM:
        return "random values"
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
    """Which inputs are given as constants: none, then small integers, then all small ones but the first input."""
    yield {}
    first = next(iter(case.inputs), "")
    small = {n: a for n, a in case.inputs.items() if a.ndim <= 1}
    whole = {n: a for n, a in small.items() if a.dtype.kind in "iu" and n != first}
    if whole:
        yield whole
    rest = {n: a for n, a in small.items() if n != first}
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
    return judged(case, executed(model, case.inputs), not model.main.inputs)


def executed(model: Model, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """Run the model in LiteRT's reference kernels; CEIL, ELU and ROUND have plain ones only."""
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    assert model.interface is not None
    data = bytes(tflite.to_bytes(model))
    try:
        interpreter = Interpreter(model_content=data, num_threads=1,
                                  experimental_op_resolver_type=OpResolverType.BUILTIN_REF)
    except ValueError as error:
        if "Didn't find op" not in str(error):
            raise
        interpreter = Interpreter(model_content=data, num_threads=1,
                                  experimental_op_resolver_type=OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES)
    interpreter.allocate_tensors()
    given = {b.name: inputs[b.name] for b in model.interface.inputs}
    details = interpreter.get_input_details()
    for detail, array in zip(details, to_file_inputs(model.interface, given, details), strict=True):
        interpreter.set_tensor(detail["index"], array)
    interpreter.invoke()
    found = interpreter.get_output_details()
    arrays = [interpreter.get_tensor(d["index"]) for d in found]
    return to_source_outputs(model.interface, arrays, found)


def _largest(values: Array) -> float:
    """The largest finite magnitude."""
    return float(np.abs(values[np.isfinite(values)]).max(initial=0.0))


def judged(case: NodeTest, found: Mapping[str, Array], known: bool) -> Result:
    """Compare with what the test wants, at its own tolerance or what rounding in the types at hand does."""
    coarse = max((COARSE.get(a.dtype.name, 0.0) for a in (*case.inputs.values(), *case.outputs.values())), default=0.0)
    for name, wanted in case.outputs.items():
        got = found[name]
        if got.shape != wanted.shape:
            return Result("failed", f"'{name}' has the shape {got.shape}, not {wanted.shape}")
        if got.dtype != wanted.dtype:
            return Result("failed", f"'{name}' is {got.dtype.name}, not {wanted.dtype.name}")
        ours, theirs = _real(got), _real(wanted)
        largest = np.abs(theirs[np.isfinite(theirs)]).max(initial=0) if wanted.dtype.kind == "f" else 0
        if not np.allclose(ours, theirs, max(case.rtol, coarse), max(case.atol, ROUNDING * largest), equal_nan=True):
            return Result("failed", f"'{name}' differs by up to {np.nanmax(np.abs(ours - theirs)):.3g}")
    return Result("passed", known=known)


def _real(array: Array) -> Array:
    """The values; LiteRT's sums do not go beyond the largest float32, which counts as infinite."""
    values = array.astype(np.float64)
    beyond = np.abs(values) >= float(np.finfo(np.float32).max)
    return np.where(beyond, np.copysign(np.inf, values), values)
