"""How many examples the property tests try: the number they name, times VITRIFY_FUZZ (`make fuzz` sets it).

Importing this also lets them take their time: how fast examples are made says more of the machine's load than of them.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

settings.register_profile("loaded-machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("loaded-machine")


def examples(count: int) -> int:
    """Return ``count``, multiplied where more is asked for."""
    return count * int(os.environ.get("VITRIFY_FUZZ", "1"))
