"""Weights that are not finite: a training that diverged, found before anything is computed with them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from vitrify.core.errors import ModelError
from vitrify.core.findings import Finding
from vitrify.ir import Graph, Node, Tensor
from vitrify.quant.rules import roles

SHOWN = 10


def refuse_broken_constants(graph: Graph) -> None:
    """Refuse constants that hold NaN, and weights and biases that hold infinity; elsewhere that is a mask.

    Raises:
        ModelError: there are some; names each with the nodes that read it.
    """
    found = list(_broken(graph))
    if len(found) > SHOWN:
        more = Finding(code="model.not_finite", headline=f"the same holds for {len(found) - SHOWN} more constants")
        found = [*found[:SHOWN], more]
    if found:
        raise ModelError(found)


def _broken(graph: Graph) -> Iterator[Finding]:
    seen: set[int] = set()
    for node in graph:
        found = roles(node)
        weighed = {found.weight, found.bias} if found is not None else set()
        for place, tensor in enumerate(node.inputs):
            if tensor is None or tensor.data is None or tensor.data.dtype.kind != "f" or id(tensor) in seen:
                continue
            seen.add(id(tensor))
            if not np.isfinite(tensor.data.sum(dtype=np.float64)):          # one reading where all is well
                yield from _told(node, tensor, place in weighed)


def _told(node: Node, tensor: Tensor, weighed: bool) -> Iterator[Finding]:
    assert tensor.data is not None
    nan = int(np.isnan(tensor.data).sum())
    infinite = int(np.isinf(tensor.data).sum()) if weighed else 0
    if not nan + infinite:
        return
    what = " and ".join(f"{count} {name}" for count, name in ((nan, "NaN"), (infinite, "infinite")) if count)
    source = f"; in the source {node.origin}" if node.origin.sources else ""
    yield Finding(
        code="model.not_finite", where=f"{node.op.kind} '{node.name}'{source}",
        headline=f"constant '{tensor.name}' of {node.op.kind} '{node.name}' holds {what} of {tensor.size} values",
        why="everything behind it becomes NaN, and no range can be found for that",
        help="look at the training: a checkpoint from before it diverged has finite weights")
