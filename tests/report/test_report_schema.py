"""The schema of the answers: made from the types, and with the keys that the command line promises."""

from __future__ import annotations

import msgspec
import pytest
from report_example import example

from vitrify.report.schema import schema_of, schemas
from vitrify.results import RESULTS, RunRecord

PROMISED = {
    "inspect": "kind inputs outputs operators float_operators transposes npu_graphs",
    "convert": "output seconds peak_bytes operators float_operators transposes ledger",
    "quantize": "output seconds peak_bytes operators float_operators transposes ledger",
    "recipes": "name recipes",
    "check": "target kind form judges coverage as_it_is diagnoses verdicts partitions ledger estimate output fixes "
             "contract",
    "explain": "code explanations codes",
    "targets": "name targets",
    "compile": "output placement estimate memory",
    "diff": "a b equal related alike summary counts inputs outputs nodes sources",
    "sweep": "model target sizes precisions memory_modes cells cliffs output",
    "verify": "stages first_divergence",
    "build": "run artifacts coverage estimate stages",
    "doctor": "board parts served probe",
    "run": "models input facts rows files skipped",
    "eval": "models data format truth facts main stages samples skipped workers",
    "measure": "target side threads measured_ms estimated_ms corrected_ms parts measurements error_before error_after",
    "profile": "model target basis source total_ms operators overhead nodes memory mapping advice comparison gates",
    "reduce": "model output file reason operators steps finished confirmed",
    "trace": "tensor stages samples files",
    "bisect": "model float_db integer_db least_db output culprits",
}
COMMON = "schema_version command ok findings"
PARTS = {
    "Finding": "code severity headline where why help",
    "TensorRow": "name shape dtype scale zero_point",
    "VerdictRow": "node operator placement rules confidence",
    "RuleRow": "code headline why help values nearest fix source confidence versions",
    "DiagnosisRow": "code headline why where command nodes macs time_ms rules",
    "PartitionRow": "index placement nodes bytes_in bytes_out inputs outputs time_ms",
    "Coverage": "nodes macs time",
    "Estimate": "latency_ms low_ms high_ms source",
    "ErrorRow": "tensor sqnr_db cosine max_lsb",
    "CellRow": "size precision memory_mode problem coverage macs latency_ms near_bytes near_limit_bytes far_bytes",
    "MeasuredPart": "side kind count measured_ms estimated_ms corrected_ms",
    "CliffRow": "kind size_before size_after factor headline recommended",
    "ComparisonRow": "name outputs",
}


@pytest.mark.parametrize("command", PROMISED)
def test_promised_keys(command: str) -> None:
    schema = schema_of(command)
    properties = schema["$defs"][schema["$ref"].rpartition("/")[2]]["properties"]
    assert set(f"{COMMON} {PROMISED[command]}".split()) <= set(properties)


def test_promised_parts() -> None:
    known = {name: d for schema in schemas().values() for name, d in schema["$defs"].items()}
    for name, keys in PARTS.items():
        assert set(keys.split()) <= set(known[name]["properties"]), name


def test_there_is_a_schema_for_each_command() -> None:
    assert set(schemas()) == {*RESULTS, "failure", "run.json"}
    assert set(PROMISED) == set(RESULTS)


def test_a_record_reads_back() -> None:
    record = example()
    assert msgspec.json.decode(msgspec.json.encode(record), type=RunRecord) == record
