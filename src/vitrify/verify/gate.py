"""What a comparison must reach: thresholds as data."""

from __future__ import annotations

import msgspec


class Gate(msgspec.Struct, frozen=True, kw_only=True):
    """The least SQNR in dB of a whole output, of each group of its channels, and of an inner tensor.

    Scores, which stay in 0..1, also pass when no error is larger than ``score_error``: where nothing is found they are
    all close to 0, and a ratio to so small a signal says nothing. An output also passes when it is no further than
    ``floor_margin_db`` below what one rounding of the inputs alone leaves of it (None: not asked).

    ``advice`` says what helps where an output or a part of it fails. ``rounds``: the values of an output share a scale.

    ``agreement`` is the least share of equal values of an output that is class numbers, indices or flags. Where there
    are fewer values than would tell that share, one may differ.

    Inner tensors fail nothing; below ``tensor_db`` they are where a failing output's trouble is said to begin.
    """

    output_db: float
    group_db: float
    tensor_db: float
    score_error: float = 0.0
    agreement: float = 1.0
    floor_margin_db: float | None = None
    advice: str = ""
    rounds: bool = False


_SAME = "compare forms of one model, with the same --shape and --value; what Vitrify itself converted is to be reported"

FLOAT = Gate(output_db=90.0, group_db=60.0, tensor_db=60.0, score_error=1e-6, agreement=0.999, floor_margin_db=24.0,
             advice=_SAME)
"""Two float computations of one model differ by roundings only: 8 last places of 1.0 for scores, and 16 roundings'
worth where a model magnifies them."""

HALF = Gate(output_db=50.0, group_db=30.0, tensor_db=30.0, score_error=1e-2, agreement=0.98, floor_margin_db=24.0,
            advice=_SAME)
"""Weights of float16 have 11 bits; rounding them once costs about 2**-12 of each."""

QUANTIZED = Gate(
    output_db=15.0, group_db=8.0, tensor_db=10.0, score_error=1 / 64, agreement=0.75, rounds=True,
    advice="calibrate on more samples of what the model will see (--data, --samples); try another --calibrator: "
           "minmax, percentile or least-error; --least-db 25 computes in 16 bits where 8 keep too little")
"""Full-integer int8 against float: wide, so that only damaged results fail; scores weigh as much as boxes, and may be
off by 4 of their 256 steps."""

STEPS = Gate(output_db=15.0, group_db=8.0, tensor_db=10.0, score_error=1 / 32, agreement=0.75, rounds=True,
             advice=_SAME)
"""One quantized model in two runtimes: each result may be a step off, and a deep model magnifies that as far as it
magnifies its own rounding."""

BY_PRECISION = {"float32": FLOAT, "float16": HALF, "integer": QUANTIZED}
"""The gate for a file of each precision against a finer one; two files of one precision are held to roundings."""
