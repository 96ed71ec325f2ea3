"""Outputs that join parts of very different range are taken apart, so that each part gets a scale of its own.

One scale over boxes of 0..640 beside scores of 0..1 has a step of 2.5, and every score is rounded to 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import msgspec
import numpy as np

from vitrify.core.findings import Finding, Severity
from vitrify.core.words import counted
from vitrify.data.binding import identity_interface
from vitrify.ir import DType, Graph, Interface, Ledger, LedgerEntry, Model, Node, OutputBinding, Part, Tensor
from vitrify.ir.host import HostConstant
from vitrify.ops import Concatenation, Div, Reshape, Transpose
from vitrify.quant.calibration.statistics import Range, Statistics
from vitrify.quant.outputs.conflicts import Conflict, collisions, constant_findings, find_conflicts
from vitrify.quant.outputs.hosting import give_out
from vitrify.quant.outputs.joins import Join, axis_after, fewest_levels, find_join, parts_of, reshaped_axis
from vitrify.quant.outputs.normalizing import multiplying, normalize
from vitrify.quant.outputs.tails import Tail, exacting, find_tails, must_leave
from vitrify.quant.planning import natural_ranges
from vitrify.quant.reach import divisor_of
from vitrify.quant.recipe import Recipe
from vitrify.quant.scales import LEVELS

PASS = "split-outputs"

SHOWN = 8
"""How many names a sentence lists."""


@dataclass(frozen=True)
class Split:
    """What came of taking the outputs apart.

    ``fine`` holds the layers whose outputs the host computes with, ``conflicts`` all parts with few levels, ``solved``
    what was done about joins and cuts before outputs, by their name, ``known`` the ranges of tensors that are new.
    """

    findings: list[Finding]
    fine: frozenset[Node] = frozenset()
    conflicts: list[Conflict] = field(default_factory=list)
    solved: dict[str, str] = field(default_factory=dict)
    known: dict[Tensor, Range] = field(default_factory=dict)


@dataclass
class _Work:
    """What is found and done while the outputs are gone through."""

    model: Model
    ranges: Mapping[Tensor, Range]
    recipe: Recipe
    findings: list[Finding] = field(default_factory=list)
    tails: list[Tail] = field(default_factory=list)
    parted: int = 0
    solved: dict[str, str] = field(default_factory=dict)
    known: dict[Tensor, Range] = field(default_factory=dict)
    factors: dict[int, HostConstant] = field(default_factory=dict)

    @property
    def may_host(self) -> bool:
        """True when the file can get a host program: it has none yet."""
        return self.recipe.outputs != "keep" and (self.model.interface is None or self.model.interface.host is None)


def split_outputs(model: Model, statistics: Statistics, recipe: Recipe, ledger: Ledger) -> Split:
    """Take the outputs apart whose parts would lose their levels; there is a finding for each such output.

    An output that is only joined becomes one output for each part. One that is computed from its parts, as decoded
    boxes are, is cut before that arithmetic, which becomes the host program; so is one whose last operators have no
    int8 form, or make numbers of classes. The interface keeps how the source's output is made up either way. With
    ``outputs = "keep"`` nothing changes.
    """
    graph = model.main
    work = _Work(model, natural_ranges(graph, statistics, recipe), recipe)
    before = len(graph)
    conflicts = find_conflicts(graph, work.ranges, statistics, recipe.split_levels)
    work.findings += constant_findings(graph, work.ranges)
    tails = find_tails(graph)
    normalizes = recipe.outputs == "normalize" and work.may_host and not any(map(must_leave, tails))
    for tail in tails:
        _look_at(work, tail, normalizes)
    if work.tails or work.factors:
        interface = model.interface or identity_interface(model)
        host = give_out(model, work.tails) if work.tails else multiplying(work.factors, len(graph.outputs))
        model.interface = msgspec.structs.replace(interface, host=host)
    graph.remove_dead()
    if work.parted:
        ledger.add(LedgerEntry(name=PASS, summary="outputs of mixed range taken apart, a scale each",
                               changes=work.parted, nodes_before=before, nodes_after=len(graph)))
    if work.tails:
        moved = sum(len(t.nodes) for t in work.tails)
        ledger.add(LedgerEntry(name="host-tail", summary="last arithmetic moved behind the file's outputs, in float",
                               changes=moved, nodes_before=before, nodes_after=len(graph)))
    fine = frozenset(n for t in work.tails for n in exacting(t)) if recipe.host_bits == 16 else frozenset()
    return Split(work.findings, fine & set(graph), conflicts, work.solved, work.known)


def _look_at(work: _Work, tail: Tail, normalizes: bool) -> None:
    """Take the outputs of one tail apart if its parts collide, or move it to the host if int8 cannot hold it."""
    found = collisions(tail, work.ranges, work.recipe.split_levels)
    if not found and not must_leave(tail) and not _divides_by_nothing(work, tail):
        return
    if normalizes and found and _normalize(work, tail):
        work.solved |= {str(n.origin) if n.origin.sources else n.name: "parts scaled to -1..1" for n in tail.nodes}
        work.findings.append(_finding(tail, found, work.ranges, "its parts were scaled to -1..1, and are multiplied "
                                      "back when Vitrify runs the file"))
        return
    hosted = work.may_host and tail.is_movable and (not found or (tail.computes and tail.is_light))
    parts = 0
    if not hosted and found and work.recipe.outputs != "keep":
        parts = sum(_part(work, p, t) for p, t in enumerate(work.model.main.outputs) if t in tail.outputs)
        hosted = not parts and work.may_host and tail.is_movable
        work.parted += parts > 0
    if hosted or parts:
        how = "computed behind the file" if hosted else "separate outputs"
        work.solved |= {str(n.origin) if n.origin.sources else n.name: how for n in tail.nodes}
    if hosted:
        work.tails.append(tail)
    done = ""
    if hosted:
        done = (f"the file gives out {_names(tail.sources)}; {counted(len(tail.nodes), 'operator')} after that "
                f"{'is' if len(tail.nodes) == 1 else 'are'} computed in float when Vitrify runs the file")
    elif parts:
        done = f"it was taken apart into {parts} outputs with a scale each, joined when Vitrify runs the file"
    if found:
        work.findings.append(_finding(tail, found, work.ranges, done))
    elif hosted:
        work.findings.append(_hosted(tail, done))


def _normalize(work: _Work, tail: Tail) -> bool:
    """Scale the parts of the tail's outputs; False when one is not joined."""
    for position, output in enumerate(work.model.main.outputs):
        if output not in tail.outputs:
            continue
        made = normalize(work.model.main, output, work.ranges)
        if made is None:
            return False
        work.factors[position] = made[0]
        work.known |= made[1]
    return True


