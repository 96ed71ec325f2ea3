"""What every command answers: plain values that JSON, the terminal and the report page are made from.

The names and units here are the documented contract (``schema_version``): a field may be added in any release, but is
renamed or removed only with a new version.
"""

from __future__ import annotations

from typing import Any

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


class RuleRow(msgspec.Struct, kw_only=True):
    """One rule that a node breaks on the target; the headline holds the value found and the limit."""

    code: str = ""
    headline: str = ""
    why: str = ""
    help: str = ""


class VerdictRow(msgspec.Struct, kw_only=True):
    """Where one node runs, and why. ``placement`` is ``npu``, ``cpu`` or ``folded`` (it costs nothing of its own).

    ``confidence``: ``compiler`` when the target's own compiler did it so, ``documented`` or ``assumed``. ``origin``
    lists the nodes of the user's file that it was made from.
    """

    node: str
    operator: str
    placement: str
    rules: list[RuleRow] = []
    confidence: str = "compiler"
    origin: list[str] = []
    cycles: int | None = None


class PartitionRow(msgspec.Struct, kw_only=True):
    """Neighbouring nodes that run on one side, and the bytes that cross its border. ``time_ms`` is an estimate."""

    index: int
    placement: str
    nodes: list[str] = []
    bytes_in: int = 0
    bytes_out: int = 0
    time_ms: float | None = None


class Coverage(msgspec.Struct, kw_only=True):
    """The share that runs on the NPU, 0..1, by three measures; null when it is not known."""

    nodes: float | None = None
    macs: float | None = None
    time: float | None = None


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
    """The error of one group of channels of an output."""

    name: str
    sqnr_db: float | None = None
    cosine: float | None = None
    largest_error: float | None = None
    ok: bool = True
    reason: str = ""


class ErrorRow(msgspec.Struct, kw_only=True):
    """The error of one tensor against the stage before. Infinite SQNR (no error at all) is null with ``equal`` true.

    ``relative_error`` is the largest error as a share of the reference's largest value, ``saturated`` the share of
    integers that stand at an end of their type, ``not_finite`` the values that are finite on one side only. ``aligned``
    is false where the name means another value on the other side; ``note`` says so, or how a layout differs.
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


class ComparisonRow(msgspec.Struct, kw_only=True):
    """One stage of a verification: ``name`` against ``reference``, judged on ``samples`` samples."""

    name: str
    reference: str = ""
    samples: int = 0
    ok: bool = True
    outputs: list[ErrorRow] = []
    tensors: list[ErrorRow] = []


class FileRow(msgspec.Struct, kw_only=True):
    """One model file of a folder."""

    file: str
    format: str
    kind: str
    bytes: int = 0
    suits_int8_npu: bool = False
    text: str = ""
    reason: str = ""


class Result(msgspec.Struct, kw_only=True):
    """What all answers share. ``ok`` is false when a finding is an error or the check failed."""

    schema_version: int = SCHEMA_VERSION
    command: str = ""
    ok: bool = True
    findings: list[Finding] = []


class FailureResult(Result):
    """The answer of a command that could not be carried out."""


class InspectResult(Result):
    """What a file holds."""

    file: str = ""
    format: str = ""
    kind: str = ""
    summary: str = ""
    bytes: int = 0
    inputs: list[TensorRow] = []
    outputs: list[TensorRow] = []
    operators: dict[str, int] = {}
    float_operators: int = 0
    float_nodes: list[str] = []
    transposes: int = 0
    npu_graphs: int = 0
    parameters: int = 0
    macs: int | None = None
    signatures: dict[str, dict[str, list[str]]] = {}
    metadata: dict[str, str] = {}
    opset: dict[str, int] = {}
    producer: str = ""
    graphs: int = 1
    files: list[FileRow] = []


class ConvertResult(Result):
    """What a conversion wrote. ``peak_bytes`` is the largest resident size of any process that took part."""

    output: str = ""
    seconds: float = 0.0
    peak_bytes: int = 0
    operators: dict[str, int] = {}
    float_operators: int = 0
    transposes: int = 0
    ledger: list[LedgerRow] = []
    inputs: list[TensorRow] = []
    outputs: list[TensorRow] = []
    bytes: int = 0


class CalibrationFacts(msgspec.Struct, kw_only=True):
    """On what the ranges rest."""

    samples: int = 0
    data: str = ""
    random: bool = False
    calibrator: str = ""
    preprocess: dict[str, Any] = {}
    seed: int | None = None
    tensors: int = 0


class QuantizeResult(ConvertResult):
    """What a quantization wrote."""

    calibration: CalibrationFacts | None = None
    recipe: str = ""
    quality: ComparisonRow | None = None


class CheckResult(Result):
    """Where each node of a model would run on a target."""

    target: str = ""
    coverage: Coverage = msgspec.field(default_factory=Coverage)
    verdicts: list[VerdictRow] = []
    partitions: list[PartitionRow] = []
    ledger: list[LedgerRow] = []
    estimate: Estimate | None = None

    def __str__(self) -> str:
        share = "unknown" if self.coverage.nodes is None else f"{self.coverage.nodes:.1%}"
        lines = [f"{self.target}: {share} of the nodes on the NPU, {len(self.partitions)} partitions"]
        lines += [f"  {v.node} ({v.operator}) on the CPU: {'; '.join(r.headline for r in v.rules) or 'no reason given'}"
                  for v in self.verdicts if v.placement == "cpu"]
        return "\n".join(lines + [str(f) for f in self.findings])


class PlacementRow(msgspec.Struct, kw_only=True):
    """The placement in figures and in full."""

    npu: int = 0
    cpu: int = 0
    folded: int = 0
    verdicts: list[VerdictRow] = []
    partitions: list[PartitionRow] = []


class CompileResult(Result):
    """What the target's compiler made."""

    output: str = ""
    target: str = ""
    seconds: float = 0.0
    peak_bytes: int = 0
    coverage: Coverage = msgspec.field(default_factory=Coverage)
    placement: PlacementRow = msgspec.field(default_factory=PlacementRow)
    estimate: Estimate = msgspec.field(default_factory=Estimate)
    memory: dict[str, int] = {}


