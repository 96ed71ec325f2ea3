"""The rows that answers are made of: tensors, verdicts, errors, stages."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

from vitrify.core.findings import Finding

SCHEMA_VERSION = 1


class TensorRow(msgspec.Struct, kw_only=True):
    """An input or output. ``scale`` and ``zero_point`` are those of a tensor with one scale, else null.

    ``real_min``/``real_max`` is the interval that the integers encode; ``scales`` counts the scales of ``axis``.
    ``shape_signature`` has -1 for dimensions that a TFLite file leaves free; a free dimension of an ONNX model stands
    in ``shape`` under its name.
    """

    name: str
    shape: list[int | str]
    dtype: str
    shape_signature: list[int] = []
    scale: float | None = None
    zero_point: int | None = None
    real_min: float | None = None
    real_max: float | None = None
    scales: int = 0
    axis: int | None = None


class LedgerRow(msgspec.Struct, kw_only=True):
    """What one pass did to the graph."""

    name: str
    summary: str = ""
    changes: int = 0
    nodes_before: int = 0
    nodes_after: int = 0
    exactness: str = "exact"
    largest_error: float | None = None
    transposes_before: int | None = None
    transposes_after: int | None = None
    examples: list[str] = []
    note: str = ""


class TrialRow(msgspec.Struct, kw_only=True):
    """One setting of the compiler: what it was told, and the estimate; ``problem`` says why there is none.

    ``fixed``: the model was rewritten before. ``chosen`` is true for the one that was kept.
    """

    optimise: str
    arena_bytes: int
    fixed: bool = False
    latency_ms: float | None = None
    sram_bytes: int = 0
    dram_traffic_bytes: int = 0
    problem: str = ""
    chosen: bool = False


class TransposeRow(msgspec.Struct, kw_only=True):
    """A TRANSPOSE that is left in a model: the neighbours it stands between, why it stays, the bytes it moves."""

    node: str
    between: list[str] = []
    reason: str = ""
    bytes: int = 0


class RuleRow(msgspec.Struct, kw_only=True):
    """One rule that a node breaks on the target; the headline holds the value found and the limit.

    ``values`` are both by name, ``nearest`` is the nearest form that is allowed, ``fix`` the rewrite that leads there.
    ``confidence`` (compiler, documented, observed, inferred, unknown), ``source`` and ``versions`` of the compiler say
    how far to believe it.
    """

    code: str = ""
    headline: str = ""
    why: str = ""
    help: str = ""
    values: dict[str, str | int | float | list[int]] = {}
    nearest: str = ""
    fix: str = ""
    source: str = ""
    confidence: str = "compiler"
    versions: str = ""


class VerdictRow(msgspec.Struct, kw_only=True):
    """Where one node runs, and why. ``placement`` is ``npu``, ``cpu`` or ``folded`` (it costs nothing of its own).

    ``confidence``: ``compiler`` when the target's own compiler did it so, else how it is known, by ``source``: of a
    node that is taken, that of its operator; of one that is not, that of the rule believed most: ``documented``,
    ``observed``, ``inferred`` or ``unknown``. ``origin`` lists the nodes of the user's file that it was
    made from.
    """

    node: str
    operator: str
    placement: str
    rules: list[RuleRow] = []
    confidence: str = "compiler"
    source: str = ""
    origin: list[str] = []
    cycles: int | None = None


class CrossingRow(msgspec.Struct, kw_only=True):
    """A tensor that crosses the border of a partition."""

    tensor: str
    bytes: int = 0


class DiagnosisRow(msgspec.Struct, kw_only=True):
    """One cause of what does not run on the NPU, in plain words.

    What it strikes: ``nodes``, their share ``macs`` of all multiplications (0..1), and ``time_ms``, what they are
    estimated to take on the CPU, null where they run on the NPU or it is not known. ``command`` mends it, as it stands;
    FOLDER in it is a folder of samples. ``rules`` are the codes of broken rules that it is the cause of.
    """

    code: str
    headline: str
    why: str = ""
    where: str = ""
    command: str = ""
    nodes: int = 0
    macs: float = 0.0
    time_ms: float | None = None
    rules: list[str] = []


class PartitionRow(msgspec.Struct, kw_only=True):
    """Neighbouring nodes that run on one side, and the tensors that cross its border. ``time_ms`` is an estimate, null
    where there is none."""

    index: int
    placement: str
    nodes: list[str] = []
    bytes_in: int = 0
    bytes_out: int = 0
    time_ms: float | None = None
    inputs: list[CrossingRow] = []
    outputs: list[CrossingRow] = []


class Coverage(msgspec.Struct, kw_only=True):
    """The share that runs on the NPU, 0..1, by three measures; null when it is not known.

    The ``unsure`` ones are the shares of all nodes, MACs and time, on either side, whose place nobody tells in public:
    it is inferred from something near, or unknown and counted as the CPU's.
    """

    nodes: float | None = None
    macs: float | None = None
    time: float | None = None
    unsure_nodes: float | None = None
    unsure_macs: float | None = None
    unsure_time: float | None = None


class Estimate(msgspec.Struct, kw_only=True):
    """A latency from a model of the chip, never a measurement. ``assumptions`` names what is not documented."""

    latency_ms: float | None = None
    low_ms: float | None = None
    high_ms: float | None = None
    source: str = ""
    npu_ms: float | None = None
    cpu_ms: float | None = None
    driver_ms: float | None = None
    npu_cycles: int | None = None
    assumptions: list[str] = []


class GroupRow(msgspec.Struct, kw_only=True):
    """The error of one group of channels of an output; ``judged`` is false where all values are within a few steps."""

    name: str
    sqnr_db: float | None = None
    cosine: float | None = None
    largest_error: float | None = None
    ok: bool = True
    reason: str = ""
    judged: bool = True


class ErrorRow(msgspec.Struct, kw_only=True):
    """The error of one tensor against the stage before. Infinite SQNR (no error at all) is null with ``equal`` true.

    ``relative_error`` is the largest error as a share of the reference's largest value, ``saturated`` the share of
    integers that stand at an end of their type, ``not_finite`` the values that are finite on one side only. ``aligned``
    is false where the name means another value on the other side; ``note`` says so, or how a layout differs. ``judged``
    is false where every value is within a few steps, whatever the SQNR. ``agreement`` is the share of equal values,
    0..1, of an output that is class numbers, indices or flags; it has no SQNR.
    """

    tensor: str
    sqnr_db: float | None = None
    cosine: float | None = None
    max_lsb: float | None = None
    largest_error: float | None = None
    reference_max: float | None = None
    equal: bool = False
    ok: bool = True
    operator: str = ""
    reason: str = ""
    groups: list[GroupRow] = []
    relative_error: float | None = None
    saturated: float | None = None
    not_finite: int = 0
    aligned: bool = True
    note: str = ""
    judged: bool = True
    agreement: float | None = None


class Lowest(NamedTuple):
    """The worst part of a comparison: its SQNR, minus infinity where nothing is left of it, and what it is called."""

    sqnr_db: float
    name: str

    def __str__(self) -> str:
        return f"{self.sqnr_db:.1f} dB" if math.isfinite(self.sqnr_db) else "no signal"


def _judged(row: ErrorRow) -> Iterator[Lowest]:
    """What of an output is judged: the whole, and each group of channels where there are several."""
    if not row.equal and row.judged:
        yield Lowest(-math.inf if row.sqnr_db is None else row.sqnr_db, f"'{row.tensor}'")
    for group in row.groups if len(row.groups) > 1 else ():
        if group.judged and (group.sqnr_db is not None or not group.ok):
            yield Lowest(-math.inf if group.sqnr_db is None else group.sqnr_db, f"{group.name} of '{row.tensor}'")


class ComparisonRow(msgspec.Struct, kw_only=True):
    """One stage of a verification: ``name`` against ``reference``, judged on ``samples`` samples."""

    name: str
    reference: str = ""
    samples: int = 0
    ok: bool = True
    outputs: list[ErrorRow] = []
    tensors: list[ErrorRow] = []

    def lowest(self) -> Lowest | None:
        """The judged output, or group of an output's channels, with the lowest SQNR; None when all are equal."""
        found = [low for row in self.outputs for low in _judged(row)]
        return min(found, key=lambda low: low.sqnr_db, default=None)


