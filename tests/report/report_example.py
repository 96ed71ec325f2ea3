"""A run's record with something in every section, and names that try to break out of the page."""

from __future__ import annotations

from pathlib import Path

from vitrify.core.findings import Finding, Severity
from vitrify.results import (
    AnalysisRow,
    Artifact,
    BindingRow,
    CalibrationFacts,
    ComparisonRow,
    Coverage,
    DistributionRow,
    ErrorRow,
    Estimate,
    FigureRow,
    GroupRow,
    LedgerRow,
    ModelFacts,
    OperatorRow,
    PartitionRow,
    PictureRow,
    PlacementRow,
    ProfileResult,
    RuleRow,
    RunRecord,
    ScoreRow,
    StageRecord,
    TensorRow,
    TransposeRow,
    VerdictRow,
)
from vitrify.results.profiling import (
    AdviceRow,
    ComparedRow,
    CyclesRow,
    DeltaRow,
    EstimatedRow,
    FormRow,
    GateRow,
    InsertedRow,
    LayerRow,
    LifeRow,
    MappedRow,
    MappingRow,
    MemoryPlan,
    ModeRow,
    OverheadRow,
    PairRow,
    RooflineRow,
)

HOSTILE = "</script></style><img src=x onerror=alert(1)>\"'&{{body}}"
PNG = bytes.fromhex("89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de0000000c4944415408d763f8cfc000"
                    "000301010018dd8db00000000049454e44ae426082")


def profiled(name: str = HOSTILE) -> ProfileResult:
    """Return a profile with something of everything; every text that a model's author can choose is ``name``."""
    layer = LayerRow(name=name, operator="Conv2D", cycles=900)
    rows = [EstimatedRow(index=0, node="conv", operator="CONV_2D", placement="npu", time_ms=3.0, share=0.6, bytes=900,
                         macs=4000, shape=[1, 8], dtype="int8", origin=["source", name], bound="memory", low_ms=2.0,
                         high_ms=5.0, cycles=900, compute_cycles=100, near_cycles=50, far_cycles=900, far_bytes=800,
                         utilisation=0.1, partition=0, layers=[layer], source=name),
            EstimatedRow(index=1, node=name, operator=name, placement="cpu", time_ms=2.0, share=0.4, bytes=100,
                         shape=[1, 8], dtype=name, origin=[name], after=[0], partition=1, bound="elements"),
            EstimatedRow(index=2, node="reshape", operator="RESHAPE", placement="folded", time_ms=0.0, after=[0, 1])]
    lives = [LifeRow(tensor=name, bytes=400, first=0, last=2, maker="conv", offset=0, fits=True),
             LifeRow(tensor=f"{name}1", bytes=300, first=1, last=2, maker=name, offset=400)]
    form = FormRow(nodes=["conv", name], operators=["CONV_2D", name], types=["int8"], time_ms=3.0, bytes=900,
                   placement="npu, cpu")
    kept = MappedRow(name=name, operator=name, how="split", passes=[name], float_form=form, integer_form=form)
    gone = MappedRow(name="gone", operator="Identity", how="folded", into=[name], passes=["folding"])
    return ProfileResult(
        command="profile", model=name, graph=name, kind="int8", form="as it is", target="imx93", basis="estimated",
        source=name, total_ms=5.0, operators=rows, overhead=[OverheadRow(what=name, time_ms=0.1, cycles=7)], nodes=3,
        bytes=1234, estimate=Estimate(latency_ms=5.0, low_ms=4.0, high_ms=7.0, source=name, assumptions=[name]),
        compiler=name, cycles=CyclesRow(total=1000, operators=900, overhead=100),
        coverage=Coverage(nodes=0.5, macs=0.9, time=0.8),
        partitions=[PartitionRow(index=0, placement="npu", nodes=["conv"]),
                    PartitionRow(index=1, placement="cpu", nodes=[name])],
        verdicts=[VerdictRow(node=name, operator=name, placement="cpu",
                             rules=[RuleRow(code="U65-1", headline=name, why=name, help=name)])],
        roofline=RooflineRow(peak_macs_per_s=256e9, bytes_per_s=7.36e9, ridge=34.8, basis="assumed", source=name),
        memory=MemoryPlan(arena_bytes=700, planner=name, live_bytes=700, peak_index=1, peak_node=name,
                          alive=[name, "b"], weights_bytes=99, reserve_bytes=700, reserve_why=name,
                          near_limit_bytes=512, near_used_bytes=400, beyond=[name], lives=lives,
                          modes=[ModeRow(mode=name, says=name, usual=True, latency_ms=5.0, near_bytes=1, far_bytes=2,
                                         far_traffic_bytes=3), ModeRow(mode="other", problem=name)]),
        mapping=MappingRow(source=name, forms=["float", "integer"], counts={"split": 1, "folded": 1},
                           nodes=[kept, gone], inserted=[InsertedRow(form="integer", node=name, operator=name,
                                                                     passes=[name], time_ms=0.5)]),
        advice=[AdviceRow(kind="slow", headline=name, nodes=["conv", name], why=name, help=name, share=0.6,
                          source=name)],
        comparison=ComparedRow(before=name, after=name, basis="estimated", noise_ms=0.1,
                               figures=[DeltaRow(name="latency_ms", before=4.0, after=5.0, change=0.25)],
                               operators=[PairRow(before=["conv"], after=["conv"], operators=["CONV_2D"],
                                                  before_ms=2.5, after_ms=3.0, change_ms=0.5)]),
        gates=[GateRow(expression="latency_ms>+5%", value=0.25, limit=0.05, failed=True, text=name)])


