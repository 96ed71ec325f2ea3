"""Quantized forms that today's compilers and kernels are not made for: uint8, asymmetric weights."""

from __future__ import annotations

from collections.abc import Iterator

from vitrify.core.words import counted
from vitrify.ir import DType, Node, Tensor
from vitrify.ops import VarHandle
from vitrify.pipeline.checking.diagnosing.borders import mending
from vitrify.pipeline.checking.diagnosing.diagnosis import Case, Diagnosis, diagnosis

SIGNED = "signed-values"
"""The fix that shifts unsigned values by 128."""


@diagnosis("quantized.uint8", says="operators compute in int8", rules=("tensor-type", "element-width", "table-type",
           "zero-point"), why="uint8 is the form of the first quantizers: one scale for all channels of a weight, so "
           "small channels lose their values, and fewer operators have kernels for it", help=f"vitrify check MODEL "
           f"--target NAME --fix --approximate {SIGNED} -o OUT.tflite")
def unsigned(case: Case) -> Iterator[Diagnosis]:
    """Operators that compute in uint8."""
    nodes = _computing(case)
    if nodes:
        left = sum(case.verdicts[node].placement == "cpu" for node in nodes)
        yield Diagnosis(headline=f"{len(nodes)} of {counted(len(case.graph), 'operator')} compute in uint8, {left} of "
                                 "them on the CPU", nodes=nodes, command=mending(case, SIGNED))


@diagnosis("quantized.uint8-ends", says="inputs and outputs have the type that the operators compute in",
           why="the operators compute in int8, and one more shifts each value by 128; an application can do it where "
               "it reads the pixels",
           help=f"vitrify check MODEL --target NAME --fix --approximate {SIGNED} -o OUT.tflite")
def unsigned_ends(case: Case) -> Iterator[Diagnosis]:
    """QUANTIZE between uint8 inputs or outputs and int8 inside."""
    nodes = [node for node in case.graph if node.op.kind == "QUANTIZE" and node.output.dtype is not node.input(0).dtype
             and ((_is_unsigned(node.input(0)) and node.input(0).producer is None)
                  or (_is_unsigned(node.output) and node.output.is_output))]
    if nodes and not _computing(case) and not case.graph.count(VarHandle):     # a shift beside which states weigh
        names = ", ".join(repr(t.name) for t in (*case.graph.inputs, *case.graph.outputs) if _is_unsigned(t))
        yield Diagnosis(headline=f"{names} of uint8 around operators of int8", nodes=nodes,
                        command=mending(case, SIGNED))


def _computing(case: Case) -> list[Node]:
    """The nodes that compute in uint8."""
    return [node for node in case.graph if node.op.kind not in ("QUANTIZE", "DEQUANTIZE")
            and any(_is_unsigned(t) for t in (*node.inputs, *node.outputs))]


@diagnosis("quantized.asymmetric-weights", says="weights are symmetric: their zero point is 0",
           rules=("weight_zero_point",),
           why="the int8 kernels of TFLite compute as if it were 0: LiteRT refuses such a file, and a runtime that "
               "does not look gives wrong answers", help="vitrify quantize MODEL --anew --data FOLDER -o OUT.tflite")
def asymmetric(case: Case) -> Iterator[Diagnosis]:
    """int8 weights with a zero point that is not 0."""
    nodes = [node for node in case.graph if _is_asymmetric(_weight(node))]
    if nodes:
        weight = _weight(nodes[0])
        assert weight is not None
        assert weight.quantization is not None
        zero = int(weight.quantization.zero_point[weight.quantization.zero_point != 0][0])
        single = sum((w := _weight(node)) is not None and w.quantization is not None and w.quantization.scale.size == 1
                     for node in nodes)
        one = f", {single} of them with one scale for all channels" if single else ""
        yield Diagnosis(headline=f"the int8 weights of {counted(len(nodes), 'operator')} have a zero point that is not "
                                 f"0{one}: '{weight.name}' has {zero}", nodes=nodes, command=case.quantize)


def _is_unsigned(tensor: Tensor | None) -> bool:
    return tensor is not None and tensor.dtype is DType.UINT8 and tensor.quantization is not None \
        and tensor.data is None and tensor.quantization.scale.size > 0


def _weight(node: Node) -> Tensor | None:
    rule = node.op.int8
    return None if rule is None or rule.weight is None else node.optional(rule.weight)


def _is_asymmetric(weight: Tensor | None) -> bool:
    return weight is not None and weight.dtype is DType.INT8 and weight.data is not None \
        and weight.quantization is not None and bool(weight.quantization.zero_point.any())
