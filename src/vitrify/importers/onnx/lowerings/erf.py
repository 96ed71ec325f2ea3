"""The error function, which TFLite has no operator for."""

from __future__ import annotations

import vitrify.ops as ops
from vitrify.importers.onnx.context import Context
from vitrify.importers.onnx.lowerings.window import float_input
from vitrify.importers.onnx.parts.formulas import power_series, step
from vitrify.importers.onnx.registry import lowering
from vitrify.importers.onnx.source import SourceNode

LIMIT = 3.95
"""Beyond it, erf is 1 to within 3e-8, half a unit of float32's last place."""
SERIES = (
    1.1283797054676052,
    0.10276548147393276,
    -0.00018438373628267338,
    -0.0006257195296115973,
    8.971256852763264e-05,
    -5.9856872484401366e-06,
    1.5896000944096244e-07,
)
"""Of atanh(erf(x)) / x in x squared: a least-squares fit over [0, LIMIT], weighted until the largest error is least.

tanh of it is off by at most 5.8e-8 in real arithmetic and 1.4e-7 in float32; relative 6e-7 around 0.
"""


@lowering("Erf")
def erf(ctx: Context, node: SourceNode) -> None:
    """tanh(x * series(x * x)): odd, monotonous, without a division, and exact to float32's last places everywhere.

    The other way, 2 * Gelu(x * sqrt(2)) / (x * sqrt(2)) - 1, is 0 / 0 at 0 and loses all digits around it.
    """
    x = float_input(ctx, node, 0)
    x = step(ctx, ops.Minimum, step(ctx, ops.Maximum, x, -LIMIT), LIMIT)
    series = power_series(ctx, step(ctx, ops.Mul, x, x), SERIES)
    ctx.bind(node, ctx.emit(ops.Tanh(), [step(ctx, ops.Mul, x, series)]))
