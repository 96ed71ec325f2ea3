"""Mixed precision: the fewest operators in 16 bits with which a model is as good, or as fast, as it is to be."""

from vitrify.pipeline.quantizing.search.goal import Goal, read_goal
from vitrify.pipeline.quantizing.search.kept import checkpoint, forget
from vitrify.pipeline.quantizing.search.searching import How, quantize_well

__all__ = ["Goal", "How", "checkpoint", "forget", "quantize_well", "read_goal"]
