"""`doctor`: this machine, or a board, and whether what is on it fits together."""

from vitrify.pipeline.doctor.board import Questions, examine_board, examine_file, print_probe
from vitrify.pipeline.doctor.here import examine_here

__all__ = ["Questions", "examine_board", "examine_file", "examine_here", "print_probe"]
