"""16-bit activations where a kernel or the compiler has no such form."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from vitrify.core.words import counted
from vitrify.ir import DType, Node
from vitrify.pipeline.checking.diagnosing.diagnosis import Case, Diagnosis, diagnosis


@diagnosis("quantized.int16", says="operators with 16-bit activations have such a kernel, and the NPU such a form",
           rules=("element-width", "table-type", "mean-type", "mean-elements", "matmul-type"),
           why="converters write 16-bit operators that the runtime has no kernel for, and compilers have fewer of them "
               "than of 8 bits", help="vitrify quantize MODEL --anew --data FOLDER -o OUT.tflite")
def wide(case: Case) -> Iterator[Diagnosis]:
    """Operators of int16 that are refused or left to the CPU."""
    refused = " ".join(finding.where for finding in case.refusals)
    nodes = [node for node in case.graph if _is_wide(node) and node.op.kind not in ("QUANTIZE", "DEQUANTIZE")
             and (case.verdicts[node].placement == "cpu" or f"'{node.name}'" in refused)]
    if nodes:
        words = ", ".join(f"{count} {kind}" for kind, count in Counter(n.op.kind for n in nodes).most_common(4))
        yield Diagnosis(headline=f"no kernel or no place on the NPU for {counted(len(nodes), 'operator')} of int16: "
                                 f"{words}",
                        nodes=nodes, command=case.quantize)


def _is_wide(node: Node) -> bool:
    return any(t is not None and t.dtype is DType.INT16 and t.quantization is not None and not t.is_constant
               for t in (*node.inputs, *node.outputs))