def example(name: str = HOSTILE) -> RunRecord:
    """Return the record; every text that a model's author can choose is ``name``."""
    tensor = TensorRow(name=name, shape=[1, 8], dtype="int8", scale=0.5, zero_point=-3, real_min=-62.5, real_max=65.0)
    facts = ModelFacts(file=name, kind="int8", bytes=1234, inputs=[tensor], outputs=[tensor],
                       operators={name: 2, "ADD": 1}, parameters=77, transposes=1,
                       transposes_left=[TransposeRow(node=name, between=[name, "the head"], reason="tokens are mixed",
                                                     bytes=4096)])
    rows = [ErrorRow(tensor=f"{name}{index}", operator=name, sqnr_db=40.0 - index, cosine=0.99, largest_error=0.1,
                     aligned=index != 7, note=name if index == 7 else "")
            for index in range(30)]
    output = ErrorRow(tensor=name, sqnr_db=31.5, cosine=0.999, max_lsb=3.0, largest_error=0.2, ok=False, reason=name,
                      groups=[GroupRow(name=name, sqnr_db=2.0, ok=False, reason=name)])
    compared = ComparisonRow(name=name, reference=name, samples=1, ok=False, outputs=[output], tensors=rows)
    verdicts = [VerdictRow(node=name, operator=name, placement="cpu", origin=[name, "source"],
                           rules=[RuleRow(code="U65-1", headline=name, why=name, help=name)]),
                VerdictRow(node="conv", operator="CONV_2D", placement="npu", cycles=1000),
                VerdictRow(node="reshape", operator="RESHAPE", placement="folded")]
    partitions = [PartitionRow(index=0, placement="npu", nodes=["conv"], bytes_in=10, bytes_out=20, time_ms=1.0),
                  PartitionRow(index=1, placement="cpu", nodes=[name], bytes_in=20, bytes_out=5)]
    ledger = [LedgerRow(name=name, summary=name, changes=2, nodes_before=5, nodes_after=3, examples=[name],
                        transposes_before=2, transposes_after=0, largest_error=1e-6, exactness="rounding")]
    return RunRecord(
        name=name, model=name, target="imx93", command=["vitrify", "build", name], status="failed", verdict=name,
        started="2026-01-01T00:00:00+00:00", seconds=12.5, versions={"vitrify": "0.1.0"},
        input_hashes={"model": "abc"}, options={"x": name},
        stages=[StageRecord(name="import", status="done", seconds=0.5, text=name),
                StageRecord(name="compile", status="failed", seconds=1.5)],
        artifacts={"int8": Artifact(file=name, bytes=5, hash="ab")},
        findings=[Finding(code="x.y", headline=name, where=name, why=name, help=name),
                  Finding(code="x.z", headline="mild", severity=Severity.INFO)],
        float_model=facts, int8_model=facts, ledger=ledger, quantization_ledger=ledger,
        calibration=CalibrationFacts(samples=3, data=name, random=True, calibrator="minmax", seed=0),
        verify_float=compared, verify_int8=compared, coverage=Coverage(nodes=0.5, macs=0.9, time=0.8),
        placement=PlacementRow(npu=1, cpu=1, folded=1, verdicts=verdicts, partitions=partitions),
        estimate=Estimate(latency_ms=5.0, low_ms=4.0, high_ms=7.0, source=name, assumptions=[name]),
        analysis=AnalysisRow(
            reference=name, candidate=name, samples=2, sensitive_of=1, operators=[
                OperatorRow(node=name, operator="CONV_2D", tensor=name, origin=[name], bits=8, cause=name, share=0.25,
                            alone_db=31.5, single=FigureRow(sqnr_db=40.0, cosine=0.99, max_lsb=1.0))],
            distributions=[DistributionRow(tensor=name, operator="CONV_2D", low=-1.0, high=2.0, float_counts=[1, 0, 5],
                                           integer_counts=[2, 0, 4], saturated=0.25, dead=0.5, levels=17)]),
        profile=profiled(name),
        interface=[BindingRow(side="out", name=name, shape=[1, 2], dtype="float32", steps=[name, "join"])],
        memory={"arena_bytes": 1000, "sram_bytes": 500},
        pictures=[PictureRow(name=name, task="detection", input="in.png", float_picture="in.png", int8_picture="in.png",
                             text=name),
                  PictureRow(name=name, task="classification", input="in.png",
                             float_scores=[ScoreRow(label=name, value=0.9)],
                             int8_scores=[ScoreRow(label=name, value=0.8)])])


def example_folder(folder: Path) -> Path:
    """Put the pictures that the example names into ``folder``."""
    (folder / "in.png").write_bytes(PNG)
    return folder
