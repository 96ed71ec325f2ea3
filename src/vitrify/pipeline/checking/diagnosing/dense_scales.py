"""Dense layers with a scale per output that do not run on the NPU but in a runtime's kernel."""

from __future__ import annotations

from collections.abc import Iterator

from vitrify.core.words import counted
from vitrify.pipeline.checking.diagnosing.diagnosis import Case, Diagnosis, diagnosis


@diagnosis("quantized.dense-scales", says="dense layers on the CPU have one scale, or the runtime is known to be new",
           why="LiteRT reads a scale for each output; TFLite Micro learned it in 2024, before it read the first "
               "one and gave garbage", help="to give dense layers one scale, say so in the recipe: "
               "fully_connected_weights = \"per-tensor\"")
def dense(case: Case) -> Iterator[Diagnosis]:
    """FULLY_CONNECTED on the CPU whose weights have more than one scale."""
    found = []
    for node in case.on_cpu:
        weight = node.optional(1) if node.op.kind == "FULLY_CONNECTED" else None
        if weight is not None and weight.quantization is not None and weight.quantization.scale.size > 1 \
                and not node.output.dtype.is_float:
            found.append(node)
    if found:
        yield Diagnosis(headline=f"{counted(len(found), 'dense layer')} on the CPU with a scale for each output",
                        nodes=found)
