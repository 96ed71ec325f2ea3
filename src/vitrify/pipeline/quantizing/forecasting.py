"""What 8 bits will cost, told before a model is quantized, where calibration gives reason to ask."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from vitrify.core.findings import Finding
from vitrify.ir import Model, Tensor
from vitrify.pipeline.options import DataOptions

if TYPE_CHECKING:
    from vitrify.quant import Recipe, Statistics
    from vitrify.quant.equalizing.choosing import Seen

Array = np.ndarray[Any, np.dtype[Any]]


def forecast(model: Model, path: Path, statistics: Statistics, recipe: Recipe, data: DataOptions) -> list[Finding]:
    """Warn where much is forecast to be lost, with what may be done about it, ranked; empty where all looks well."""
    from vitrify.data.binding import identity_interface
    from vitrify.quant.forecasting.options import is_asked, ranked, spread_finding
    from vitrify.quant.planning import natural_ranges
    from vitrify.quant.selecting import settled

    recipe = settled(recipe, model.main)
    if not is_asked(model.main, statistics, recipe):
        return []
    samples = data.open(model.interface or identity_interface(model), 1).walk(skipped=[])
    sample = next(iter(samples), None)
    if sample is None:
        return []
    seen = channels_seen(model, path, sample)
    return spread_finding(model.main, seen, natural_ranges(model.main, statistics, recipe),
                          ranked(model.main, seen, statistics, recipe))


def beforehand(model: Model, path: Path, statistics: Statistics, recipe: Recipe, data: DataOptions) -> list[Finding]:
    """Say what is known of a model's quantization before it is done: of its inputs, and of what is inside."""
    from vitrify.pipeline.quantizing.input_ranges import input_ranges

    return [*input_ranges(model, path, statistics, recipe, data), *forecast(model, path, statistics, recipe, data)]


def channels_seen(model: Model, path: Path, sample: Mapping[str, Array]) -> dict[Tensor, Seen]:
    """Run a float file on one sample; returns what was seen of the channels of its inputs and of all it computes."""
    from vitrify.data.binding import identity_interface, to_file_inputs
    from vitrify.quant.equalizing.choosing import Seen
    from vitrify.quant.rules import is_real
    from vitrify.runtimes.litert import LiteRT

    graph, interface = model.main, model.interface or identity_interface(model)
    computed = [t for node in graph for t in node.outputs if is_real(t) and t.shape and t.size]
    with LiteRT(path, kernels="optimized", interface=interface) as opened:
        traced = opened.trace(sample, [t.name for t in computed])
        given = to_file_inputs(interface, sample, opened._details.inputs)
    found = {t: Seen.of(np.asarray(traced[t.name].raw)) for t in computed if t.name in traced}
    return found | {t: Seen.of(a) for t, a in zip(graph.inputs, given, strict=True) if is_real(t) and t.shape}
