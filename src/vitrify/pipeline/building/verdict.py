"""The verdict of a run in one sentence."""

from __future__ import annotations

from vitrify.core.findings import Severity
from vitrify.core.words import percent
from vitrify.results import RunRecord

_UNCOMPILED = {"neutron.not-installed", "vela.not-installed", "compile.no-compiler"}
_NUMBERS = {"int16x8": "integer (INT8 weights, 16-bit activations)",
            "int8-int16": "integer (INT8 weights, partly 16-bit activations)"}
"""What the answers are made of, by kind of file; INT8 for all others."""


def is_good(record: RunRecord) -> bool:
    """True when every stage is done, no finding is an error and every comparison passed."""
    return (all(stage.status in ("done", "reused", "pending", "skipped") for stage in record.stages)
            and all(f.severity is not Severity.ERROR for stage in record.stages for f in stage.findings)
            and (record.verify_float is None or record.verify_float.ok)
            and (record.verify_int8 is None or record.verify_int8.ok or _is_random(record))
            and (record.verify_compiled is None or record.verify_compiled.ok))


def _is_random(record: RunRecord) -> bool:
    return record.calibration is not None and record.calibration.random


def sentence(record: RunRecord) -> str:
    """Say what came of the run."""
    broken = next((stage for stage in record.stages if stage.status in ("failed", "interrupted", "running")), None)
    if broken is not None and broken.status != "failed":
        return f"The build stopped in the stage '{broken.name}'; the same command goes on from there."
    error = next((f for f in record.findings if f.severity is Severity.ERROR), None)
    if error is not None:
        stage = f"in the stage '{broken.name}': " if broken is not None else ""
        return f"Not good, {stage}{error.headline}."
    parts = [part for part in (_placed(record), _quality(record), _latency(record), _compilation(record)) if part]
    text = "; ".join(parts)
    if _is_random(record):
        text += "; calibrated on random values, so the answers mean nothing"
    return f"{text[:1].upper()}{text[1:]}." if text else "Nothing was built."


def _placed(record: RunRecord) -> str:
    rows = record.placement
    if not rows.verdicts:
        return ""
    if rows.cpu == 0:
        return f"every node runs on the NPU of {record.target}"
    return f"{rows.cpu} of {len(rows.verdicts)} nodes stay on the CPU of {record.target}"


def _quality(record: RunRecord) -> str:
    if record.verify_int8 is None:
        return ""
    worst = record.verify_int8.lowest()
    kind = "" if record.int8_model is None else record.int8_model.kind
    numbers = _NUMBERS.get(kind, "INT8")
    other = "the source's" if record.stages and record.float_model is None else "float"
    shares = [row.agreement for row in record.verify_int8.outputs if row.agreement is not None and not row.equal]
    agree = f"{percent(min(shares))} of {numbers}'s whole numbers agree with {other}" if shares else ""
    if worst is None:
        return agree or f"{numbers} answers equal {other}"
    return f"{numbers} answers follow {other} with at least {worst} SQNR ({worst.name})" + (
        f", and {agree}" if agree else "")


def _compilation(record: RunRecord) -> str:
    """What is not known of the compiled file, where its compiler's results have to be looked at."""
    codes = {finding.code for finding in record.findings}
    if codes & _UNCOMPILED:
        return "compiled: no, the compiler is not installed"
    if "compile.not-verified" in codes:
        return "not verified after compilation"
    return "" if record.verify_compiled is None else "the compiled file gives the same answers"


def _latency(record: RunRecord) -> str:
    ms = record.estimate.latency_ms
    return "" if ms is None else f"about {ms:.3g} ms per inference (an estimate)"
