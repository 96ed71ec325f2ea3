"""Operators that change the shape and keep every value."""

from __future__ import annotations

from dataclasses import dataclass

from vitrify.ir.operator import Operator, operator


@operator
@dataclass(frozen=True)
class Reshape(Operator):
    """RESHAPE."""

    name = "RESHAPE"
    options = "ReshapeOptions"
    new_shape: tuple[int, ...] = ()


@operator
@dataclass(frozen=True)
class Squeeze(Operator):
    """SQUEEZE."""

    name = "SQUEEZE"
    options = "SqueezeOptions"
    squeeze_dims: tuple[int, ...] = ()


@operator
@dataclass(frozen=True)
class ExpandDims(Operator):
    """EXPAND_DIMS."""

    name = "EXPAND_DIMS"
    options = "ExpandDimsOptions"


@operator
@dataclass(frozen=True)
class Transpose(Operator):
    """TRANSPOSE."""

    name = "TRANSPOSE"
    options = "TransposeOptions"


@operator
@dataclass(frozen=True)
class ReverseV2(Operator):
    """REVERSE_V2."""

    name = "REVERSE_V2"
    options = "ReverseV2Options"


@operator
@dataclass(frozen=True)
class SpaceToDepth(Operator):
    """SPACE_TO_DEPTH."""

    name = "SPACE_TO_DEPTH"
    options = "SpaceToDepthOptions"
    block_size: int = 0


@operator
@dataclass(frozen=True)
class DepthToSpace(Operator):
    """DEPTH_TO_SPACE."""

    name = "DEPTH_TO_SPACE"
    options = "DepthToSpaceOptions"
    block_size: int = 0


@operator
@dataclass(frozen=True)
class SpaceToBatchND(Operator):
    """SPACE_TO_BATCH_ND."""

    name = "SPACE_TO_BATCH_ND"
    options = "SpaceToBatchNDOptions"


@operator
@dataclass(frozen=True)
class BatchToSpaceND(Operator):
    """BATCH_TO_SPACE_ND."""

    name = "BATCH_TO_SPACE_ND"
    options = "BatchToSpaceNDOptions"


@operator
@dataclass(frozen=True)
class Tile(Operator):
    """TILE."""

    name = "TILE"
    options = "TileOptions"


@operator
@dataclass(frozen=True)
class BroadcastTo(Operator):
    """BROADCAST_TO."""

    name = "BROADCAST_TO"
    options = "BroadcastToOptions"


@operator
@dataclass(frozen=True)
class Bitcast(Operator):
    """BITCAST."""

    name = "BITCAST"
    options = "BitcastOptions"
