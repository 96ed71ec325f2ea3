"""Faults of the compiler: what it computes wrongly without a word. The rewrites that avoid them carry their codes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from vitrify import ops
from vitrify.backends.vela.placing import Placed
from vitrify.core.findings import Finding, Severity
from vitrify.ir import Node
from vitrify.passes.targets.kept_axes import drops_axis
from vitrify.passes.targets.own_copies import joined_part, padding_read_by, slice_read_by

_SEEN = "a fault seen in Vela 5.2 (this is {version}): the command stream was run on the host, and its values " \
        "differ from the reference kernels'"
_AROUND = "`vitrify compile` and `vitrify build` go round it; or rewrite the model: vitrify check MODEL --fix"
_OF_MANY = ("SPLIT", "SPLIT_V")
"""The compiler folds some of their outputs and copies others, and tells of the operator as a whole."""
_SHOWN = 5
_SLICING = ("BATCH_MATMUL", "SUM", "REDUCE_MAX", "REDUCE_MIN")


def known_faults(placed: Sequence[Placed], version: str) -> Iterator[Finding]:
    """Warn of nodes that this compiler is known to compute wrongly."""
    for one in placed:
        axes = one.node.optional(1)
        if one.node.op.kind == "SUM" and one.place == "npu" and axes is not None and axes.size > 1:
            yield Finding(code="ethos-u.sum-wrong", severity=Severity.WARNING,
                          headline=f"SUM '{one.node.name}' over {axes.size} axes gives a wrong result on the NPU: "
                          "only one axis is reduced", where=f"node '{one.node.name}'",
                          why=_SEEN.format(version=version), help=_AROUND)
        elif one.place == "npu" and drops_axis(one.node):
            yield Finding(code="ethos-u.dropped-axis", severity=Severity.WARNING, where=f"node '{one.node.name}'",
                          headline=f"{one.node.op.kind} '{one.node.name}' gives a wrong result on the NPU: it drops an "
                          "axis behind others, and reduces windows that overlap", why=_SEEN.format(version=version),
                          help=_AROUND)
        elif one.place == "npu" and (joined := joined_part(one.node)) is not None:
            yield Finding(code="ethos-u.placed-part", severity=Severity.WARNING, where=f"node '{one.node.name}'",
                          headline=f"{one.node.op.kind} '{one.node.name}' gives a wrong result on the NPU: it writes "
                          f"into the tensor of {joined.op.kind} '{joined.name}', with that tensor's extents",
                          why=_SEEN.format(version=version), help=_AROUND)
        elif one.place == "npu" and (wrong := _left_alone(one.node)):
            yield Finding(code="ethos-u.wrong-form", severity=Severity.WARNING, where=f"node '{one.node.name}'",
                          headline=f"{one.node.op.kind} '{one.node.name}' gives a wrong result on the NPU: {wrong}",
                          why=_SEEN.format(version=version),
                          help=f"keep it on the CPU: vitrify compile MODEL --ignore-ops {one.node.op.kind}")
    yield from _folded_slices(placed, version)
    yield from _wide_paddings(placed, version)


def _left_alone(node: Node) -> str:
    """Say what the compiler leaves out of an operator, in forms that no rewrite goes round."""
    op, x = node.op, node.input(0)
    if isinstance(op, ops.MirrorPad):
        amounts = node.input(1).data
        return "what is mirrored in depth is not written" if amounts is not None and amounts[-1].any() else ""
    if isinstance(op, ops.Neg) and x.quantization is not None and node.output.quantization is not None:
        return "" if x.quantization.scale[0] == node.output.quantization.scale[0] else "it takes the two scales for one"
    return "the cell is not bounded" if isinstance(op, ops.UnidirectionalSequenceLSTM) and op.cell_clip else ""


def _folded_slices(placed: Sequence[Placed], version: str) -> Iterator[Finding]:
    """A slice that became no operation of its own, before an operator that then reads the whole tensor."""
    places = {one.node: one.place for one in placed}
    wrong: dict[str, list[tuple[Node, Node]]] = {}
    for one in placed:
        if one.node.op.kind not in _SLICING or one.place != "npu":
            continue
        found = slice_read_by(one.node)
        if found is not None and (places.get(found) == "folded" or found.op.kind in _OF_MANY):
            wrong.setdefault(one.node.op.kind, []).append((one.node, found))
    for kind, pairs in wrong.items():
        node, part = pairs[0]
        many = f"{len(pairs)} {kind} nodes give wrong results on the NPU: each reads the whole of what a slice " \
               "takes a part of"
        single = f"{kind} '{node.name}' gives a wrong result on the NPU: it reads the whole of what {part.op.kind} " \
              f"'{part.name}' takes a part of"
        yield Finding(code="ethos-u.folded-slice", severity=Severity.WARNING,
                      headline=single if len(pairs) == 1 else many,
                      where=_where([one for one, _ in pairs]), why=_SEEN.format(version=version), help=_AROUND)


def _where(nodes: Sequence[Node]) -> str:
    names = ", ".join(f"'{node.name}'" for node in nodes[:_SHOWN])
    more = f" and {len(nodes) - _SHOWN} more" if len(nodes) > _SHOWN else ""
    return f"node{'s' * (len(nodes) > 1)} {names}{more}"


def _wide_paddings(placed: Sequence[Placed], version: str) -> Iterator[Finding]:
    """Padding that a convolution took over, and that its registers do not hold."""
    places = {one.node: one.place for one in placed}
    for one in placed:
        if one.node.op.kind not in ("CONV_2D", "DEPTHWISE_CONV_2D") or one.place != "npu":
            continue
        found = padding_read_by(one.node)
        if found is not None and places.get(found) == "folded":
            left, right = found.input(1).data[2].tolist()      # type: ignore[index]
            yield Finding(code="ethos-u.wide-padding", severity=Severity.WARNING, where=f"node '{one.node.name}'",
                          headline=f"{one.node.op.kind} '{one.node.name}' gives a wrong result on the NPU: {left} and "
                          f"{right} columns of padding are more than the 127 and 255 that its registers hold",
                          why=_SEEN.format(version=version), help=_AROUND)
