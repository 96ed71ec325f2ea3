"""Quantization: a recipe, statistics from calibration, a plan, and its application."""

from vitrify.quant.calibration.statistics import Range, Statistics
from vitrify.quant.engine import QuantizeResult, quantize, refuse_unquantizable
from vitrify.quant.presets import load_preset, preset_names
from vitrify.quant.recipe import Override, Recipe, format_recipe, load_recipe, parse_recipe, save_recipe

__all__ = ["Override", "QuantizeResult", "Range", "Recipe", "Statistics", "format_recipe", "load_preset",
           "load_recipe", "parse_recipe", "preset_names", "quantize", "refuse_unquantizable", "save_recipe"]
