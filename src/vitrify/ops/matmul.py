"""Matrix products.

Source: TFLite kernels/fully_connected.cc, batch_matmul.cc.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from vitrify.core.findings import Finding
from vitrify.ir.dtypes import DType
from vitrify.ir.graph import Node
from vitrify.ir.operator import Operator, operator
from vitrify.ops import legality, versions
from vitrify.ops.attributes import Activation
from vitrify.ops.base import Array, Arrays, Inputs, TensorType, broadcast, expect, expect_rank, given
from vitrify.ops.elementwise import activate
from vitrify.ops.int8 import Int8Rule


@operator
class FullyConnected(Operator):
    """x times the transposed weights.

    Inputs:  x [...] read as rows of I elements, weights [O,I], bias [O] (may be left out)
    Outputs: y [rows,O], or x's shape with O as last extent when ``keep_num_dims``
    """

    name = "FULLY_CONNECTED"
    options = "FullyConnectedOptions"
    int8 = Int8Rule(weight=1, weight_axis=0, bias=2)
    fused_activation_function: Activation = Activation.NONE
    weights_format: int = 0
    keep_num_dims: bool = False
    asymmetric_quantize_inputs: bool = False
    quantized_bias_type: int = 0
    quant_spec: tuple[int, ...] = ()

    def _shape(self, inputs: Inputs | Arrays) -> tuple[int, ...]:
        x, w = (v.shape for v in (inputs[0], inputs[1]) if v is not None)
        expect(self, self.weights_format == 0, "has shuffled weights, which only old Arm kernels read", inputs)
        expect_rank(self, inputs, 1, 2)
        size = math.prod(x)
        expect(self, w[1] > 0 and size % w[1] == 0,
               f"has weights for rows of {w[1]}, which {size} elements of x do not fill", inputs)
        if not self.keep_num_dims:
            return size // w[1], w[0]
        expect(self, x[-1:] == w[1:], f"keeps dimensions, but the last extent of x is {x[-1:]}, not {w[1]}", inputs)
        return (*x[:-1], w[0])

    def infer(self, inputs: Inputs) -> list[TensorType]:
        """Return the type of y."""
        x, w = given(self, inputs, 2, 3)
        bias = inputs[2] if len(inputs) > 2 else None
        shape = self._shape(inputs)
        if bias is not None:
            expect(self, bias.size == w.shape[0], f"has {bias.size} biases for {w.shape[0]} outputs", inputs)
        return [TensorType(x.dtype, shape)]

    def evaluate(self, inputs: Arrays) -> list[Array]:
        """Multiply, add the bias, activate."""
        x, w = given(self, inputs, 2, 3)
        shape = self._shape(inputs)
        out = x.reshape(-1, w.shape[1]) @ w.T
        bias = inputs[2] if len(inputs) > 2 else None
        out = out if bias is None else out + bias.reshape(-1)
        return [activate(out, self.fused_activation_function).reshape(shape)]

    def macs(self, node: Node) -> int:
        """One for each output element and input of its row."""
        return node.output.size * node.input(1).shape[-1]

    def version(self, node: Node) -> int:
        """Return the version that the types and attributes need."""
        x, weights = node.input(0).dtype, node.input(1).dtype
        hybrid = versions.is_hybrid(node)
        if (x, weights) == (DType.INT16, DType.INT4):
            return 13
        if hybrid and versions.has_axis(node, 1):
            return 12
        if (x, weights) == (DType.INT16, DType.INT8) and self.quantized_bias_type:
            return 11
        if "sparsity" in node.input(1).extras:
            return 8
        if versions.is_all(node, DType.INT16):
            return 7
        if len(node.inputs) == 2:
            return 6
        if self.keep_num_dims:
            return 5
        if hybrid:
            return 9 if self.asymmetric_quantize_inputs else 3
        plain = 2 if self.weights_format else 1
        return {(DType.INT8, DType.INT8): 4, (DType.INT8, DType.INT4): 10}.get((x, weights), plain)

    def check(self, node: Node) -> Iterator[Finding]:
        """Yield what the runtime would refuse or die of."""
        if self.weights_format:
            yield legality.finding(node, "ops.weights_format", "has shuffled weights, which only old Arm kernels read",
                                   help="convert the model again with the default weights format")


@operator
class BatchMatMul(Operator):
    """Matrix products of x [...,M,K] and y [...,K,N], whose leading axes broadcast; ``adj`` transposes the last two."""

    name = "BATCH_MATMUL"
    options = "BatchMatMulOptions"
    int8 = Int8Rule()
    adj_x: bool = False
    adj_y: bool = False
    asymmetric_quantize_inputs: bool = False

    def infer(self, inputs: Inputs) -> list[TensorType]:
        """Return the type of the products."""
        x, y = given(self, inputs, 2)
        expect(self, min(len(x.shape), len(y.shape)) >= 2, "needs at least 2 dimensions in both inputs", inputs)
        rows, inner = x.shape[:-3:-1] if self.adj_x else x.shape[-2:]
        other, columns = y.shape[:-3:-1] if self.adj_y else y.shape[-2:]
        expect(self, inner == other, f"multiplies {rows}x{inner} by {other}x{columns} matrices", inputs)
        return [TensorType(x.dtype, (*broadcast(self, inputs, x.shape[:-2], y.shape[:-2]), rows, columns))]

    def evaluate(self, inputs: Arrays) -> list[Array]:
        """Multiply."""
        x, y = given(self, inputs, 2)
        expect(self, min(x.ndim, y.ndim) >= 2, "needs at least 2 dimensions in both inputs", inputs)
        return [np.matmul(np.swapaxes(x, -1, -2) if self.adj_x else x, np.swapaxes(y, -1, -2) if self.adj_y else y)]

    def macs(self, node: Node) -> int:
        """One for each output element and element of its row."""
        return node.output.size * node.input(0).shape[-2 if self.adj_x else -1]

    def version(self, node: Node) -> int:
        """Return the version that the types and attributes need."""
        if versions.is_hybrid(node) and self.asymmetric_quantize_inputs:
            return 4
        return versions.INT8_INT16.get(node.input(0).dtype, 1)

    def check(self, node: Node) -> Iterator[Finding]:
        """Yield what the runtime would refuse or die of."""
        yield from legality.too_many_axes(node, 5)
