"""Free dimensions, and batches of several samples."""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote

from vitrify.core.words import counted
from vitrify.ir import Tensor
from vitrify.pipeline.checking.diagnosing.borders import fixing
from vitrify.pipeline.checking.diagnosing.diagnosis import Case, Diagnosis, diagnosis


@diagnosis("shape.free", says="no dimension but the batch is free", rules=("dynamic-shape",),
           why="a compiler lays out memory beforehand; it takes a -1 in the file's shape signatures for a size that "
               "only a run knows, even where the shape itself is fixed",
           help="vitrify convert MODEL --shape INPUT=1,H,W,C -o OUT.tflite")
def free(case: Case) -> Iterator[Diagnosis]:
    """-1 in shape signatures, behind the batch."""
    nodes = case.breaks("dynamic-shape")
    if not nodes:
        return
    inputs = [t for t in case.graph.inputs if any(extent < 0 for extent in t.shape_signature[1:])]
    named = ", ".join(f"'{t.name}' {list(t.shape_signature)}" for t in inputs[:3])
    shapes = "".join(f" --shape {quote(t.name)}={','.join(map(str, t.shape))}" for t in inputs)
    origin = f"of {named}" if inputs else f"inside, from '{nodes[0].name}' on"
    yield Diagnosis(headline=f"dimensions {origin} are free, and with them those of {counted(len(nodes), 'operator')}",
                    nodes=nodes, command=f"vitrify convert {case.named}{shapes} -o {case.output('_static.tflite')}")


@diagnosis("shape.batch", says="the model takes one sample at a time", rules=("batch",),
           why="the NPU computes sample by sample; some operators have no form for more than one",
           help="vitrify check MODEL --target NAME --fix -o OUT.tflite")
def batch(case: Case) -> Iterator[Diagnosis]:
    """Inputs with several samples, where that keeps operators off the NPU."""
    nodes = case.breaks("batch")
    several = [t for t in case.graph.inputs if len(t.shape) > 1 and t.shape[0] > 1]
    if nodes:
        what = f"'{several[0].name}' takes {several[0].shape[0]} samples at a time" if several else \
            f"'{_source(nodes[0].inputs).name}' holds several samples"
        yield Diagnosis(headline=f"{what}; {counted(len(nodes), 'operator')} can take only one", nodes=nodes,
                        command=fixing(case))


def _source(inputs: tuple[Tensor | None, ...]) -> Tensor:
    return next(t for t in inputs if t is not None)
