"""Cost traps: operators that run on the NPU and take more of its time than another form would.

A trap is a function in a module of this package: ``@trap`` registers it, and all that it knows is in ``Costs``.
"""

from vitrify.backends.vela.traps.trap import Costs, trap, traps

__all__ = ["Costs", "trap", "traps"]
