"""ONNX Runtime on the CPU: the reference for ONNX models."""

from __future__ import annotations

from vitrify.runtimes.onnxruntime.runtime import OnnxRuntime

__all__ = ["OnnxRuntime"]
