"""What is known at import is computed at import: shape arithmetic never reaches the graph."""

from vitrify.importers.onnx.folds import arithmetic, resizing, selection, shape
from vitrify.importers.onnx.folds.registry import FOLDS, fold

__all__ = ["FOLDS", "arithmetic", "fold", "resizing", "selection", "shape"]
