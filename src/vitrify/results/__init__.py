"""What every command answers: plain values that JSON, the terminal and the report page are made from.

The names and units here are the documented contract (``schema_version``): a field may be added in any release, but is
renamed or removed only with a new version.
"""

from vitrify.results.commands import (
    RESULTS,
    BuildResult,
    CheckResult,
    CompileResult,
    ConvertResult,
    FailureResult,
    InspectResult,
    QuantizeResult,
    Result,
    VerifyResult,
)
from vitrify.results.record import Artifact, BindingRow, ModelFacts, PictureRow, RunRecord, ScoreRow
from vitrify.results.rows import (
    SCHEMA_VERSION,
    CalibrationFacts,
    ComparisonRow,
    Coverage,
    ErrorRow,
    Estimate,
    FileRow,
    GroupRow,
    LedgerRow,
    Lowest,
    PartitionRow,
    PlacementRow,
    RuleRow,
    StageRecord,
    TensorRow,
    TransposeRow,
    VerdictRow,
)

__all__ = [
    "RESULTS",
    "SCHEMA_VERSION",
    "Artifact",
    "BindingRow",
    "BuildResult",
    "CalibrationFacts",
    "CheckResult",
    "ComparisonRow",
    "CompileResult",
    "ConvertResult",
    "Coverage",
    "ErrorRow",
    "Estimate",
    "FailureResult",
    "FileRow",
    "GroupRow",
    "InspectResult",
    "LedgerRow",
    "Lowest",
    "ModelFacts",
    "PartitionRow",
    "PictureRow",
    "PlacementRow",
    "QuantizeResult",
    "Result",
    "RuleRow",
    "RunRecord",
    "ScoreRow",
    "StageRecord",
    "TensorRow",
    "TransposeRow",
    "VerdictRow",
    "VerifyResult",
]
