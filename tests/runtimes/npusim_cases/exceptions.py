"""What compilers get wrong, by name: each entry says which cases under which compilers, and how that is known."""

from __future__ import annotations

import re
from typing import NamedTuple

from npusim_cases.judging import Outcome


class Fault(NamedTuple):
    """Cases (a pattern of their names) that disagree under some compilers. ``most``: by how many steps, 0 for any."""

    name: str
    compilers: str
    cases: str
    why: str
    most: int = 0

    def covers(self, outcome: Outcome) -> bool:
        """True if an outcome is this fault."""
        if not re.fullmatch(self.compilers, outcome.setting.compiler.name) \
                or not re.fullmatch(self.cases, outcome.case):
            return False
        worst = re.search(r"by up to (\d+)", outcome.said)
        return not self.most or (worst is not None and int(worst[1]) <= self.most)


_TABLE = "a table that the compiler made: the stream looks values up, and the entry in the file is off by one step, " \
         "where the exact value is a half within float precision"
FAULTS = (
    Fault("ethos-u.sum-wrong", "... Regor", "SUM two axes", "the stream reduces one axis only and writes more values "
          "than the result has"),
    Fault("ethos-u.neg-scales", "5.2 Regor", "NEG (image|fine result|coarse result|row)", "the stream subtracts from "
          "zero with the scale 1: nothing in it knows the two scales"),
    Fault("ethos-u.dropped-axis", "5.2 Regor", "REDUCE_M(AX|IN) without dims", "the stream reduces windows that "
          "overlap: its output is 5 columns wide with a window of 20 and a step of 1, in the shape of the input"),
    Fault("ethos-u.mirrored-depth", "... Regor", "MIRROR_PAD depth.*", "the stream holds one copy of the middle, and "
          "nothing that writes what is mirrored in depth"),
    Fault("ethos-u.lstm-clip", "... Regor", "UNIDIRECTIONAL_SEQUENCE_LSTM clipped", "no command bounds the cell: "
          "ACTIVATION_MIN and _MAX are the type's; the legacy core's stream has them"),
    Fault("tables", ".*", "(GELU|ELU|LOG|EXP) .*", _TABLE, most=1),
    Fault("negative slopes", ".*", "LEAKY_RELU .*alpha -0.5.*", "all four compilers round halves of a product with a "
          "negative slope up, in a table (8 bits) or a scale (16 bits); the kernel rounds them down", most=1),
    Fault("sums by shifts", ".*", "(ADD|SUB) (twice|half) by shifts int16", "where scales are powers of two the kernel "
          "rounds the smaller operand to 16 bits before it adds; all four compilers widen it and round the sum, as for "
          "other scales", most=1),
    Fault("a sum's scale", "4.5 Regor", "SUM halves", "OFM_SCALE is 2^29 + 1 over 2^31 for a quarter, as for an "
          "average, so that no sum lies between two steps; 5.2 has 2^30 over 2^32", most=1),
    Fault("pools with a scale", "4.5 Regor", "(MAX_POOL_2D|AVERAGE_POOL_2D|RESIZE_BILINEAR) .*|chain residual", "a "
          "largest value, or an average that is divided by the taps within the input, has the scale of the whole "
          "window too; the three other compilers give none or 1. What a chip does with it is not known: an error here"),
    Fault("one row too few", "... legacy", "RESIZE_NEAREST_NEIGHBOR x8 int16", "with 8 KB a step writes 9 rows of "
          "twice 4: its input has IFM_HEIGHT0 4 and needs 5; the fifth is read from tile 2, which no command placed"),
)


def fault_of(outcome: Outcome) -> Fault | None:
    """Return the known fault that an outcome is."""
    return next((fault for fault in FAULTS if fault.covers(outcome)), None)
