"""Where a form of a model goes wrong: every operator by itself, fed with what the form before it gives."""

from vitrify.verify.locating.integers import locate_integers
from vitrify.verify.locating.locate import Located, locate

__all__ = ["Located", "locate", "locate_integers"]