class VerifyResult(Result):
    """Stage by stage, tensor by tensor: how far the models agree."""

    stages: list[ComparisonRow] = []
    first_divergence: str | None = None
    samples: int = 0
    seconds: float = 0.0


class StageRecord(msgspec.Struct, kw_only=True):
    """One named stage of a build. ``status``: pending, running, done, reused, failed, interrupted, skipped."""

    name: str
    status: str = "pending"
    seconds: float = 0.0
    peak_bytes: int = 0
    key: str = ""
    text: str = ""
    findings: list[Finding] = []


class BuildResult(Result):
    """What a build made: the folder of the run, and the figures of its record."""

    run: str = ""
    target: str = ""
    artifacts: dict[str, str] = {}
    coverage: Coverage = msgspec.field(default_factory=Coverage)
    estimate: Estimate = msgspec.field(default_factory=Estimate)
    stages: list[StageRecord] = []
    quality: list[ComparisonRow] = []
    seconds: float = 0.0
    peak_bytes: int = 0
    reused: list[str] = []
    verdict: str = ""
    command_line: str = ""


class Artifact(msgspec.Struct, kw_only=True):
    """A file of a run: its path inside the run's folder, size and hash."""

    file: str
    bytes: int
    hash: str


class ModelFacts(msgspec.Struct, kw_only=True):
    """One form of the model in a run."""

    file: str = ""
    kind: str = ""
    bytes: int = 0
    inputs: list[TensorRow] = []
    outputs: list[TensorRow] = []
    operators: dict[str, int] = {}
    float_operators: int = 0
    transposes: int = 0
    parameters: int = 0


class BindingRow(msgspec.Struct, kw_only=True):
    """One input or output of the source model, and the steps between it and the file's own tensors, in words."""

    side: str
    name: str
    shape: list[int] = []
    dtype: str = ""
    steps: list[str] = []


class ScoreRow(msgspec.Struct, kw_only=True):
    """One of the highest scores of a classifier."""

    label: str
    value: float


class PictureRow(msgspec.Struct, kw_only=True):
    """One sample, with what the float and the INT8 model make of it; pictures are files of the run."""

    name: str
    task: str = ""
    input: str = ""
    float_picture: str = ""
    int8_picture: str = ""
    float_scores: list[ScoreRow] = []
    int8_scores: list[ScoreRow] = []
    text: str = ""


class RunRecord(msgspec.Struct, kw_only=True):
    """The content of ``run.json``: everything that is known of one build."""

    schema_version: int = SCHEMA_VERSION
    name: str = ""
    model: str = ""
    target: str = ""
    command: list[str] = []
    status: str = "running"
    verdict: str = ""
    started: str = ""
    seconds: float = 0.0
    peak_bytes: int = 0
    versions: dict[str, str] = {}
    input_hashes: dict[str, str] = {}
    seeds: dict[str, int] = {}
    options: dict[str, Any] = {}
    stages: list[StageRecord] = []
    artifacts: dict[str, Artifact] = {}
    findings: list[Finding] = []
    source: ModelFacts | None = None
    float_model: ModelFacts | None = None
    int8_model: ModelFacts | None = None
    ledger: list[LedgerRow] = []
    quantization_ledger: list[LedgerRow] = []
    calibration: CalibrationFacts | None = None
    verify_float: ComparisonRow | None = None
    verify_int8: ComparisonRow | None = None
    coverage: Coverage = msgspec.field(default_factory=Coverage)
    placement: PlacementRow = msgspec.field(default_factory=PlacementRow)
    estimate: Estimate = msgspec.field(default_factory=Estimate)
    memory: dict[str, int] = {}
    pictures: list[PictureRow] = []
    interface: list[BindingRow] = []


RESULTS: dict[str, type[Result]] = {
    "inspect": InspectResult,
    "convert": ConvertResult,
    "quantize": QuantizeResult,
    "check": CheckResult,
    "compile": CompileResult,
    "verify": VerifyResult,
    "build": BuildResult,
}
"""The answer of each command."""
