"""Verdicts as findings: one for each reason and kind of operator, not one for each of hundreds of nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from vitrify.core.findings import Finding, Severity
from vitrify.targets.placement import Placement, Reason, Verdict

_NAMES_SHOWN = 5
_WHOLE_MODEL = ("float-tensor", "dynamic-shape")      # one cause, whatever operators it strikes


def cpu_nodes(placement: Placement) -> list[Finding]:
    """One finding for each reason and kind of operator on the CPU: a warning where it cuts the NPU's work in two."""
    inner = _inner_nodes(placement)
    groups: dict[tuple[str, ...], list[tuple[Verdict, Reason]]] = {}
    for verdict in placement.verdicts:
        for key, rule in {_group(verdict, rule): rule for rule in reversed(verdict.rules)}.items():
            groups.setdefault(key, []).append((verdict, rule))
    return [_cpu_finding(members, any(verdict.node in inner for verdict, _ in members), placement)
            for members in groups.values()]


def _group(verdict: Verdict, rule: Reason) -> tuple[str, ...]:
    if rule.code.rpartition(".")[2] in _WHOLE_MODEL:
        return (rule.code,)
    named = "'" in rule.headline      # it names a tensor, so no two are the same
    return rule.code, verdict.operator, "" if named else rule.headline


def _cpu_finding(members: Sequence[tuple[Verdict, Reason]], cuts: bool, placement: Placement) -> Finding:
    verdicts = [verdict for verdict, _ in members]
    rule = members[0][1]
    names = [f"'{verdict.node}'" for verdict in verdicts[:_NAMES_SHOWN]]
    more = f" and {len(verdicts) - _NAMES_SHOWN} more" if len(verdicts) > _NAMES_SHOWN else ""
    first = f" (of {names[0]})" if len(verdicts) > 1 and "'" in rule.headline else ""
    return Finding(code=rule.code, severity=Severity.WARNING if cuts else Severity.INFO,
                   headline=f"{_subject(verdicts)} on the CPU: {rule.headline}{first}",
                   where=f"node{'s' * (len(verdicts) > 1)} {', '.join(names)}{more}", help=rule.help,
                   why="; ".join(filter(None, (rule.why, _cost(verdicts, cuts, placement)))))


def _cost(verdicts: Sequence[Verdict], cuts: bool, placement: Placement) -> str:
    """What it costs that nodes stay on the CPU, where they are alone in its parts: their time, and what they cut."""
    names = {verdict.node for verdict in verdicts}
    parts = [part for part in placement.partitions if part.placement == "cpu" and names & set(part.nodes)]
    if not parts or any(set(part.nodes) - names for part in parts):
        return ""
    time = sum(part.time_ms for part in parts)
    told = [f"about {time:.2g} ms there"] if time else []
    told += [f"they cut the graph: {len(placement.partitions)} parts"] if cuts else []
    return ", ".join(told)


def _subject(verdicts: Sequence[Verdict]) -> str:
    if len(verdicts) == 1:
        return f"{verdicts[0].operator} '{verdicts[0].node}' stays"
    kinds = Counter(verdict.operator for verdict in verdicts)
    if len(kinds) == 1:
        return f"{len(verdicts)} {verdicts[0].operator} nodes stay"
    return f"{len(verdicts)} nodes ({', '.join(f'{count} {kind}' for kind, count in kinds.most_common())}) stay"


def _inner_nodes(placement: Placement) -> set[str]:
    """The nodes of CPU partitions between two NPU partitions."""
    on_npu = [part.index for part in placement.partitions if part.placement == "npu"]
    return {name for part in placement.partitions if part.placement == "cpu" and on_npu
            and on_npu[0] < part.index < on_npu[-1] for name in part.nodes}
