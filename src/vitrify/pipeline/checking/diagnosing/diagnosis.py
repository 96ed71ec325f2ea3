"""What a diagnosis is: a function that looks at a judged model and yields the cause, decorated with ``@diagnosis``."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Literal

import msgspec

from vitrify.core.findings import Finding
from vitrify.core.words import shell
from vitrify.ir import Graph, Model, Node
from vitrify.results import DiagnosisRow
from vitrify.targets import Placement, Target, Verdict

NAMES_SHOWN = 5


@dataclass(frozen=True)
class Case:
    """A model as it stands in its file, and where its nodes would run.

    ``source`` is the file as commands name it, ``data`` the folder of samples that they name, ``refusals`` what LiteRT,
    the compiler or the quantizer refused. ``made`` says that the model is not what is in the file, but its integer
    form: ``quantized`` on the way, or with the file's own ``scales``.
    """

    model: Model
    placement: Placement
    target: Target
    kind: str
    source: Path
    is_tflite: bool = True
    data: str = "FOLDER"
    refusals: Sequence[Finding] = field(default_factory=tuple)
    made: Literal["", "quantized", "scales"] = ""

    @property
    def graph(self) -> Graph:
        """The main graph."""
        return self.model.main

    @cached_property
    def verdicts(self) -> dict[Node, Verdict]:
        """The verdict on every node."""
        return dict(zip(self.graph, self.placement.verdicts, strict=True))

    @cached_property
    def on_cpu(self) -> list[Node]:
        """The nodes that the NPU does not take."""
        return [node for node, verdict in self.verdicts.items() if verdict.placement == "cpu"]

    @property
    def is_float(self) -> bool:
        """True where everything computes in float, whatever else is wrong."""
        return self.kind in ("float32", "float16", "dynamic-range")

    @property
    def quantize(self) -> str:
        """The command that makes a full-integer file; empty where that has been done."""
        if self.made:
            return ""
        again = "" if self.is_float else " --anew"
        return f"vitrify quantize {self.named}{again} --data {shell(self.data)} -o {self.output('_int8.tflite')}"

    @property
    def named(self) -> str:
        """The file as a shell takes it."""
        return shell(self.source)

    def output(self, ending: str) -> str:
        """A file to write in the current folder, named after the source, as a shell takes it."""
        return shell(self.source.stem + ending)

    def breaks(self, rule: str) -> list[Node]:
        """The nodes that break a rule, named without its family."""
        return [node for node, verdict in self.verdicts.items()
                if any(reason.code.rpartition(".")[2] == rule for reason in verdict.rules)]


class Diagnosis(msgspec.Struct, frozen=True, kw_only=True):
    """One cause, told of the nodes that it strikes; ``command`` mends it and is empty rather than guessed."""

    headline: str
    nodes: Sequence[Node]
    where: str = ""
    command: str = ""


Look = Callable[[Case], Iterable[Diagnosis]]


class Kind(msgspec.Struct, frozen=True, kw_only=True):
    """A kind of diagnosis: what a sound model has instead, why, and which findings (without family) it is the cause of.
    """

    code: str
    says: str
    why: str
    help: str
    rules: tuple[str, ...]
    look: Look


_KINDS: dict[str, Kind] = {}


def diagnosis(code: str, *, says: str, why: str, help: str = "", rules: Iterable[str] = ()) -> Callable[[Look], Look]:
    """Register a function as a diagnosis."""

    def register(look: Look) -> Look:
        _KINDS[code] = Kind(code=code, says=says, why=why, help=help, rules=tuple(rules), look=look)
        return look

    return register


@cache
def kinds() -> tuple[Kind, ...]:
    """Return all kinds of diagnoses, sorted by code."""
    package = importlib.import_module(__name__.rpartition(".")[0])
    for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
        importlib.import_module(module.name)
    return tuple(kind for _, kind in sorted(_KINDS.items()))


def diagnose(case: Case) -> list[DiagnosisRow]:
    """Return what is wrong with a model as a whole, the most costly first."""
    rows = [_row(kind, one, case) for kind in kinds() for one in kind.look(case)]
    return sorted(rows, key=lambda row: (-row.macs, -(row.time_ms or 0.0), -row.nodes))


def _row(kind: Kind, one: Diagnosis, case: Case) -> DiagnosisRow:
    from vitrify.targets.estimating import cpu_seconds, node_macs

    total = sum(node_macs(node) for node in case.graph)
    left = [node for node in one.nodes if case.verdicts[node].placement == "cpu"]
    return DiagnosisRow(
        code=kind.code, headline=one.headline, why=kind.why, where=one.where or _where(one.nodes), command=one.command,
        nodes=len(one.nodes), macs=sum(node_macs(node) for node in one.nodes) / total if total else 0.0,
        time_ms=sum(cpu_seconds(node, case.target).likely for node in left) * 1e3 if left else None,
        rules=_rules(kind, one, case))


def _rules(kind: Kind, one: Diagnosis, case: Case) -> list[str]:
    found = {reason.code for node in one.nodes for reason in case.verdicts[node].rules}
    found |= {finding.code for finding in case.refusals}
    return sorted(code for code in found if code.rpartition(".")[2] in kind.rules)


def _where(nodes: Sequence[Node]) -> str:
    names = [f"'{node.name}'" for node in nodes[:NAMES_SHOWN]]
    more = f" and {len(nodes) - NAMES_SHOWN} more" if len(nodes) > NAMES_SHOWN else ""
    return f"node{'s' * (len(nodes) > 1)} {', '.join(names)}{more}" if nodes else ""


def float_path(nodes: Iterable[Node]) -> Iterator[str]:
    """Yield the float values that enter a stretch of nodes, by name."""
    inside = {id(tensor) for node in nodes for tensor in node.outputs}
    for node in nodes:
        for tensor in node.inputs:
            if tensor is not None and not tensor.is_constant and tensor.dtype.is_float and id(tensor) not in inside:
                yield tensor.name
