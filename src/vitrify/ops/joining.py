"""Joining and cutting along axes."""

from __future__ import annotations

from dataclasses import dataclass

from vitrify.ir.operator import Operator, operator
from vitrify.ops.attributes import Activation


@operator
@dataclass(frozen=True)
class Concatenation(Operator):
    """CONCATENATION."""

    name = "CONCATENATION"
    options = "ConcatenationOptions"
    axis: int = 0
    fused_activation_function: Activation = Activation.NONE


@operator
@dataclass(frozen=True)
class Pack(Operator):
    """PACK."""

    name = "PACK"
    options = "PackOptions"
    values_count: int = 0
    axis: int = 0


@operator
@dataclass(frozen=True)
class Unpack(Operator):
    """UNPACK."""

    name = "UNPACK"
    options = "UnpackOptions"
    num: int = 0
    axis: int = 0


@operator
@dataclass(frozen=True)
class Split(Operator):
    """SPLIT."""

    name = "SPLIT"
    options = "SplitOptions"
    num_splits: int = 0


@operator
@dataclass(frozen=True)
class SplitV(Operator):
    """SPLIT_V."""

    name = "SPLIT_V"
    options = "SplitVOptions"
    num_splits: int = 0


@operator
@dataclass(frozen=True)
class Slice(Operator):
    """SLICE."""

    name = "SLICE"
    options = "SliceOptions"


@operator
@dataclass(frozen=True)
class StridedSlice(Operator):
    """STRIDED_SLICE."""

    name = "STRIDED_SLICE"
    options = "StridedSliceOptions"
    begin_mask: int = 0
    end_mask: int = 0
    ellipsis_mask: int = 0
    new_axis_mask: int = 0
    shrink_axis_mask: int = 0
    offset: bool = False


@operator
@dataclass(frozen=True)
class DynamicUpdateSlice(Operator):
    """DYNAMIC_UPDATE_SLICE."""

    name = "DYNAMIC_UPDATE_SLICE"
    options = "DynamicUpdateSliceOptions"
