"""One row of a family's table of operators."""

from __future__ import annotations

from typing import Literal

import msgspec

from vitrify.targets.placement import Confidence


class Row(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is known of one operator on one core: ``taken`` yes, no, or unknown; how, who says so, and what else."""

    taken: Literal["yes", "no", "unknown"]
    confidence: Confidence
    source: str
    note: str = ""
    versions: str = ""
