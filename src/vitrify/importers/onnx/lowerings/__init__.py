"""The lowerings, a family of operators per file; importing this package registers them all."""

from vitrify.importers.onnx.lowerings import (
    activation,
    convolution,
    elementwise,
    indexing,
    joining,
    logic,
    matmul,
    normalization,
    padding,
    pooling,
    recurrent,
    reduction,
    resize,
    shape,
    transposed,
)
from vitrify.importers.onnx.registry import LOWERINGS

__all__ = [
    "LOWERINGS",
    "activation",
    "convolution",
    "elementwise",
    "indexing",
    "joining",
    "logic",
    "matmul",
    "normalization",
    "padding",
    "pooling",
    "recurrent",
    "reduction",
    "resize",
    "shape",
    "transposed",
]
