"""Element types, named and numbered as the TFLite schema has them."""

from __future__ import annotations

from enum import Enum
from functools import cache, cached_property

import numpy as np

_BITS = {"INT4": 4, "UINT4": 4, "INT2": 2, "BFLOAT16": 16, "FLOAT8_E4M3FN": 8, "FLOAT8_E5M2": 8}
"""Bits of the types that numpy does not have."""


class DType(Enum):
    """An element type. The value is its number in the TFLite schema's ``TensorType``."""

    FLOAT32 = 0
    FLOAT16 = 1
    INT32 = 2
    UINT8 = 3
    INT64 = 4
    STRING = 5
    BOOL = 6
    INT16 = 7
    COMPLEX64 = 8
    INT8 = 9
    FLOAT64 = 10
    COMPLEX128 = 11
    UINT64 = 12
    RESOURCE = 13
    VARIANT = 14
    UINT32 = 15
    UINT16 = 16
    INT4 = 17
    BFLOAT16 = 18
    INT2 = 19
    UINT4 = 20
    FLOAT8_E4M3FN = 21
    FLOAT8_E5M2 = 22

    @cached_property
    def numpy(self) -> np.dtype | None:
        """The numpy type of one element, None where numpy has none (strings, resources, packed sub-byte types)."""
        name = {"bool": "bool_"}.get(self.name.lower(), self.name.lower())
        scalar = getattr(np, name, None) if self not in (DType.STRING,) else None
        return np.dtype(scalar) if isinstance(scalar, type) and issubclass(scalar, np.generic) else None

    @cached_property
    def bits(self) -> int:
        """Bits per element in memory; 0 for types without a size (strings, resources)."""
        if self.numpy is not None:
            return self.numpy.itemsize * 8
        return _BITS.get(self.name, 0)

    @property
    def is_float(self) -> bool:
        """True for the real floating types."""
        return self in (DType.FLOAT32, DType.FLOAT16, DType.FLOAT64, DType.BFLOAT16,
                        DType.FLOAT8_E4M3FN, DType.FLOAT8_E5M2)

    @property
    def label(self) -> str:
        """The name as shapes are printed: ``int8[1,224,224,3]``."""
        return self.name.lower()

    @classmethod
    def of(cls, dtype: np.dtype | type) -> DType:
        """Return the type of a numpy array's elements.

        Raises:
            KeyError: numpy type without a TFLite counterpart.
        """
        name = np.dtype(dtype).name
        return cls[name.upper()]


@cache
def element_type(name: str) -> np.dtype:
    """The numpy type of this name; that of the `ml_dtypes` package for those that numpy does not have.

    Where the package is missing, small floats are float32 and small integers 8 bits wide: types with all their values.
    """
    try:
        return np.dtype(name)
    except TypeError:
        pass
    try:
        import ml_dtypes
    except ModuleNotFoundError:
        return np.dtype("uint8" if name.startswith("uint") else "int8" if name.startswith("int") else "float32")
    found: np.dtype = np.dtype(getattr(ml_dtypes, name))
    return found


def is_float(dtype: np.dtype) -> bool:
    """True for real floats, those of `ml_dtypes` included, which numpy does not count among its own."""
    return "float" in dtype.name
