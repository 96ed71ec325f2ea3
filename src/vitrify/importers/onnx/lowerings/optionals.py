"""Optional values: in a static graph each is a tensor or is not there. Source: ONNX operator reference, Optional-15."""

from __future__ import annotations

import numpy as np

from vitrify.importers.onnx.context import Context
from vitrify.importers.onnx.registry import lowering
from vitrify.importers.onnx.source import SourceNode


@lowering("OptionalHasElement")
def optional_has_element(ctx: Context, node: SourceNode) -> None:
    """True for a tensor, false for an input that is not given."""
    ctx.bind(node, np.array(ctx.present(node, 0), np.bool_))


@lowering("OptionalGetElement", "Optional")
def optional_get_element(ctx: Context, node: SourceNode) -> None:
    """The tensor itself."""
    if not ctx.present(node, 0):
        raise node.unsupported("it is of a type alone, without a value")
    ctx.bind(node, ctx.value(node, 0))
