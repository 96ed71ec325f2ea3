"""A file that computes in float from end to end."""

from __future__ import annotations

from collections.abc import Iterator

from vitrify.core.words import counted
from vitrify.ir import Node
from vitrify.pipeline.checking.diagnosing.diagnosis import Case, Diagnosis, diagnosis
from vitrify.tflite import contents, float_operators

FLOAT_RULES = ("float-tensor", "float-border", "bias-type", "weights-type", "tensor-type", "missing-scale")
"""What each node of a float model breaks, whatever else is wrong with it."""
WHY = "the NPU computes with integers only"


def path(case: Case, nodes: list[Node]) -> str:
    """Say where the float values come in and go out."""
    total = len(case.graph)
    ways = f"'{case.graph.inputs[0].name}' to '{case.graph.outputs[0].name}'" if case.graph.inputs and \
        case.graph.outputs else "end to end"
    return f"{len(nodes)} of {counted(total, 'operator')} compute{'s' * (len(nodes) == 1)} in float, from {ways}"


@diagnosis("float.whole-graph", says="the operators compute with integers", why=WHY, rules=FLOAT_RULES,
           help="vitrify quantize MODEL --data FOLDER -o MODEL_int8.tflite")
def whole(case: Case) -> Iterator[Diagnosis]:
    """Weights and activations are float."""
    if case.kind == "float32":
        nodes = float_operators(case.graph)
        weights = any(t is not None and t.is_constant and t.dtype.is_float for node in nodes for t in node.inputs)
        yield Diagnosis(headline=f"nothing is quantized: {path(case, nodes)}{', weights too' * weights}", nodes=nodes,
                        where=str(case.source), command=case.quantize)


@diagnosis("float.half-weights", says="the operators compute with integers", rules=FLOAT_RULES,
           why="float16 weights make a file smaller and nothing else: they are widened before they are used",
           help="vitrify quantize MODEL --data FOLDER -o MODEL_int8.tflite")
def half(case: Case) -> Iterator[Diagnosis]:
    """Weights are stored as float16."""
    if case.kind == "float16":
        nodes, count = float_operators(case.graph), contents(case.model).float16_weights
        yield Diagnosis(headline=f"only the file is smaller: {counted(count, 'weight')} of float16, and "
                                 f"{path(case, nodes)}", nodes=nodes,
                        where=str(case.source), command=case.quantize)


@diagnosis("float.dynamic-range", says="weights and activations are integers", rules=FLOAT_RULES,
           why="a dynamic-range file has 8-bit weights, but its kernels read and write float values and round them as "
               "they run; an NPU needs scales that are known beforehand, which come from samples",
           help="vitrify quantize MODEL --data FOLDER -o MODEL_int8.tflite")
def dynamic(case: Case) -> Iterator[Diagnosis]:
    """Weights are integers, activations float."""
    if case.kind == "dynamic-range":
        nodes, count = float_operators(case.graph), contents(case.model).integer_weights
        yield Diagnosis(headline=f"only the weights are quantized: {count} of them {'is' if count == 1 else 'are'} "
                                 f"stored as integers, but {path(case, nodes)}", nodes=nodes,
                        where=str(case.source), command=case.quantize)
