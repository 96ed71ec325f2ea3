"""What each command answers; its JSON is exactly this."""

from __future__ import annotations

from typing import Any

import msgspec

from vitrify.core.findings import Finding
from vitrify.core.words import counted
from vitrify.results.analysis import AnalysisRow
from vitrify.results.diffing import DiffSide, EndRow, NodeRow, SourceRow
from vitrify.results.doctoring import BoardRow, PartRow, ServedRow
from vitrify.results.explained import ExplanationRow, TargetRow
from vitrify.results.fixes import FixOutcome
from vitrify.results.measuring import MeasuredPart
from vitrify.results.profiling import (
    AdviceRow,
    ComparedRow,
    CyclesRow,
    EstimatedRow,
    GateRow,
    MappingRow,
    MeasuredRow,
    MeasuredRun,
    MemoryPlan,
    OverheadRow,
    RooflineRow,
)
from vitrify.results.reducing import BisectRow, ReduceStep
from vitrify.results.rows import (
    SCHEMA_VERSION,
    CalibrationFacts,
    ComparisonRow,
    ConflictRow,
    Coverage,
    DiagnosisRow,
    Estimate,
    FileRow,
    LedgerRow,
    PartitionRow,
    PlacementRow,
    QuantizationRow,
    StageRecord,
    TensorRow,
    TransposeRow,
    TrialRow,
    VerdictRow,
)
from vitrify.results.streams import StreamRow
from vitrify.results.sweeping import CellRow, CliffRow
from vitrify.results.tasks import FoundRow, StageScore, TaskFacts
from vitrify.results.tracing import TracedRow, TraceRow


class Result(msgspec.Struct, kw_only=True):
    """What all answers share. ``ok`` is false when a finding is an error or the check failed."""

    schema_version: int = SCHEMA_VERSION
    command: str = ""
    ok: bool = True
    findings: list[Finding] = []


class FailureResult(Result):
    """The answer of a command that could not be carried out."""


class InspectResult(Result):
    """What a file holds. ``preprocess`` is how the files that it was calibrated on became its input."""

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
    quantization: list[QuantizationRow] = []
    preprocess: dict[str, Any] = {}
    streams: list[StreamRow] = []


class ConvertResult(Result):
    """What a conversion wrote. ``peak_bytes`` is the largest resident size of any process that took part."""

    output: str = ""
    seconds: float = 0.0
    peak_bytes: int = 0
    operators: dict[str, int] = {}
    float_operators: int = 0
    transposes: int = 0
    transposes_left: list[TransposeRow] = []
    ledger: list[LedgerRow] = []
    inputs: list[TensorRow] = []
    outputs: list[TensorRow] = []
    bytes: int = 0


class QuantizeResult(ConvertResult):
    """What a quantization wrote."""

    calibration: CalibrationFacts | None = None
    recipe: str = ""
    quality: ComparisonRow | None = None
    conflicts: list[ConflictRow] = []
    analysis: AnalysisRow | None = None


class RecipeRow(msgspec.Struct, kw_only=True):
    """A recipe that comes along: what it is for, what it sets besides the defaults, and its text in TOML."""

    name: str
    description: str = ""
    sets: dict[str, Any] = {}
    toml: str = ""


class RecipesResult(Result):
    """The recipes that come along. ``name``: the only one that was asked for."""

    name: str = ""
    recipes: list[RecipeRow] = []


class CheckResult(Result):
    """Where each node of a model would run on a target, and what to do about what does not run on the NPU.

    ``kind`` is that of the file, ``form`` what was judged: ``as it is``, ``quantized`` with the samples given,
    ``quantized on random values`` (where nodes run does not depend on the values), ``fixed`` or ``compiled``.
    ``as_it_is`` are the shares of the file before that, ``judges`` who gave the verdicts. ``output`` is the file that
    fixing wrote, ``fixes`` what it did. ``contract`` says how real values become what the judged file takes, and back.
    """

    target: str = ""
    kind: str = ""
    form: str = "as it is"
    judges: list[str] = []
    coverage: Coverage = msgspec.field(default_factory=Coverage)
    as_it_is: Coverage | None = None
    diagnoses: list[DiagnosisRow] = []
    verdicts: list[VerdictRow] = []
    partitions: list[PartitionRow] = []
    ledger: list[LedgerRow] = []
    estimate: Estimate | None = None
    output: str = ""
    fixes: FixOutcome | None = None
    contract: list[QuantizationRow] = []

    def __str__(self) -> str:
        share = "unknown" if self.coverage.nodes is None else f"{self.coverage.nodes:.1%}"
        lines = [f"{self.target}: {share} of the nodes on the NPU, {counted(len(self.partitions), 'partition')}"]
        lines += [
            f"  {v.node} ({v.operator}) on the CPU: {'; '.join(r.headline for r in v.rules) or 'no reason given'}"
            for v in self.verdicts
            if v.placement == "cpu"
        ]
        return "\n".join(lines + [str(f) for f in self.findings])


