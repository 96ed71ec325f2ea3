"""What is known to help, in the words of rules and fixes; nothing is advised that neither a rule nor a probe says."""

from __future__ import annotations

from collections.abc import Sequence

from vitrify.core.findings import Finding
from vitrify.results.profiling import EstimatedRow, MeasuredRow
from vitrify.results.rows import VerdictRow
from vitrify.targets.base import Target

_UNSAID = "no rule says why it is left to the CPU"


def by_rules(node: str, verdicts: Sequence[VerdictRow], target: Target) -> tuple[str, str, str, str]:
    """Return why a node is on the CPU, what helps, the rule's code, and its source."""
    verdict = next((one for one in verdicts if one.node == node), None)
    if verdict is None or not verdict.rules:
        return _UNSAID, "", "", ""
    rule = verdict.rules[0]
    helps = [rule.help] if rule.help else []
    if rule.nearest:
        helps.append(f"the nearest form that the NPU takes: {rule.nearest}")
    words = fix_words(rule.fix, target) if rule.fix else ""
    if words:
        helps.append(words)
    return f"on the CPU: {rule.headline}", "; ".join(helps), rule.code, rule.source


def fix_words(name: str, target: Target | None) -> str:
    """Say which rewrite of the catalogue helps on ``target``, and how to have it; empty where there is none."""
    from vitrify.passes.targets.catalogue import catalogue

    if target is None:
        return ""
    found = next((one for one in catalogue() if one.name == name), None)
    if found is None or (found.families and target.family not in found.families):
        return ""
    return f"`vitrify check MODEL --target {target.name} --fix` tries '{found.name}': {found.says}"


_TOLD = {"ethos-u.costly-matmuls": ("BATCH_MATMUL",), "ethos-u.costly-silu": ("LOGISTIC", "MUL"),
         "ethos-u.costly-transposes": ("TRANSPOSE",), "ethos-u.costly-softmax": ("SOFTMAX",)}
"""Findings on a compiled model that hold for every node of some kinds; others hold for the nodes that they name."""

_COSTLY = ("ethos-u.costly-", "ethos-u.few-channels", "ethos-u.unrolled-patches")


def node_words(row: MeasuredRow | EstimatedRow, findings: Sequence[Finding], target: Target | None) -> tuple[str, str]:
    """Return what is verified to help a node on the NPU of ``target``, and where that is from.

    That is what was found in this very model to cost more than it has to, and what is known of the core.
    """
    if target is None or row.placement != "npu":
        return "", ""
    for one in findings:
        if one.code.startswith(_COSTLY) and (row.operator in _TOLD.get(one.code, ()) or f"'{row.node}'" in one.where):
            return f"{one.why}: {one.help}", one.code
    if row.operator == "BATCH_MATMUL" and _by_columns(target):
        return ("on this core a product of two computed values is a multiplication and a sum for each column of the "
                "second, while one with constant weights is a FULLY_CONNECTED; fewer columns cost less",
                "the command streams of Vela 5.2.0")
    return "", ""


def _by_columns(target: Target) -> bool:
    from vitrify.targets import ethos_u

    return target.family == "ethos_u" and bool(ethos_u.variant(target.core).limits.get("matmuls_by_columns"))
