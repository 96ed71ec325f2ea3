"""A SOFTMAX of more rows than the NPU counts."""

from __future__ import annotations

from vitrify import ops
from vitrify.ir import Tensor
from vitrify.passes.targets.catalogue import fix
from vitrify.passes.targets.place import Place

_ROWS = 1 << 16
"""Rows that an Ethos-U takes."""
_NEUTRON_ROWS, _NEUTRON_ELEMENTS = 4096, 524288
"""Source: ExecuTorch, backends/nxp, softmax_converter.py (main, 2026-08); the same in the flow before SDK 3.2."""


@fix("softmax-tiles", ops.Softmax, mends=("ethos-u.softmax-size", "neutron.softmax-size"),
     says="takes as many rows at a time as the NPU counts",
     wins="nothing is left to the CPU")
def softmax(place: Place) -> Tensor | None:
    """Rows are independent."""
    x = place.x
    if not x.shape or not place.is_static:
        return None
    rows, depth = x.size // x.shape[-1], x.shape[-1]
    most = min(_NEUTRON_ROWS, _NEUTRON_ELEMENTS // depth) if "num_macs" in place.limits else _ROWS
    if most < 1 or rows <= most:
        return None
    parts = place.count(-(-rows // most))
    while rows % parts:
        parts = place.count(parts + 1)
    flat = place.reshape(x, (parts, 1, rows // parts, depth))
    tiles = [place.add(place.node.op, [place.cut(flat, 0, i, 1)], place.output) for i in range(parts)]
    return place.reshape(place.concat(tiles, 0), x.shape)