class ExplainResult(Result):
    """What a code means; without one, all codes."""

    code: str = ""
    explanations: list[ExplanationRow] = []
    codes: list[str] = []


class TargetsResult(Result):
    """The chips that there are. ``name``: the only one that was asked for."""

    name: str = ""
    targets: list[TargetRow] = []


class CompileResult(Result):
    """What the target's compiler made; ``output`` is empty where the compiler is missing, and the rest is then what the
    rules know. ``verification`` compares it with its source, null where nothing could run it; ``first_divergence`` says
    where it differs. ``statistics`` are figures that the compiler prints. ``search`` lists the settings that were
    tried, in order, where any were; ``fixes`` the rewrites of the model that came of it.
    """

    output: str = ""
    target: str = ""
    compiler: str = ""
    compiler_version: str = ""
    seconds: float = 0.0
    peak_bytes: int = 0
    verification: ComparisonRow | None = None
    first_divergence: str | None = None
    statistics: dict[str, int | float | str] = {}
    coverage: Coverage = msgspec.field(default_factory=Coverage)
    placement: PlacementRow = msgspec.field(default_factory=PlacementRow)
    estimate: Estimate = msgspec.field(default_factory=Estimate)
    memory: dict[str, int] = {}
    search: list[TrialRow] = []
    fixes: FixOutcome | None = None


class SweepResult(Result):
    """What a sweep measured, cell by cell, and the steps where it jumps. ``reused`` cells were there before.

    ``output`` is the folder with the same in ``sweep.json``, and as a page in ``sweep.html``.
    """

    model: str = ""
    target: str = ""
    sizes: list[str] = []
    precisions: list[str] = []
    memory_modes: list[str] = []
    cells: list[CellRow] = []
    cliffs: list[CliffRow] = []
    output: str = ""
    reused: int = 0
    workers: int = 0
    seconds: float = 0.0
    cpu_seconds: float = 0.0


class VerifyResult(Result):
    """Stage by stage, tensor by tensor: how far the models agree. ``tensors``: every tensor that both have, with its
    error when the form runs as a whole and when its operators are given the right inputs."""

    stages: list[ComparisonRow] = []
    tensors: list[TracedRow] = []
    first_divergence: str | None = None
    samples: int = 0
    seconds: float = 0.0
    analysis: AnalysisRow | None = None


class TraceResult(Result):
    """One tensor through all stages. ``files``: the pictures that were written."""

    tensor: str = ""
    stages: list[TraceRow] = []
    samples: int = 0
    files: list[str] = []
    seconds: float = 0.0


class DiffResult(Result):
    """How model B differs from model A.

    ``equal``: nothing differs. ``related``: they are forms of one model, as far as their structure tells; ``alike`` is
    the share of the smaller one's nodes that have a counterpart. ``summary`` says the most important in sentences.
    ``counts`` counts the rows of ``nodes`` by relation. ``sources``: what became of each node of an ONNX file A in B.
    ``all``: the text shows every node.
    """

    a: DiffSide = msgspec.field(default_factory=DiffSide)
    b: DiffSide = msgspec.field(default_factory=DiffSide)
    equal: bool = False
    related: bool = True
    alike: float = 0.0
    names_agree: bool = False
    summary: list[str] = []
    counts: dict[str, int] = {}
    inputs: list[EndRow] = []
    outputs: list[EndRow] = []
    nodes: list[NodeRow] = []
    sources: list[SourceRow] = []
    all: bool = False


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


class DoctorResult(Result):
    """What a machine or a board has. ``parts`` one by one, ``served`` what can be done here for each chip (of this
    machine), ``board`` what the board is, ``probe`` the script that asks one."""

    board: BoardRow | None = None
    parts: list[PartRow] = []
    served: list[ServedRow] = []
    probe: str = ""


class RunResult(Result):
    """What models found in the inputs. ``files`` are the pictures written, ``skipped`` counts what cannot be read."""

    models: list[str] = []
    input: str = ""
    facts: TaskFacts = msgspec.field(default_factory=TaskFacts)
    rows: list[FoundRow] = []
    files: list[str] = []
    skipped: int = 0
    seconds: float = 0.0


class EvalResult(Result):
    """How good stages are on one set of samples, by one scorer.

    ``truth`` is ``labels``, or ``first stage`` where the answers of the first stage stand for labels: figures are then
    agreement with it, not accuracy. ``main`` names the metric that ``max_drop`` is about. ``inside`` is the share of
    the workers' time that was spent inside the runtimes, ``skipped`` counts samples that could not be read.
    """

    models: list[str] = []
    data: str = ""
    format: str = ""
    truth: str = "labels"
    facts: TaskFacts = msgspec.field(default_factory=TaskFacts)
    main: str = ""
    stages: list[StageScore] = []
    samples: int = 0
    skipped: int = 0
    max_drop: float | None = None
    workers: int = 0
    reused: int = 0
    inside: float = 0.0
    seconds: float = 0.0
    peak_bytes: int = 0


