"""What the codes of findings mean: rules of targets, diagnoses, and everything else that the program can find."""

from vitrify.pipeline.explaining.codes import all_codes, explain

__all__ = ["all_codes", "explain"]
