"""`diff`: two models of any formats, compared by structure."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from vitrify.core.findings import Finding, Severity
from vitrify.core.progress import Reporter, Silent
from vitrify.ir import Model
from vitrify.matching import Matching, map_sources, match
from vitrify.pipeline.diffing.ends import end_rows
from vitrify.pipeline.diffing.nodes import node_rows
from vitrify.pipeline.diffing.sides import Read, read_side
from vitrify.pipeline.diffing.telling import sentences
from vitrify.pipeline.options import ConvertOptions
from vitrify.pipeline.steps import step
from vitrify.results import DiffResult
from vitrify.results.diffing import SourceRow

UNRELATED = 0.2
"""Models of which a smaller share stands alike have nothing to do with each other."""

EQUAL = ("same",)


def diff_models(a: Path | Model, b: Path | Model, options: ConvertOptions = ConvertOptions(),
                reporter: Reporter | None = None, *, exit_code: bool = False,
                all: bool = False) -> DiffResult:
    """Compare two models; with ``exit_code`` the answer is not ``ok`` when they differ.

    Raises:
        VitrifyError: one of them cannot be read.
    """
    shown = reporter or Silent()
    left, right = read_side(a, options, shown), read_side(b, options, shown)
    with step(shown, "compare") as note:
        matching = match(left.graph, right.graph)
        result = compared(left, right, matching)
        note.text = "equal" if result.equal else "they differ"
    result.all = all
    result.ok = not exit_code or result.equal
    return result


def compared(left: Read, right: Read, matching: Matching) -> DiffResult:
    """Put together what a matching says about two models."""
    rows = node_rows(matching)
    inputs, outputs = end_rows(matching, left.side, right.side)
    counts = Counter(row.relation for row in rows)
    alike = matching.alike
    sure = sum(row.how in ("content", "origin", "name", "inside") for row in rows)
    few = min(len(matching.left.items), len(matching.right.items))
    strict = sum(row.how not in ("", "order") and not any(c.kind in ("shape", "operator") for c in row.changes)
                 for row in rows)
    empty = not matching.left.items and not matching.right.items
    unrelated = not empty and (few == 0 or alike < UNRELATED or (not sure and strict < UNRELATED * few))
    equal = not unrelated and not (counts.keys() - set(EQUAL)) and not any(
        row.changes or row.a is None or row.b is None for row in (*inputs, *outputs))
    result = DiffResult(
        a=left.side, b=right.side, equal=equal, related=not unrelated, alike=alike, counts=dict(counts), nodes=rows,
        inputs=inputs, outputs=outputs, names_agree=matching.names_agree, findings=[*left.findings, *right.findings],
        summary=sentences(left.side, right.side, [*inputs, *outputs], rows, min(alike, strict / max(few, 1)),
                          unrelated))
    result.sources = _sources(left, right, matching)
    if left.side.graphs != right.side.graphs or left.side.graphs > 1:
        result.findings.append(Finding(
            code="diff.graphs", severity=Severity.INFO, headline=f"A has {left.side.graphs} graphs and B "
            f"{right.side.graphs}; the main ones are compared"))
    return result


def _sources(left: Read, right: Read, matching: Matching) -> list[SourceRow]:
    """What became of each node of an ONNX file in the other model: its own nodes in A, and what those are in B."""
    rows = []
    for mapped in map_sources(left.sources, left.graph) if left.sources else []:
        into: dict[str, None] = {}
        compiled = False
        for node in mapped.nodes:
            item = matching.left.of.get(node)
            group = matching.of.get(item) if item is not None else None
            if group is not None:
                compiled |= len(group.right) == 1 and group.how == "inside"
                into.update(dict.fromkeys(i.node.name for i in group.right))
        how = mapped.how if into or mapped.how in ("folded", "unused") else "removed"
        rows.append(SourceRow(name=mapped.source.name, operator=mapped.source.kind,
                              how="compiled" if compiled and how != "folded" else how, into=list(into)))
    return rows
