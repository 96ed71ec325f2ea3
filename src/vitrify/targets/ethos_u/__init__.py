"""Arm's Ethos-U family: which nodes Vela puts on the NPU.

The rules are those of Vela 5.2's compiler core: what its report of supported operators says (`vela
--supported-ops-report`), corrected where small models compiled with it showed something else.
"""

from vitrify.targets.ethos_u.settling import operators, settle, variant

__all__ = ["operators", "settle", "variant"]
