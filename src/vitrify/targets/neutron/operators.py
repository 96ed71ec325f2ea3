"""The family's table of operators, the widths of its arrays, and the rules on what is in no table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path

from vitrify.ir import Node
from vitrify.targets.placement import Confidence
from vitrify.targets.rules import Breach, Variant, rule
from vitrify.targets.rules.judging import Basis
from vitrify.targets.rules.rows import Row
from vitrify.targets.rules.rule import Check
from vitrify.targets.rules.tables import Table

C, OLD, S = "c", "old", "s"
CORES = (C, OLD, S)
ET = ("github.com/pytorch/executorch, backends/nxp/backend/ir/converter/node_converters/ops_converters "
      "(main, 2026-08)")
ET_OLD = "github.com/pytorch/executorch, backends/nxp, ops_converters (release/1.3)"
DELEGATE = "github.com/nxp-imx/tflite-neutron-delegate, neutron_delegate_utils.cc (lf-6.6.52_2.2.0)"
NEW, BEFORE, ANY = ">=3.2", "<3.2", ">=1.0"

_LIMITS: dict[str, dict[str, int]] = {C: {"num_macs": 8, "pipelines": 8}, OLD: {"num_macs": 8, "pipelines": 8},
                                      S: {"num_macs": 16, "pipelines": 64}}
"""Source: neutron-imxrt700.ini of ExecuTorch for C, the delegate's NUM_MACS for S. MCX is judged by the i.MX RT700's
width: what is a multiple of 8 is one of any smaller power of two as well."""


@cache
def table() -> Table:
    """Return the family's table of operators."""
    return Table(Path(__file__).parent / "operators.toml")


def row(operator: str, core: str) -> Row:
    """Return what is public about an operator on a core."""
    return table().row(operator, core)


def variant(core: str) -> Variant:
    """Return the limits of a core."""
    return Variant(core=core, limits=_LIMITS[core])


def operators(core: str) -> frozenset[str]:
    """Return the operators that are taken in some form, as far as is public."""
    return table().operators(core)


def basis(node: Node, core: str) -> Basis:
    """Return how it is known that a node is taken."""
    found = row(node.op.kind, core)
    return Basis(found.confidence, found.source)


def taken(node: Node, core: str) -> bool:
    """True for an operator that the core takes in some form; of others no more is asked."""
    return row(node.op.kind, core).taken == "yes"


def held(code: str, *, says: str, why: str, operators: Iterable[str] = (), c: Confidence | None = "documented",
         old: Confidence | None = None, s: Confidence | None = "inferred", source: str = ET, help: str = "",
         fix: str = "") -> Callable[[Check], Check]:
    """Register a rule of Neutron-C, and what is concluded of it for other flows and cores, each with its confidence."""
    kinds = tuple(operators)

    def register(check: Check) -> Check:
        for core, confidence, versions in ((C, c, NEW), (OLD, old, BEFORE), (S, s, ANY)):
            if confidence is not None:
                said = source if core != S or confidence != "inferred" else f"carried over from Neutron-C: {source}"
                rule(code, says=says, why=why, source=said, confidence=confidence, versions=versions, operators=kinds,
                     cores=[core], help=help, fix=fix)(check)
        return check

    return register


@rule("neutron.unknown-operator", says="a public source says that the NPU takes the operator",
      why="nothing public was found, so it is counted as work of the CPU; the converter may take it all the same",
      source="facts about operators in targets/neutron/operators.toml", confidence="unknown", versions=ANY,
      help="convert with neutron-converter and read how many operators it converted")
def unknown(node: Node, variant: Variant) -> Iterator[Breach]:
    """Operators of which nobody says anything in public."""
    yield from table().unknown(node, variant.core)


@rule("neutron.unsupported-operator", says="the converter takes the operator in some form",
      why="it stays in the file as it is and runs on the CPU", source="facts about operators in "
      "targets/neutron/operators.toml", versions=ANY)
def unsupported(node: Node, variant: Variant) -> Iterator[Breach]:
    """Operators that are known to stay on the CPU."""
    yield from table().refused(node, variant.core)
