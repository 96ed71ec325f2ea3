"""The run on the page: the model's forms, what was changed, calibration, stages, and how to do it again."""

from __future__ import annotations

import shlex

from vitrify.core.progress import duration
from vitrify.core.words import bytes_text, shape_text
from vitrify.report.page.charts import Part, strip
from vitrify.report.page.markup import Child, Html, table, tag
from vitrify.report.page.section import Section
from vitrify.results import LedgerRow, ModelFacts, RunRecord, StageRecord, TensorRow

STATUS_STYLE = {"done": "good", "reused": "good", "failed": "bad", "interrupted": "warn"}


def models(record: RunRecord) -> Section | None:
    """Return the forms of the model side by side: sizes, operators, inputs and outputs."""
    forms = [(label, facts) for label, facts in (("float", record.float_model), ("INT8", record.int8_model)) if facts]
    if not forms:
        return None
    rows = [(label, facts.kind, bytes_text(facts.bytes), sum(facts.operators.values()), facts.transposes,
             facts.float_operators, facts.file) for label, facts in forms]
    columns = ("form", "kind", "#size", "#operators", "#transposes", "#float operators", "file")
    parts: list[Child] = [table(columns, rows)]
    for label, facts in forms:
        parts += [tag("h3", f"Inputs and outputs, {label}"), _tensors(facts)]
    parts += _transposes(forms[-1][1])
    names = list(dict.fromkeys(name for _, facts in forms for name in facts.operators))
    counts = [(name, *(facts.operators.get(name, 0) for _, facts in forms)) for name in names]
    listing = table(("operator", *(f"#{label}" for label, _ in forms)), counts)
    return Section.of("model", "Model", parts, tag("details", tag("summary", "operators"), listing))


def _transposes(facts: ModelFacts) -> list[Child]:
    """Each TRANSPOSE that is left, between which of the user's nodes it stands, and why it could not go."""
    if not facts.transposes_left:
        return []
    rows = [(row.node, " and ".join(row.between), bytes_text(row.bytes), row.reason) for row in facts.transposes_left]
    return [tag("h3", "Transposes left"), table(("transpose", "between", "#moves", "why it stays"), rows)]


def interface(record: RunRecord) -> Section | None:
    """Return what an application does around the INT8 file to take and give what the source model does."""
    if not record.interface:
        return None
    rows = [(row.side, row.name, f"{row.dtype}{shape_text(row.shape)}" if row.dtype else "",
             tag("ol", [tag("li", step) for step in row.steps], class_="steps")) for row in record.interface]
    text = ("What stands between the source model's inputs and outputs and those of the INT8 file. `vt.run` does it; "
            "an application of your own does these steps.")
    return Section.of("interface", "Interface", tag("p", text), table(("", "name", "type", "steps"), rows))


def _tensors(facts: ModelFacts) -> Html:
    rows = [(side, *_tensor(row)) for side, listed in (("in", facts.inputs), ("out", facts.outputs)) for row in listed]
    return table(("", "name", "type", "#scale", "#zero point", "#stands for"), rows)


def _tensor(row: TensorRow) -> tuple[Child, ...]:
    interval = "" if row.real_min is None or row.real_max is None else f"{row.real_min:.5g} … {row.real_max:.5g}"
    return (row.name, f"{row.dtype}{shape_text(row.shape)}", "" if row.scale is None else f"{row.scale:.7g}",
            "" if row.zero_point is None else row.zero_point, interval)


def ledger(record: RunRecord) -> Section | None:
    """Return what each pass did."""
    parts: list[Child] = []
    for title, rows in (("Clean-up and layout", record.ledger), ("Quantization", record.quantization_ledger)):
        if rows:
            columns = ("pass", "#places", "#nodes", "#transposes", "exactness", "#largest error", "for example")
            parts += [tag("h3", title), table(columns, map(_ledger_cells, rows))]
    text = "Every rewrite: what it changed, and whether the values stay the same."
    return Section.of("ledger", "Ledger", tag("p", text), parts) if parts else None


def _ledger_cells(row: LedgerRow) -> tuple[Child, ...]:
    turns = ("" if row.transposes_before is None or row.transposes_before == row.transposes_after
             else f"{row.transposes_before} → {row.transposes_after}")
    nodes = f"{row.nodes_before} → {row.nodes_after}" if row.nodes_before != row.nodes_after else row.nodes_after
    error = "" if row.largest_error is None else f"{row.largest_error:.3g}"
    return (tag("span", row.name, tag("small", row.note or row.summary)), row.changes, nodes, turns, row.exactness,
            error, ", ".join(row.examples[:3]))


def calibration(record: RunRecord) -> Section | None:
    """Return on what the ranges rest."""
    facts = record.calibration
    if facts is None:
        return None
    rows: list[tuple[Child, ...]] = [
        ("samples", facts.samples), ("data", "random values" if facts.random else facts.data),
        ("ranges by", facts.calibrator), ("tensors observed", facts.tensors or "")]
    rows += [(name, ", ".join(map(str, value)) if isinstance(value, list) else value)
             for name, value in facts.preprocess.items()]
    if facts.random:
        rows.append(("seed", facts.seed))
    warning = tag("p", tag("b", "Calibrated on random values: ", class_="bad"),
                  "the model runs, but its answers mean nothing.") if facts.random else None
    return Section.of("calibration", "Calibration", warning, table(("", ""), rows))


def stages(record: RunRecord) -> Section | None:
    """Return the stages with their times."""
    if not record.stages:
        return None
    parts = [Part("step", f"{stage.name}: {duration(stage.seconds)}", max(stage.seconds, 0.001))
             for stage in record.stages]
    columns = ("stage", "status", "#seconds", "#peak memory", "result")
    return Section.of("stages", "Stages", strip(parts), table(columns, map(_stage_cells, record.stages)))


def _stage_cells(stage: StageRecord) -> tuple[Child, ...]:
    return (stage.name, tag("span", stage.status, class_=STATUS_STYLE.get(stage.status)), f"{stage.seconds:.2f}",
            bytes_text(stage.peak_bytes) if stage.peak_bytes else "", stage.text)


def reproduce(record: RunRecord) -> Section:
    """Return the command, the versions and the hashes."""
    rows: list[tuple[Child, ...]] = [(name, version) for name, version in record.versions.items()]
    hashes = [(name, tag("code", value)) for name, value in record.input_hashes.items()]
    files = [(name, artifact.file, bytes_text(artifact.bytes), tag("code", artifact.hash))
             for name, artifact in record.artifacts.items()]
    return Section.of("reproduce", "Reproduce", tag("pre", shlex.join(record.command)),
                   tag("h3", "Versions"), table(("", ""), rows), tag("h3", "Inputs"), table(("", "hash"), hashes),
                   tag("h3", "Artifacts"), table(("", "file", "#size", "hash"), files))
