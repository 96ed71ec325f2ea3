"""Changes of element type and of quantization.

Source: TFLite kernels/quantize.cc, dequantize.cc, cast.cc, fake_quant.cc, densify.cc.
"""

from __future__ import annotations

import numpy as np

from vitrify.core.errors import UnsupportedError
from vitrify.ir.dtypes import DType
from vitrify.ir.graph import Node
from vitrify.ir.operator import Operator, operator
from vitrify.ops import versions
from vitrify.ops.base import Array, Arrays, Inputs, TensorType, expect, given
from vitrify.ops.elementwise import Elementwise
from vitrify.ops.int8 import Int8Rule


@operator
class Quantize(Operator):
    """Real values to steps, or steps to other steps; the output tensor names scale, zero point and type."""

    name = "QUANTIZE"
    options = "QuantizeOptions"
    int8 = Int8Rule()

    def infer(self, inputs: Inputs) -> list[TensorType]:
        """Return int8 for real values, else the input's type; the output tensor may say another."""
        (x,) = given(self, inputs, 1)
        return [TensorType(DType.INT8 if x.dtype.is_float else x.dtype, x.shape)]

    def version(self, node: Node) -> int:
        """Return the version that the types and attributes need."""
        if DType.INT4 in (node.input(0).dtype, node.output.dtype):
            return 4
        per_axis = node.output.quantization is not None and node.output.quantization.is_per_axis
        return 3 if per_axis else (2 if node.output.dtype is DType.INT16 else 1)


@operator
class Dequantize(Operator):
    """Steps, or half-precision values, to float32."""

    name = "DEQUANTIZE"
    options = "DequantizeOptions"

    def infer(self, inputs: Inputs) -> list[TensorType]:
        """Return float32 of the input's shape."""
        (x,) = given(self, inputs, 1)
        return [TensorType(DType.FLOAT32, x.shape)]

    def evaluate(self, inputs: Arrays) -> list[Array]:
        """Widen half-precision values; steps need the scale, which only the tensor knows."""
        (x,) = given(self, inputs, 1)
        if x.dtype.kind != "f":
            raise UnsupportedError.of("ops.reference", f"DEQUANTIZE of {x.dtype.name} needs the tensor's scale")
        return [x.astype(np.float32)]

    def version(self, node: Node) -> int:
        """Return the version that the types and attributes need."""
        special = {DType.INT4: 6, DType.INT16: 3, DType.FLOAT16: 3}.get(node.input(0).dtype)
        if special:
            return special
        return (5 if versions.has_axis(node, 0) else 2) if node.input(0).dtype is DType.INT8 else 1


@operator
class Cast(Operator):
    """Values in another element type; real values to integers by cutting off the fraction."""

    name = "CAST"
    options = "CastOptions"
    in_data_type: int = 0
    out_data_type: int = 0

    def infer(self, inputs: Inputs) -> list[TensorType]:
        """Return the named type with the input's shape."""
        (x,) = given(self, inputs, 1)
        expect(self, self.out_data_type in DType._value2member_map_,
               f"names the element type {self.out_data_type}, which does not exist", inputs)
        return [TensorType(DType(self.out_data_type), x.shape)]

    def evaluate(self, inputs: Arrays) -> list[Array]:
        """Convert."""
        (x,) = given(self, inputs, 1)
        wanted = DType(self.out_data_type)
        if wanted.numpy is None:
            raise UnsupportedError.of("ops.reference", f"CAST to {wanted.label} has no numpy reference")
        with np.errstate(invalid="ignore"):      # the runtime gives some integer for nan without a word
            return [x.astype(wanted.numpy)]

    def version(self, node: Node) -> int:
        """Return the version that the types and attributes need."""
        types = (node.input(0).dtype, node.output.dtype)
        if DType.BFLOAT16 in types:
            return 7
        if types == (DType.INT4, DType.FLOAT32):
            return 6
        if DType.FLOAT64 in types or DType.FLOAT16 in types:
            return 5
        return next((v for t, v in ((DType.UINT16, 4), (DType.INT8, 3), (DType.UINT32, 2)) if t in types), 1)


@operator
class FakeQuant(Elementwise):
    """Real values rounded to the steps of a range, still real."""

    name = "FAKE_QUANT"
    options = "FakeQuantOptions"
    min: float = 0.0
    max: float = 0.0
    num_bits: int = 0
    narrow_range: bool = False

    def infer(self, inputs: Inputs) -> list[TensorType]:
        """Return the input's type; the range must not be empty."""
        (x,) = given(self, inputs, 1)
        expect(self, self.min <= 0 <= self.max and self.min < self.max,
               f"needs a range around 0, got {self.min:g} to {self.max:g}", inputs)
        return [x.type]

    def compute(self, x: Array) -> Array:
        """Return the rounded values, the range nudged so that 0 is a step."""
        low, high = float(self.narrow_range), float(2**self.num_bits - 1)
        step = np.float32((self.max - self.min) / (high - low))
        zero = np.float32(np.clip(np.floor(low - self.min / step + 0.5), low, high))
        least, most = (np.float32(low) - zero) * step, (np.float32(high) - zero) * step
        steps = np.floor((np.clip(x, least, most) - least) / step + np.float32(0.5))
        return np.asarray(steps * step + least)

    def version(self, node: Node) -> int:
        """Return the version that the types and attributes need."""
        return 2 if self.narrow_range else 1


@operator
class Densify(Elementwise):
    """A sparse constant as a dense tensor; constants are dense here already."""

    name = "DENSIFY"
    options = "DensifyOptions"

    def compute(self, x: Array) -> Array:
        """Return the values."""
        return x
