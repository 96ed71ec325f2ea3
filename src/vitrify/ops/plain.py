"""The element types that an operator's kernel takes without quantization.

Each class names its own in ``plain``, as found by running models of one operator in LiteRT 2.3's reference and plain
kernels and comparing with the numpy reference. The rest is refused at run time, ends the process, or gives wrong
values: an int8 ADD without scales, for instance, ends it. Half and double precision are left out: they are held as
float32.
"""

from __future__ import annotations

from functools import cache

from vitrify.ir.dtypes import DType

_SMALL = (DType.BOOL, DType.INT8, DType.UINT8, DType.INT16, DType.UINT16)


@cache
def types(names: str) -> frozenset[DType]:
    """The element types of these names."""
    return frozenset(DType[name.upper()] for name in names.split())


def wider(dtype: DType, taken: frozenset[DType]) -> DType | None:
    """The type of ``taken`` that holds every value of ``dtype``, rather an integer than a float; None if none does."""
    if dtype in taken:
        return dtype
    if dtype in _SMALL:
        return next((t for t in (DType.INT32, DType.FLOAT32) if t in taken), None)
    return None
