"""Operators of ONNX Runtime that have no form here, refused with what would help."""

from __future__ import annotations

from vitrify.importers.onnx.expansions.registry import Writer, expansion
from vitrify.importers.onnx.source import SourceNode

_REASONS = {
    "Inverse": ("the inverse of a matrix has no TFLite operator", "compute it outside of the model"),
    "NGramRepeatBlock": ("it belongs to the search loop of text generation", "export the network without the search"),
    "BeamSearch": ("it belongs to the search loop of text generation", "export the network without the search"),
    "GreedySearch": ("it belongs to the search loop of text generation", "export the network without the search"),
    "Sampling": ("it draws random numbers", "export the network without the sampling"),
    "Unique": ("the shape of its result depends on the values", "compute it outside of the model"),
    "PackedAttention": ("its rows have lengths of their own", "export without removing the padding"),
    "PackedMultiHeadAttention": ("its rows have lengths of their own", "export without removing the padding"),
    "RemovePadding": ("the shape of its result depends on the values", "export without removing the padding"),
    "RestorePadding": ("the shape of its input depends on values", "export without removing the padding"),
    "Tokenizer": ("strings have no TFLite form", "split text into numbers outside of the model"),
}


@expansion(*(f"com.microsoft::{kind}" for kind in _REASONS))
def refuse(w: Writer, node: SourceNode) -> str:
    """Say why."""
    raise node.unsupported(*_REASONS[node.kind])


@expansion("com.microsoft.nchwc::Conv", "com.microsoft.nchwc::MaxPool", "com.microsoft.nchwc::AveragePool",
           "com.microsoft.nchwc::GlobalAveragePool", "com.microsoft.nchwc::GlobalMaxPool",
           "com.microsoft.nchwc::ReorderInput", "com.microsoft.nchwc::ReorderOutput", "com.microsoft.nchwc::Upsample")
def refuse_blocked(w: Writer, node: SourceNode) -> str:
    """Say that the file was optimized for one processor."""
    raise node.unsupported(
        "its channels stand in blocks for one processor's instructions",
        "save the optimized model with graph_optimization_level = ORT_ENABLE_EXTENDED, or give the file before it")