def _divides_by_nothing(work: _Work, tail: Tail) -> bool:
    """True when the kernel of DIV would meet a divisor of 0."""
    return any(isinstance(n.op, Div) and any(f.severity is Severity.ERROR for f in divisor_of(n, work.ranges))
               for n in tail.nodes)


def _names(tensors: Sequence[Tensor]) -> str:
    shown = ", ".join(f"'{t.name}'" for t in tensors[:SHOWN])
    return shown + (f" and {len(tensors) - SHOWN} more" if len(tensors) > SHOWN else "")


def _replace_output(model: Model, position: int, tensors: Sequence[Tensor]) -> None:
    """Give out several tensors where there was one: the first in its place, the others at the end."""
    if model.interface is None:
        model.interface = identity_interface(model)
    outputs = list(model.main.outputs)
    free = len(outputs)
    outputs[position] = tensors[0]
    model.main.set_outputs([*outputs, *tensors[1:]])
    for signature in model.signatures:
        for name in [n for n, p in signature.outputs.items() if signature.graph == 0 and p == position]:
            del signature.outputs[name]
            signature.outputs |= {f"{name}_{i}": position if i == 0 else free + i - 1 for i in range(len(tensors))}


def _part(work: _Work, position: int, output: Tensor) -> int:
    """Turn a joined output into parts; returns how many, 0 when its layout does not allow it."""
    join = find_join(output)
    model, graph = work.model, work.model.main
    if join is None or not all(m in work.ranges for m in join.members):
        return 0
    ranges = [work.ranges[m] for m in join.members]
    parts = parts_of(ranges)
    if fewest_levels(ranges) >= work.recipe.split_levels or len(parts) < 2:
        return 0
    interface = model.interface or identity_interface(model)
    sizes = [sum(m.shape[join.axis] for m in join.members[p]) for p in parts]
    bindings = [_rebind(b, position, join, sizes, len(graph.outputs)) for b in interface.outputs]
    if any(b is None for b in bindings):
        return 0
    _replace_output(model, position, [_part_output(graph, join, join.members[part]) for part in parts])
    model.interface = Interface(inputs=interface.inputs, outputs=tuple(b for b in bindings if b is not None),
                                source_format=interface.source_format, host=interface.host)
    return len(parts)


