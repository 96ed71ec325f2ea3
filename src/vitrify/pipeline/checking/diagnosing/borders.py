"""Float inputs and outputs of a model that is quantized inside."""

from __future__ import annotations

from collections.abc import Iterator

from vitrify.core.words import shell
from vitrify.ir import Node
from vitrify.pipeline.checking.diagnosing.diagnosis import Case, Diagnosis, diagnosis
from vitrify.tflite import float_operators


@diagnosis("float.border", says="inputs and outputs are integers", rules=("float-tensor", "float-border",
           "unsupported-operator"), why="the NPU cannot turn float values into integers, so the CPU does it at every "
           "run; a camera gives 8-bit pixels in the first place",
           help="vitrify check MODEL --target NAME --fix -o OUT.tflite")
def borders(case: Case) -> Iterator[Diagnosis]:
    """QUANTIZE behind float inputs, DEQUANTIZE before float outputs."""
    if case.kind not in ("int8-float-io", "int16x8", "int8-int16", "mixed"):
        return
    nodes = [node for node in case.graph if _is_border(node)]
    if not nodes:
        return
    inputs = [t.name for t in case.graph.inputs if t.dtype.is_float]
    outputs = [t.name for t in case.graph.outputs if t.dtype.is_float]
    parts = [f"{len(names)} {what}{'s' * (len(names) > 1)} ({', '.join(map(repr, names[:3]))})"
             for names, what in ((inputs, "input"), (outputs, "output")) if names]
    yield Diagnosis(headline=f"the model is quantized inside, but {' and '.join(parts)} "
                             f"{'is' if len(inputs) + len(outputs) == 1 else 'are'} float", nodes=nodes,
                    command=mending(case))


def mending(case: Case, approximate: str = "") -> str:
    """A fix, where nothing inside is float; else the whole is quantized anew, and with it what a fix would mend."""
    if not float_operators(case.graph):
        return fixing(case, approximate)
    return "" if any(finding.code.startswith("quant.") for finding in case.refusals) else case.quantize


def fixing(case: Case, approximate: str = "") -> str:
    """The command that applies the fixes of the target, and one that changes values besides the exact ones."""
    data = f" --data {shell(case.data)}" if case.made == "quantized" or case.is_float else ""
    more = f" --approximate {approximate}" if approximate else ""
    output = case.output("_fixed.tflite")
    return f"vitrify check {case.named} --target {case.target.name}{data} --fix{more} -o {output}"


def _is_border(node: Node) -> bool:
    if node.op.kind == "QUANTIZE" and node.inputs:
        source = node.input(0)
        return source.dtype.is_float and source.producer is None and not source.is_constant
    return node.op.kind == "DEQUANTIZE" and bool(node.outputs) and node.output.is_output
