"""What a comparison must reach: thresholds as data."""

from __future__ import annotations

import msgspec


class Gate(msgspec.Struct, frozen=True, kw_only=True):
    """The least SQNR in dB of a whole output, of each group of its channels, and of an inner tensor.

    Inner tensors fail nothing; below ``tensor_db`` they are where a failing output's trouble is said to begin.
    """

    output_db: float
    group_db: float
    tensor_db: float


FLOAT = Gate(output_db=90.0, group_db=60.0, tensor_db=60.0)
"""Two float computations of one model differ by roundings only."""

QUANTIZED = Gate(output_db=15.0, group_db=8.0, tensor_db=10.0)
"""Full-integer int8 against float: wide, so that only damaged results fail; scores weigh as much as boxes."""