class ProfileResult(Result):
    """Where the time and the memory of a model go.

    ``basis``: ``measured`` on this machine, or ``estimated`` for ``target``; ``source`` says by what, in words. All
    ``operators`` are of that one basis. ``form`` is how the profiled file came of the model (``as it is``,
    ``converted``, ``quantized on the samples``, ``quantized on random values``, ``with its own scales``).
    ``total_ms`` is the latency of one inference: of a measurement, without the profiler, in the quietest quarter of
    runs; of an estimate, the operators, ``overhead`` included. ``verdicts`` are those of nodes left to the CPU.
    ``float_operators`` and ``float_measurement`` are the same of the float form, where integers were measured beside
    it. ``graph`` is the name of the profiled graph in its file, ``exports`` the files that were written, by what they
    hold.
    """

    model: str = ""
    graph: str = ""
    kind: str = ""
    form: str = ""
    target: str = ""
    basis: str = ""
    source: str = ""
    total_ms: float | None = None
    operators: list[MeasuredRow | EstimatedRow] = []
    overhead: list[OverheadRow] = []
    nodes: int = 0
    bytes: int = 0
    measurement: MeasuredRun | None = None
    float_operators: list[MeasuredRow] = []
    float_measurement: MeasuredRun | None = None
    estimate: Estimate | None = None
    compiler: str = ""
    cycles: CyclesRow | None = None
    coverage: Coverage = msgspec.field(default_factory=Coverage)
    partitions: list[PartitionRow] = []
    verdicts: list[VerdictRow] = []
    roofline: RooflineRow | None = None
    memory: MemoryPlan = msgspec.field(default_factory=MemoryPlan)
    mapping: MappingRow = msgspec.field(default_factory=MappingRow)
    advice: list[AdviceRow] = []
    comparison: ComparedRow | None = None
    gates: list[GateRow] = []
    exports: dict[str, str] = {}


class ReduceResult(Result):
    """The smallest model found that still fails, and how to repeat it.

    ``reason`` is what fails, ``operators`` are those left. ``kept_weights`` name constants that still hold the user's
    values, ``kept_inputs`` says so of the inputs; ``names`` says what names the inputs left had. ``finished``: nothing
    more could be left out. ``confirmed``: the written files failed once more, in a fresh folder.
    """

    model: str = ""
    output: str = ""
    file: str = ""
    reason: str = ""
    code: str = ""
    repeat: str = ""
    operators: list[str] = []
    names: dict[str, str] = {}
    nodes_before: int = 0
    nodes_after: int = 0
    bytes_before: int = 0
    bytes_after: int = 0
    kept_weights: list[str] = []
    kept_inputs: bool = False
    steps: list[ReduceStep] = []
    tries: int = 0
    reused: int = 0
    finished: bool = True
    confirmed: bool = False
    seconds: float = 0.0


class BisectResult(Result):
    """What brings the error of a model: passes, operators. ``float_db`` and ``integer_db`` are the SQNR of the worst
    output after all passes and after quantization, ``least_db`` is what was asked for; null is no error at all."""

    model: str = ""
    float_db: float | None = None
    integer_db: float | None = None
    least_db: float = 0.0
    output: str = ""
    culprits: list[BisectRow] = []
    samples: int = 0
    runs: int = 0
    seconds: float = 0.0


class MeasureResult(Result):
    """A measurement of a board that was taken in, and how far estimates are off.

    ``file`` keeps the measurements; of this target ``measurements`` are used. ``corrected_ms`` is the estimate as all
    of them correct it. The errors are medians over them, relative to what was measured: without any correction, with
    the correction that all give, and with each corrected by the others alone (null with fewer than two).
    """

    model: str = ""
    target: str = ""
    side: str = ""
    threads: int = 1
    source: str = ""
    file: str = ""
    measured_ms: float = 0.0
    estimated_ms: float = 0.0
    corrected_ms: float = 0.0
    parts: list[MeasuredPart] = []
    measurements: int = 0
    error_before: float | None = None
    error_after: float | None = None
    error_of_others: float | None = None


RESULTS: dict[str, type[Result]] = {
    "inspect": InspectResult,
    "convert": ConvertResult,
    "quantize": QuantizeResult,
    "recipes": RecipesResult,
    "check": CheckResult,
    "explain": ExplainResult,
    "targets": TargetsResult,
    "compile": CompileResult,
    "sweep": SweepResult,
    "verify": VerifyResult,
    "trace": TraceResult,
    "diff": DiffResult,
    "build": BuildResult,
    "doctor": DoctorResult,
    "profile": ProfileResult,
    "run": RunResult,
    "eval": EvalResult,
    "reduce": ReduceResult,
    "bisect": BisectResult,
    "measure": MeasureResult,
}
"""The answer of each command."""
