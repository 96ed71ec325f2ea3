"""What TFLite files store in another form than this graph computes with."""

from __future__ import annotations

from vitrify.passes.base import Pass
from vitrify.passes.stored.densify import DenseConstants
from vitrify.passes.stored.float_weights import FloatWeights
from vitrify.passes.stored.known_customs import KnownCustoms

STORED: tuple[type[Pass], ...] = (
    DenseConstants,
    FloatWeights,
    KnownCustoms,
)
"""Before everything else: what all other passes take as it is. For models that compute in float."""
