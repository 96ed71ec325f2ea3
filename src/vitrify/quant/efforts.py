"""What each effort switches on: one table, which the command line, recipes and the documentation read.

``fast`` is for trying things out, ``balanced`` costs little more, ``best`` takes what time it needs. All three keep
every operator in 8 bits that a recipe does not put into 16.
"""

from __future__ import annotations

from typing import Any, Literal

Effort = Literal["fast", "balanced", "best"]

EFFORTS: dict[Effort, dict[str, Any]] = {
    "fast": {"rounding": "nearest", "rounding_inputs": 200, "weight_clipping": False, "equalize": False,
             "trials": "none"},
    "balanced": {"rounding": "compensated", "rounding_inputs": 200, "weight_clipping": True, "equalize": False,
                 "trials": "ranges"},
    "best": {"rounding": "compensated", "rounding_inputs": 1200, "weight_clipping": True, "equalize": True,
             "trials": "all"},
}
"""Recipe keys by effort. What a recipe says itself comes before."""

SAYS: dict[str, str] = {
    "rounding": "how weights are rounded",
    "rounding_inputs": "layers with up to so many inputs for an output are rounded so, others to the nearest",
    "weight_clipping": "scales of weights with the least error",
    "equalize": "channels scaled against each other, exactly in float",
    "trials": "calibrators, at `all` roundings too, compared on the calibration samples, the best taken",
}
"""What each of those keys does, in a few words."""


def effort_table() -> list[str]:
    """The table in Markdown, for the documentation."""
    efforts = list(EFFORTS)
    lines = [f"| recipe key | what it does | {' | '.join(f'`{e}`' for e in efforts)} |",
             f"|---|---|{'---|' * len(efforts)}"]
    for key, says in SAYS.items():
        values = [str(EFFORTS[e][key]).lower() for e in efforts]
        lines.append(f"| `{key}` | {says} | {' | '.join(values)} |")
    return lines
