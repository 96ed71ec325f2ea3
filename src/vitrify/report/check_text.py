"""Where nodes run, as text for a person with hundreds of nodes: diagnoses first, nodes by reason, the command last."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from vitrify.core.findings import Finding
from vitrify.core.words import bytes_text, counted, percent
from vitrify.results import CheckResult, Coverage, DiagnosisRow, Estimate, PartitionRow, RuleRow, VerdictRow

REASONS_SHOWN = 12
PARTITIONS_SHOWN = 8
NAMES_SHOWN = 3
KINDS_SHOWN = 4
CONTRACT_SHOWN = 6
_FEW_MACS = 0.0005


class Group(NamedTuple):
    """Nodes that stay on the CPU for one reason."""

    rule: RuleRow
    verdicts: list[VerdictRow]


def show_check(result: CheckResult, out: Console, show_finding: Callable[[Finding, Console], None],
               show_estimate: Callable[[Estimate, Console], None]) -> None:
    """Print what a check found; ``show_finding`` prints what is neither a diagnosis nor a reason of a node."""
    _shares(result, out)
    for number, row in enumerate(result.diagnoses, 1):
        _diagnosis(number, row, out)
    _fixes(result, out)
    groups = by_reason(result.verdicts)
    _reasons(groups, result.verdicts, out)
    _partitions(result.partitions, out)
    if result.estimate is not None:
        show_estimate(result.estimate, out)
    _contract(result, out)
    told = {row.code for row in result.diagnoses} | {group.rule.code for group in groups}
    for finding in result.findings:
        if finding.code not in told and finding.help not in {row.command for row in result.diagnoses if row.command}:
            show_finding(finding, out)
    commands = dict.fromkeys(row.command for row in result.diagnoses if row.command)
    if commands:
        out.print("to mend it:" + (" (FOLDER: pictures or arrays like those of real use)"
                                   if any("--data FOLDER" in command for command in commands) else ""))
        for command in commands:
            out.print(f"  [bold]{escape(command)}[/]")


def _contract(result: CheckResult, out: Console) -> None:
    """How real values become what the file takes, and back; of a file that is there, not of one made for the check."""
    if result.form not in ("as it is", "fixed"):
        return
    rows = [row for row in result.contract if row.python]
    for row in rows[:CONTRACT_SHOWN]:
        out.print(f"{row.role} [bold]{escape(row.tensor)}[/]{f': {escape(row.cast)}' if row.cast else ''}")
        for label, line in (("Python", row.python), ("C", row.c)):
            out.print(f"   [dim]{label:>6}:[/] {escape(line)}")
    if any(row.cast for row in rows):
        out.print("   [dim]to take and give the other 8-bit type: --fix --approximate unsigned-ends, or signed-ends[/]")
    if len(rows) > CONTRACT_SHOWN:
        out.print(f"... and {len(rows) - CONTRACT_SHOWN} more inputs and outputs; --json lists all")


def _shares(result: CheckResult, out: Console) -> None:
    name = f"[bold]{escape(result.target)}[/]"
    if result.as_it_is is not None:
        out.print(f"{name}, the file as it is ({escape(result.kind)}): {_share_text(result.as_it_is)}")
        name += f", {escape(result.form)}"
    if result.form == "compiled":
        on_npu = sum(row.placement == "npu" for row in result.verdicts)
        out.print(f"{name}: compiled already; {counted(on_npu, 'NPU graph')} among "
                  f"{counted(len(result.verdicts), 'operator')}")
        return
    out.print(f"{name}: {_share_text(result.coverage)}")
    unsure = _unsure_text(result.coverage)
    if unsure:
        out.print(f"[yellow]{unsure}[/]")
    out.print(f"[dim]judged by {escape(', '.join(result.judges))}[/]")


def _unsure_text(shares: Coverage) -> str:
    """How much of the verdicts nobody tells in public; empty where all is documented or seen."""
    if not shares.unsure_nodes and not shares.unsure_macs:
        return ""
    parts = [f"{percent(shares.unsure_nodes)} of the nodes", f"{percent(shares.unsure_macs)} of the MACs"]
    if shares.unsure_time is not None:
        parts.append(f"{percent(shares.unsure_time)} of the estimated time")
    return f"inferred, or unknown and counted as the CPU's: {', '.join(parts)}"


def _share_text(shares: Coverage) -> str:
    parts = [f"{percent(shares.nodes)} of the nodes", f"{percent(shares.macs)} of the MACs"]
    if shares.time is not None:
        parts.append(f"{percent(shares.time)} of the estimated time")
    return f"on the NPU {', '.join(parts)}"


def _fixes(result: CheckResult, out: Console) -> None:
    """The ledger of the fixes, and where the file is."""
    fixes = result.fixes
    if fixes is None:
        return
    table = Table(box=None, pad_edge=False, header_style="dim")
    for column in ("fix", "places", "left the CPU", "won", "largest error", "exactness", ""):
        table.add_column(column, overflow="fold")
    for row in fixes.rows:
        table.add_row(*map(escape, (
            row.name, str(row.places), str(row.won), "" if row.won_ms is None else f"{row.won_ms:.3g} ms",
            "" if row.largest_error_lsb is None else f"{row.largest_error_lsb} LSB", row.exactness,
            "; ".join(row.undone) or row.says)))
    if fixes.rows:
        out.print(table)
    times = "" if fixes.ms_before is None or fixes.ms_after is None else \
        f", estimate {fixes.ms_before:.3g} -> {fixes.ms_after:.3g} ms"
    out.print(f"[bold green]wrote[/] {escape(result.output)}: on the CPU {fixes.cpu_before} -> {fixes.cpu_after} nodes"
              f"{times}; {escape(fixes.proof) or 'nothing was changed'}")


def _diagnosis(number: int, row: DiagnosisRow, out: Console) -> None:
    out.print(f"[yellow]{number}.[/] [bold]{escape(row.headline)}[/]")
    facts = [counted(row.nodes, "operator")] if row.nodes else []
    facts += [f"{percent(row.macs)} of the MACs"] if row.macs > _FEW_MACS else []
    facts += [f"about {row.time_ms:.3g} ms on the CPU"] if row.time_ms is not None else []
    for label, text in (("costs", ", ".join(facts)), ("why", row.why), ("code", row.code)):
        if text:
            out.print(f"   [dim]{label:>5}:[/] {escape(text)}")


def by_reason(verdicts: Sequence[VerdictRow]) -> list[Group]:
    """Group the nodes on the CPU by the rules that they break, the most nodes first; a node may break several."""
    groups: dict[str, Group] = {}
    for verdict in verdicts:
        if verdict.placement == "cpu":
            for code, rule in {rule.code: rule for rule in reversed(verdict.rules)}.items():
                groups.setdefault(code, Group(rule, [])).verdicts.append(verdict)
    return sorted(groups.values(), key=lambda group: -len(group.verdicts))


def _reasons(groups: Sequence[Group], verdicts: Sequence[VerdictRow], out: Console) -> None:
    left = [row for row in verdicts if row.placement == "cpu"]
    if not left:
        out.print("no node is left to the CPU")
        return
    out.print(f"on the CPU: {counted(len(left), 'node')}, by reason (`vitrify explain CODE` says more)")
    for group in groups[:REASONS_SHOWN]:
        rule, mark = group.rule, f"{len(group.verdicts):>6} x " if len(group.verdicts) > 1 else f"{'':>9}"
        out.print(f"{mark}{escape(_operators(group))}: {escape(rule.headline)} [dim]\\[{escape(rule.code)}][/]")
        out.print(f"         [dim]nodes:[/] {escape(_names(group))}")
        for label, text in (("allowed", rule.nearest), ("fix", rule.fix and f"{rule.fix} ({_option(rule.fix)})")):
            if text:
                out.print(f"         [dim]{label}:[/] {escape(text)}")
    unknown = sum(not row.rules for row in left)
    if unknown:
        out.print(f"         {counted(unknown, 'node')} without a reason")
    if len(groups) > REASONS_SHOWN:
        out.print(f"... and {len(groups) - REASONS_SHOWN} more reasons; --json lists all")


def _option(name: str) -> str:
    """How a fix is asked for: those that change values, or what the file takes and gives, by name only."""
    from vitrify.passes.targets import catalogue

    exact = any(one.name == name and one.by_default for one in catalogue())
    return "--fix" if exact else f"--fix --approximate {name}"


def _operators(group: Group) -> str:
    kinds = Counter(verdict.operator for verdict in group.verdicts)
    more = f" and {len(kinds) - KINDS_SHOWN} kinds more" if len(kinds) > KINDS_SHOWN else ""
    return ", ".join(kind if count == 1 else f"{count} {kind}" for kind, count in kinds.most_common(KINDS_SHOWN)) + more


def _names(group: Group) -> str:
    names = [verdict.node for verdict in group.verdicts[:NAMES_SHOWN]]
    more = len(group.verdicts) - NAMES_SHOWN
    return ", ".join(names) + (f" and {more} more" if more > 0 else "")


def _partitions(partitions: Sequence[PartitionRow], out: Console) -> None:
    if len(partitions) < 2:
        return
    on_npu = [part for part in partitions if part.placement == "npu"]
    on_cpu = [part for part in partitions if part.placement == "cpu"]
    crossing = sum(part.bytes_in + part.bytes_out for part in on_npu)
    out.print(f"{counted(len(on_npu), 'NPU call')} and {counted(len(on_cpu), 'part')} on the CPU; "
              f"{bytes_text(crossing)} go in and out of the NPU's parts at each run")
    table = Table(box=None, pad_edge=False, header_style="dim")
    for column in ("partition", "side", "nodes", "from", "to", "in", "out", "estimate"):
        table.add_column(column, overflow="fold")
    for part in partitions[:PARTITIONS_SHOWN]:
        first, last = (part.nodes[0], part.nodes[-1]) if part.nodes else ("", "")
        table.add_row(*map(escape, (
            str(part.index), part.placement, str(len(part.nodes)), first, last, bytes_text(part.bytes_in),
            bytes_text(part.bytes_out), "" if part.time_ms is None else f"{part.time_ms:.3g} ms")))
    out.print(table)
    if len(partitions) > PARTITIONS_SHOWN:
        out.print(f"... and {len(partitions) - PARTITIONS_SHOWN} more partitions; --json lists all")
