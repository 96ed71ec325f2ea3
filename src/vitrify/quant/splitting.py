"""Outputs that join parts of very different range are taken apart, so that each part gets a scale of its own.

One scale over boxes of 0..640 beside scores of 0..1 has a step of 2.5, and every score is rounded to 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
import numpy as np

from vitrify.core.findings import Finding, Severity
from vitrify.data.binding import identity_interface
from vitrify.ir import DType, Graph, Interface, Ledger, LedgerEntry, Model, Node, OutputBinding, Part, Tensor
from vitrify.ops import Concatenation, ExpandDims, Reshape, Squeeze, Transpose
from vitrify.quant.planning import natural_ranges
from vitrify.quant.recipe import Recipe
from vitrify.quant.rules import is_real
from vitrify.quant.scales import LEVELS, levels_left
from vitrify.quant.statistics import Range, Statistics

SAME_PART_LEVELS = 64
"""Neighbours stay in one part when each keeps at least this many levels there."""


@dataclass(frozen=True)
class Join:
    """An output that is a concatenation, possibly reshaped or transposed after it."""

    output: Tensor
    node: Node
    members: tuple[Tensor, ...]
    axis: int
    chain: tuple[Node, ...]        # what moves the values from the concatenation to the output, in order
    output_axis: int               # where the axis of the concatenation ends up


def split_outputs(model: Model, statistics: Statistics, recipe: Recipe, ledger: Ledger) -> list[Finding]:
    """Take the outputs apart whose parts would lose their levels; returns a finding for each such output.

    The interface keeps how the parts make up the source's output. With ``outputs = "keep"`` nothing changes.
    """
    graph = model.main
    ranges = natural_ranges(graph, statistics, recipe)
    findings: list[Finding] = []
    before, count = len(graph), 0
    for position, output in enumerate(graph.outputs):
        join = find_join(output)
        if join is None or not all(m in ranges for m in join.members):
            continue
        parts = parts_of([ranges[m] for m in join.members])
        lost = _fewest_levels([ranges[m] for m in join.members])
        if lost >= recipe.split_levels or len(parts) < 2:
            continue
        done = recipe.outputs == "split" and _take_apart(model, position, join, parts)
        count += done
        findings.append(_finding(join, ranges, lost, len(parts) if done else 0))
    graph.remove_dead()
    if count:
        ledger.add(LedgerEntry(name="split-outputs", summary="outputs of mixed range taken apart, a scale each",
                               changes=count, nodes_before=before, nodes_after=len(graph)))
    return findings


def find_join(output: Tensor) -> Join | None:
    """Follow an output back through nodes that only move values to a concatenation; None when there is none."""
    chain: list[Node] = []
    tensor = output
    while tensor.producer is not None and isinstance(tensor.producer.op, (Transpose, Reshape, Squeeze, ExpandDims)):
        chain.insert(0, tensor.producer)
        tensor = tensor.producer.input(0)
    node = tensor.producer
    if node is None or not isinstance(node.op, Concatenation):
        return None
    members = [node.input(i) for i in range(len(node.inputs))]
    if any(m.is_constant or not is_real(m) or m.producer is None for m in members):
        return None
    axis = node.op.axis % len(tensor.shape)
    members = _flattened(members, axis, len(tensor.shape))
    end: int | None = axis
    for step in chain:
        end = _axis_after(step, end) if end is not None else None
    return Join(output, node, tuple(members), axis, tuple(chain), end) if end is not None else None


def _flattened(members: Sequence[Tensor], axis: int, rank: int) -> list[Tensor]:
    """Replace members that are concatenations along the same axis by what they join."""
    found: list[Tensor] = []
    for member in members:
        inner = member.producer
        if inner is not None and isinstance(inner.op, Concatenation) and inner.op.axis % rank == axis \
                and all(t is not None and not t.is_constant and t.producer is not None for t in inner.inputs):
            found += _flattened([inner.input(i) for i in range(len(inner.inputs))], axis, rank)
        else:
            found.append(member)
    return found


def _axis_after(node: Node, axis: int) -> int | None:
    """Where ``axis`` is after a node of the chain; None when it does not stay an axis of its own."""
    source = node.input(0)
    if isinstance(node.op, Transpose):
        perm = node.input(1).data
        return None if perm is None else [int(p) for p in perm].index(axis)
    return reshaped_axis(source.shape, node.output.shape, axis)


def reshaped_axis(source: Sequence[int], target: Sequence[int], axis: int) -> int | None:
    """The axis of ``target`` that holds exactly ``axis`` of ``source``; None when the reshape cuts or merges it."""
    before = int(np.prod(source[:axis], dtype=np.int64))
    for position, extent in enumerate(target):
        if extent == source[axis] and int(np.prod(target[:position], dtype=np.int64)) == before:
            return position
    return None


def parts_of(ranges: Sequence[Range]) -> list[slice]:
    """Group neighbours of similar range: slices over the members, each of which can share one scale."""
    parts: list[slice] = []
    start = 0
    for end in range(1, len(ranges) + 1):
        if end == len(ranges) or _fewest_levels(ranges[start:end + 1]) < SAME_PART_LEVELS:
            parts.append(slice(start, end))
            start = end
    return parts


def _fewest_levels(ranges: Sequence[Range]) -> float:
    whole = _whole(ranges)
    return min(levels_left(r.with_zero(), whole) for r in ranges)


def _whole(ranges: Sequence[Range]) -> Range:
    whole = ranges[0]
    for other in ranges[1:]:
        whole = whole.join(other)
    return whole


def _take_apart(model: Model, position: int, join: Join, parts: Sequence[slice]) -> bool:
    graph = model.main
    interface = model.interface or identity_interface(model)
    sizes = [sum(m.shape[join.axis] for m in join.members[p]) for p in parts]
    bindings = [_rebind(b, position, join, sizes, len(graph.outputs)) for b in interface.outputs]
    if any(b is None for b in bindings):
        return False
    made = [_part_output(graph, join, list(join.members[part])) for part in parts]
    outputs = list(graph.outputs)
    outputs[position] = made[0]
    graph.set_outputs([*outputs, *made[1:]])
    _update_signatures(model, position, len(outputs), len(made))
    model.interface = Interface(inputs=interface.inputs, outputs=tuple(b for b in bindings if b is not None),
                                source_format=interface.source_format)
    return True


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
        origin = join.node.origin.by("split-outputs")
        tensor = graph.add(Concatenation(axis=join.axis), list(members), origin=origin, after=last,
                           name=f"{join.node.name}_of_{members[0].name}").output
        last = tensor.producer or last
    axis = join.axis
    for step in join.chain:
        last = _repeat(graph, step, tensor, axis, last)
        tensor, axis = last.output, _axis_after(step, axis) or 0
    return tensor


def _repeat(graph: Graph, step: Node, tensor: Tensor, axis: int, after: Node) -> Node:
    origin, name = step.origin.by("split-outputs"), f"{step.name}_of_{tensor.name}"
    if isinstance(step.op, Transpose):
        return graph.add(step.op, [tensor, step.input(1)], origin=origin, name=name, after=after)
    target = _with(step.output.shape, _axis_after(step, axis) or 0, tensor.shape[axis])
    wanted = Tensor(f"{name}_shape", DType.INT32, (len(target),), data=np.array(target, np.int32))
    return graph.add(Reshape(new_shape=target), [tensor, wanted], origin=origin, name=name, after=after)


def _update_signatures(model: Model, position: int, free: int, count: int) -> None:
    for signature in model.signatures:
        if signature.graph != 0:
            continue
        for name in [n for n, p in signature.outputs.items() if p == position]:
            del signature.outputs[name]
            signature.outputs |= {f"{name}_{i}": position if i == 0 else free + i - 1 for i in range(count)}


def _finding(join: Join, ranges: dict[Tensor, Range], lost: float, parts: int) -> Finding:
    listed = ", ".join(f"'{m.name}' {_interval(ranges[m])}" for m in join.members)
    poorest = min(join.members, key=lambda m: ranges[m].with_zero().width)
    names = str(join.output.origin) if join.output.origin.sources else join.output.name
    done = f"it was taken apart into {parts} outputs with a scale each, joined again when Vitrify runs the file"
    kept = "it was left as it is"
    return Finding(code="range.collision", severity=Severity.INFO if parts else Severity.WARNING,
                   headline=f"output '{names}' joins parts of very different range: '{poorest.name}' would be left "
                            f"with {max(1, round(lost))} of {LEVELS} levels",
                   where=f"tensor '{join.output.name}' = {join.node.op.kind} of {listed}",
                   why=f"an int8 tensor has one scale; {done if parts else kept}",
                   help="" if parts else "use outputs = \"split\" in the recipe")


def _interval(found: Range) -> str:
    return f"[{found.low:.4g}, {found.high:.4g}]"
