"""Rewrites of integer graphs that bring operators to an NPU, or make them cheaper there: the catalogue of fixes.

One rewrite per file, decorated with ``@fix``; nothing else lists them. They keep scales, zero points and the user's
names. ``pipeline.fixing`` decides where they run, and proves each by running the model before and after.
"""

from vitrify.passes.targets.catalogue import Fix, catalogue, find, fix
from vitrify.passes.targets.place import MOST_PARTS, Place, TooManyPartsError

__all__ = ["MOST_PARTS", "Fix", "Place", "TooManyPartsError", "catalogue", "find", "fix"]
