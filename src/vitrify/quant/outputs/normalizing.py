"""One output for parts of very different range: each is scaled to -1..1 in the file, and back behind it.

    Before:  %y = CONCATENATION(%boxes, %scores)                     0..640 beside 0..1
    After:   %y = CONCATENATION(MUL(%boxes, 1/640), MUL(%scores, 1))

Whoever reads the output multiplies each part by its factor, as the host program says.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from vitrify.data.host import attributes_of
from vitrify.ir import DType, Graph, Node, Tensor
from vitrify.ir.host import HostConstant, HostProgram, HostStep
from vitrify.ops import Concatenation, Mul
from vitrify.quant.calibration.statistics import Range
from vitrify.quant.outputs.joins import Join, find_join, whole_range

PASS = "normalize-outputs"


def normalize(graph: Graph, output: Tensor, ranges: Mapping[Tensor, Range]
              ) -> tuple[HostConstant, dict[Tensor, Range]] | None:
    """Scale the parts of a joined output to -1..1; None when it is not joined.

    Returns:
        What the output is to be multiplied by behind the file, and the ranges of the tensors that changed.
    """
    join = find_join(output)
    if join is None or not all(m in ranges for m in join.members) or _is_shared(join):
        return None
    factors = [max(abs(ranges[m].low), abs(ranges[m].high)) or 1.0 for m in join.members]
    known: dict[Tensor, Range] = {}
    scaled = [_scaled(graph, join, m, f, ranges[m], known) for m, f in zip(join.members, factors, strict=True)]
    whole = whole_range([known[t] for t in scaled])
    node = graph.replace_node(join.node, Concatenation(axis=join.axis), scaled, origin=join.node.origin.by(PASS))
    known |= dict.fromkeys([node.output, *(step.output for step in join.chain)], whole)
    row = np.concatenate([np.full(m.shape[join.axis], f, np.float32)
                          for m, f in zip(join.members, factors, strict=True)])
    shape = [1] * len(output.shape)
    shape[join.output_axis] = -1
    return HostConstant.of(row.reshape(shape)), known


def _is_shared(join: Join) -> bool:
    """True when something besides the output reads what is joined."""
    steps: list[Node] = [join.node, *join.chain]
    return any(len(s.output.users) + s.output.is_output != 1 for s in steps)


def _scaled(graph: Graph, join: Join, member: Tensor, factor: float, own: Range,
            known: dict[Tensor, Range]) -> Tensor:
    constant = Tensor(f"{member.name}_inverse", DType.FLOAT32, (), data=np.array(1 / factor, np.float32))
    made = graph.add(Mul(), [member, constant], name=f"{member.name}_scaled", origin=join.node.origin.by(PASS),
                     before=join.node).output
    made.origin = made.origin._replace(sources=())
    known[made] = Range(own.low / factor, own.high / factor)
    return made


def multiplying(factors: Mapping[int, HostConstant], outputs: int) -> HostProgram:
    """The host program that multiplies the outputs at these positions by their factors."""
    steps, gives = [], list(range(outputs))
    for number, position in enumerate(factors):
        gives[position] = outputs + len(factors) + number
        steps.append(HostStep(operator="MUL", attributes=attributes_of(Mul()), inputs=(position, outputs + number),
                              outputs=(gives[position],)))
    return HostProgram(takes=outputs, constants=tuple(factors.values()), steps=tuple(steps), gives=tuple(gives))
