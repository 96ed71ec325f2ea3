"""Float operators between integer ones: each stretch of them cuts the NPU's work in two."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from vitrify.core.words import counted
from vitrify.ir import Node
from vitrify.ops import Custom
from vitrify.pipeline.checking.diagnosing.diagnosis import Case, Diagnosis, diagnosis
from vitrify.pipeline.checking.diagnosing.whole_graph import FLOAT_RULES
from vitrify.tflite import float_operators


@diagnosis("float.island", says="no float operator stands between integer ones", rules=(*FLOAT_RULES,
           "unsupported-operator"), why="values are turned to float before them and back behind them, all on the CPU, "
           "and the NPU is called once more for each", help="vitrify quantize MODEL --anew --data FOLDER -o OUT.tflite")
def islands(case: Case) -> Iterator[Diagnosis]:
    """Stretches of float operators in a file that is quantized for the rest."""
    if case.kind != "mixed":
        return
    nodes = [node for node in float_operators(case.graph) if not isinstance(node.op, Custom)]
    groups = stretches(nodes)
    if not groups:
        return
    first = groups[0]
    entering, leaving = _ends(first)
    kinds = Counter(node.op.kind for node in nodes)
    refused = any(finding.code.startswith("quant.") for finding in case.refusals)
    words = ", ".join(f"{count} {kind}" for kind, count in kinds.most_common(4))
    between = f"'{entering}' and '{leaving}'" if entering and leaving else f"'{entering or leaving}'"
    yield Diagnosis(
        headline=f"{counted(len(nodes), 'operator')} left in float ({words}), in {len(groups)} "
                 f"stretch{'es' * (len(groups) > 1)} between integer ones; the first between {between}",
        nodes=[*nodes, *_bridges(case, nodes)], where=f"node '{first[0].name}'"
        f"{f' and {len(nodes) - 1} more' if len(nodes) > 1 else ''}", command="" if refused else case.quantize)


def stretches(nodes: list[Node]) -> list[list[Node]]:
    """Group nodes that hand float values to each other, in the graph's order."""
    home: dict[Node, list[Node]] = {}
    members = set(nodes)
    groups: list[list[Node]] = []
    for node in nodes:
        makers = [t.producer for t in node.inputs if t is not None]
        before = [home[maker] for maker in makers if maker in members and maker in home]
        group = before[0] if before else []
        for other in before[1:]:
            if other is not group:
                group += other
                for moved in other:
                    home[moved] = group
                groups = [one for one in groups if one is not other]
        if not before:
            groups.append(group)
        group.append(node)
        home[node] = group
    return groups


def _ends(group: list[Node]) -> tuple[str, str]:
    """The values on both sides of a stretch, as they are before they become float and after."""
    inside = {id(t) for node in group for t in node.outputs}
    entering = next((t for node in group for t in node.inputs if t is not None and not t.is_constant
                     and id(t) not in inside), None)
    leaving = next((t for node in group for t in node.outputs if t.is_output or any(u not in group for u in t.users)),
                   None)
    if entering is not None and entering.producer is not None and entering.producer.op.kind == "DEQUANTIZE":
        entering = entering.producer.input(0)
    if leaving is not None and leaving.users and leaving.users[0].op.kind == "QUANTIZE":
        leaving = leaving.users[0].output
    return entering.name if entering else "", leaving.name if leaving else ""


def _bridges(case: Case, nodes: list[Node]) -> list[Node]:
    """The nodes that change between float and integers beside the stretches."""
    members = set(nodes)
    return [node for node in case.graph if (node.op.kind == "DEQUANTIZE" and any(u in members for t in node.outputs
            for u in t.users)) or (node.op.kind == "QUANTIZE" and node.inputs and node.input(0).producer in members)]
