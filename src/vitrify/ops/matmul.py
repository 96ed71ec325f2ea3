"""Matrix products."""

from __future__ import annotations

from dataclasses import dataclass

from vitrify.ir.operator import Operator, operator
from vitrify.ops.attributes import Activation


@operator
@dataclass(frozen=True)
class FullyConnected(Operator):
    """FULLY_CONNECTED."""

    name = "FULLY_CONNECTED"
    options = "FullyConnectedOptions"
    fused_activation_function: Activation = Activation.NONE
    weights_format: int = 0
    keep_num_dims: bool = False
    asymmetric_quantize_inputs: bool = False
    quantized_bias_type: int = 0
    quant_spec: tuple[int, ...] = ()


@operator
@dataclass(frozen=True)
class BatchMatMul(Operator):
    """BATCH_MATMUL."""

    name = "BATCH_MATMUL"
    options = "BatchMatMulOptions"
    adj_x: bool = False
    adj_y: bool = False
    asymmetric_quantize_inputs: bool = False
