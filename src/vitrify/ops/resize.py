"""Resizing of images."""

from __future__ import annotations

from dataclasses import dataclass

from vitrify.ir.operator import Operator, operator


@operator
@dataclass(frozen=True)
class ResizeBilinear(Operator):
    """RESIZE_BILINEAR."""

    name = "RESIZE_BILINEAR"
    options = "ResizeBilinearOptions"
    align_corners: bool = False
    half_pixel_centers: bool = False


@operator
@dataclass(frozen=True)
class ResizeNearestNeighbor(Operator):
    """RESIZE_NEAREST_NEIGHBOR."""

    name = "RESIZE_NEAREST_NEIGHBOR"
    options = "ResizeNearestNeighborOptions"
    align_corners: bool = False
    half_pixel_centers: bool = False
