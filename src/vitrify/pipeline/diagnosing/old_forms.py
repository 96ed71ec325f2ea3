"""Quantized forms that today's compilers and kernels are not made for: uint8, asymmetric weights."""

from __future__ import annotations

from collections.abc import Iterator

from vitrify.core.words import counted
from vitrify.ir import DType, Node, Tensor
from vitrify.pipeline.diagnosing.diagnosis import Case, Diagnosis, diagnosis


@diagnosis("quantized.uint8", says="operators compute in int8", rules=("tensor-type", "element-width", "table-type",
           "zero-point"), why="uint8 is the form of the first quantizers: one scale for all channels of a weight, so "
           "small channels lose their values, and fewer operators have kernels for it",
           help="vitrify quantize MODEL --anew --data FOLDER -o OUT.tflite")
def unsigned(case: Case) -> Iterator[Diagnosis]:
    """Operators that compute in uint8."""
    nodes = [node for node in case.graph if node.op.kind != "QUANTIZE"
             and any(_is_unsigned(t) for t in (*node.inputs, *node.outputs))]
    if nodes:
        left = sum(case.verdicts[node].placement == "cpu" for node in nodes)
        yield Diagnosis(headline=f"{len(nodes)} of {counted(len(case.graph), 'operator')} compute in uint8, {left} of "
                                 "them on the CPU", nodes=nodes, command=case.quantize)


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
