"""Small graphs around the limits of the rules: legal at the limit, illegal just beyond it, two rules broken at once.

They are compiled with the installed compiler to see whether the rules still hold for it (``backends/vela/probing.py``).
"""

from vitrify.targets.ethos_u.probes.sketch import Probe, Sketch, probe, probes

__all__ = ["Probe", "Sketch", "probe", "probes"]
