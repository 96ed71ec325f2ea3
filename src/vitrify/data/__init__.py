"""Samples for calibration and tests, and the way between a source model's arrays and a file's tensors."""

from vitrify.data.preprocess import Preprocess
from vitrify.data.samples import Samples, open_samples, random_samples

__all__ = ["Preprocess", "Samples", "open_samples", "random_samples"]