def _rebind(binding: OutputBinding, position: int, join: Join, sizes: Sequence[int], free: int) -> OutputBinding | None:
    """Bind a source output to the parts of the file's output; None when its layout does not allow it."""
    if all(p.position != position for p in binding.parts):
        return binding
    if len(binding.parts) != 1:
        return None
    old = binding.parts[0]
    shape = join.output.shape
    axis = join.output_axis
    if old.perm:
        shape, axis = tuple(shape[p] for p in old.perm), old.perm.index(axis)
    final: int | None = axis
    if old.shape:
        final = reshaped_axis(shape, old.shape, axis)
    if final is None:
        return None
    positions = [position, *range(free, free + len(sizes) - 1)]
    parts = [Part(position=p, perm=old.perm, scale=old.scale, shape=_with(old.shape, final, n) if old.shape else ())
             for p, n in zip(positions, sizes, strict=True)]
    return msgspec.structs.replace(binding, parts=tuple(parts), axis=final)


def _with(shape: Sequence[int], axis: int, extent: int) -> tuple[int, ...]:
    return (*shape[:axis], extent, *shape[axis + 1:])


def _part_output(graph: Graph, join: Join, members: Sequence[Tensor]) -> Tensor:
    """Make the output of one part: its members joined, then moved as the whole output was."""
    last = join.chain[-1] if join.chain else join.node
    tensor = members[0]
    if len(members) > 1:
        origin = join.node.origin.by(PASS)
        last = graph.add(Concatenation(axis=join.axis), list(members), origin=origin, after=last,
                         name=f"{join.node.name}_of_{members[0].name}")
        tensor = last.output
    axis = join.axis
    for step in join.chain:
        last = _repeat(graph, step, tensor, axis, last)
        tensor, axis = last.output, axis_after(step, axis) or 0
    return tensor


def _repeat(graph: Graph, step: Node, tensor: Tensor, axis: int, after: Node) -> Node:
    origin, name = step.origin.by(PASS), f"{step.name}_of_{tensor.name}"
    if isinstance(step.op, Transpose):
        return graph.add(step.op, [tensor, step.input(1)], origin=origin, name=name, after=after)
    target = _with(step.output.shape, axis_after(step, axis) or 0, tensor.shape[axis])
    wanted = Tensor(f"{name}_shape", DType.INT32, (len(target),), data=np.array(target, np.int32))
    return graph.add(Reshape(new_shape=target), [tensor, wanted], origin=origin, name=name, after=after)


def _finding(tail: Tail, found: Sequence[tuple[Node, Tensor, float]], ranges: Mapping[Tensor, Range],
             done: str) -> Finding:
    node, tensor, left = min(found, key=lambda item: item[2])
    listed = ", ".join(f"'{t.name}' [{ranges[t].low:.4g}, {ranges[t].high:.4g}]" for t in node.inputs
                       if t is not None and t in ranges)
    return Finding(code="range.collision", severity=Severity.INFO if done else Severity.WARNING,
                   headline=f"output {_outputs(tail)} mixes very different ranges: '{tensor.name}' would be left with "
                            f"{max(1, round(left))} of {LEVELS} levels",
                   where=f"{node.op.kind} '{node.name}' of {listed}",
                   why=f"an int8 tensor has one scale; {done or 'it was left as it is'}",
                   help="" if done else "use outputs = \"split\" in the recipe")


def _hosted(tail: Tail, done: str) -> Finding:
    """Say why a tail went to the host that mixes no ranges."""
    kinds = ", ".join(dict.fromkeys(n.op.kind for n in tail.unquantizable))
    numbers = ", ".join(f"'{n.name}'" for n in tail.discrete[:SHOWN])
    why = f"{kinds} has no int8 kernel" if kinds else \
        f"{numbers} gives class numbers or indices, which a scale would blur" if numbers else \
        "the int8 kernel of DIV ends the process when a divisor rounds to 0"
    return Finding(code="quant.host", severity=Severity.INFO, why=f"{why}; {done}",
                   headline=f"output {_outputs(tail)} is computed behind the file",
                   where=f"node '{tail.nodes[0].name}'")


def _outputs(tail: Tail) -> str:
    return ", ".join(f"'{t.origin if t.origin.sources else t.name}'" for t in tail.outputs)
