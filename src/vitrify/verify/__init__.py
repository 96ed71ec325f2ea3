"""Prove that forms of one model give the same: ONNX against float TFLite against int8, tensor by tensor."""

from __future__ import annotations

from vitrify.verify.compare import Stage, Verification, compare
from vitrify.verify.gate import FLOAT, QUANTIZED, Gate

__all__ = ["FLOAT", "QUANTIZED", "Gate", "Stage", "Verification", "compare"]