class FileRow(msgspec.Struct, kw_only=True):
    """One model file of a folder."""

    file: str
    format: str
    kind: str
    bytes: int = 0
    suits_int8_npu: bool = False
    text: str = ""
    reason: str = ""


class PlacementRow(msgspec.Struct, kw_only=True):
    """The placement in figures and in full."""

    npu: int = 0
    cpu: int = 0
    folded: int = 0
    verdicts: list[VerdictRow] = []
    partitions: list[PartitionRow] = []


class QuantizationRow(msgspec.Struct, kw_only=True):
    """What the quantization of a tensor means, in words.

    ``role``: input, output, constant, tensor, or joined (what enters another tensor's scale). ``verdict``: usual, dead
    (it holds nothing but 0), saturated (values pile up at an end), squeezed (it is left with few levels) or coarse.
    ``python`` and ``c`` turn real values ``x`` to integers ``q`` of an input, and back for an output. ``cast`` says
    what goes wrong where bytes are given to an input, or taken from an output, by a cast alone.
    """

    tensor: str
    role: str
    verdict: str = "usual"
    text: str = ""
    python: str = ""
    c: str = ""
    cast: str = ""


class GrowthRow(msgspec.Struct, kw_only=True):
    """How far ranges moved from ``since`` samples to all: the share of that which moved most, and of all on average."""

    tensor: str = ""
    share: float = 0.0
    mean: float = 0.0
    since: int = 0


class ConflictRow(msgspec.Struct, kw_only=True):
    """A part with ``levels`` of the 256 levels of the tensor that it is joined into or cut out of, in one scale.

    ``node`` joins or cuts; ``resolved`` says what was done about it, empty: nothing.
    """

    node: str
    operator: str
    whole: str
    part: str
    low: float
    high: float
    whole_low: float
    whole_high: float
    levels: float
    resolved: str = ""


class CalibrationFacts(msgspec.Struct, kw_only=True):
    """On what the ranges rest.

    ``available`` counts the samples that there are, ``left_out`` those that could not be read; ``stopped`` says that no
    more were needed. ``predicted_bytes`` is about what the process that calibrates was to take at most, told before.
    """

    samples: int = 0
    data: str = ""
    random: bool = False
    calibrator: str = ""
    preprocess: dict[str, Any] = {}
    seed: int | None = None
    tensors: int = 0
    available: int = 0
    left_out: int = 0
    stopped: bool = False
    growth: GrowthRow | None = None
    predicted_bytes: int = 0


class StageRecord(msgspec.Struct, kw_only=True):
    """One named stage of a build. ``status``: pending, running, done, reused, failed, interrupted, skipped."""

    name: str
    status: str = "pending"
    seconds: float = 0.0
    peak_bytes: int = 0
    key: str = ""
    text: str = ""
    findings: list[Finding] = []
