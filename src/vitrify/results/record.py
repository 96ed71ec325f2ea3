"""The content of ``run.json``: everything that is known of one build."""

from __future__ import annotations

from typing import Any

import msgspec

from vitrify.core.findings import Finding
from vitrify.results.analysis import AnalysisRow
from vitrify.results.commands import ProfileResult
from vitrify.results.rows import (
    SCHEMA_VERSION,
    CalibrationFacts,
    ComparisonRow,
    Coverage,
    Estimate,
    LedgerRow,
    PlacementRow,
    StageRecord,
    TensorRow,
    TransposeRow,
)


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
    transposes_left: list[TransposeRow] = []
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
    """The content of ``run.json``: everything that is known of one build. ``profile`` is that of the integer model on
    the target, as ``vitrify profile`` estimates it."""

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
    verify_compiled: ComparisonRow | None = None
    analysis: AnalysisRow | None = None
    coverage: Coverage = msgspec.field(default_factory=Coverage)
    placement: PlacementRow = msgspec.field(default_factory=PlacementRow)
    estimate: Estimate = msgspec.field(default_factory=Estimate)
    memory: dict[str, int] = {}
    compiler: str = ""
    profile: ProfileResult | None = None
    pictures: list[PictureRow] = []
    interface: list[BindingRow] = []
