"""Inputs whose values span more than 8 bits hold: told before a model is quantized, with what it costs by itself.

Powers of a spectrum span 90 dB; 8 bits hold 48. What is quieter than the step becomes 0, and no layer behind it brings
that back. Whether it matters only the model can say: so the float model answers samples whose inputs alone are rounded.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from vitrify.core.findings import Finding, Severity
from vitrify.core.words import decibels
from vitrify.ir import Model, Node, Tensor
from vitrify.pipeline.options import DataOptions

if TYPE_CHECKING:
    from vitrify.quant import Recipe, Statistics
    from vitrify.quant.calibration.statistics import Range

Array = np.ndarray[Any, np.dtype[Any]]

SAMPLES = 4
"""Samples that the float model answers three times."""

QUIET_STEPS, QUIET_SHARE = 2.0, 0.5
"""An input is looked into where so large a share of its values, zeros left out, is below so many steps of 8 bits."""

QUIET_END = 5.0
"""Per cent of the values, the quietest, that the span leaves out."""

SHOWN = 6
"""Nodes that a finding names."""

POOR_DB, CURED_DB = 25.0, 10.0
"""It is told of where rounding the input leaves less, and 16 bits for it so much more."""


def input_ranges(model: Model, path: Path, statistics: Statistics, recipe: Recipe, data: DataOptions) -> list[Finding]:
    """Warn of inputs that 8 bits cannot hold.

    Args:
        model: the float model.
        path: its file.
        statistics: what calibration saw.
        recipe: what is asked for.
        data: the calibration samples.
    """
    from vitrify.data.binding import identity_interface
    from vitrify.quant.calibration.observe import keys
    from vitrify.quant.rules import is_real

    graph, names = model.main, keys(model.main)
    if recipe.input_type == "int16" or statistics.pictures is not None or statistics.is_random:
        return []
    interface = model.interface or identity_interface(model)
    samples = list(data.open(interface, SAMPLES).walk(skipped=[]))[:SAMPLES]
    found = []
    for tensor, binding in zip(graph.inputs, interface.inputs, strict=True):
        if not is_real(tensor) or names[tensor] not in statistics or not samples:
            continue
        given = [np.asarray(sample[binding.name], np.float32) for sample in samples]
        seen = statistics[names[tensor]].range.with_zero()
        if _is_quiet(given, seen):
            found += _finding(tensor, binding.name, given, seen, _kept(model, path, samples, binding.name, seen))
    return found


def _is_quiet(given: Sequence[Array], seen: Range) -> bool:
    values = np.abs(np.concatenate([array.reshape(-1) for array in given]))
    values = values[values > 0]
    return bool(values.size) and float(np.mean(values < QUIET_STEPS * seen.width / 255)) >= QUIET_SHARE


def _kept(model: Model, path: Path, samples: Sequence[Mapping[str, Array]], name: str,
          seen: Range) -> tuple[float, float]:
    """What outputs keep of themselves when this input alone is rounded to 8, and to 16 bits, in dB."""
    from vitrify.runtimes.litert import LiteRT

    with LiteRT(path, kernels="optimized", interface=model.interface) as opened:
        whole = [opened.run(sample) for sample in samples]
        found = []
        for levels in (2 ** 8 - 1, 2 ** 16 - 2):
            step = np.float32(max(seen.width / levels, float(np.finfo(np.float32).tiny)))
            rounded = [opened.run({**sample, name: np.rint(np.asarray(sample[name], np.float32) / step) * step})
                       for sample in samples]
            found.append(_least(whole, rounded))
    return found[0], found[1]


def _least(wanted: Sequence[Mapping[str, Array]], found: Sequence[Mapping[str, Array]]) -> float:
    """The SQNR of the worst real output over all samples."""
    least = 100.0
    for name, first in wanted[0].items():
        if first.dtype.kind == "f":
            signal = sum(float(np.square(w[name], dtype=np.float64).sum()) for w in wanted)
            noise = sum(float(np.square(w[name].astype(np.float64) - f[name]).sum())
                        for w, f in zip(wanted, found, strict=True))
            least = min(least, 10 * float(np.log10(max(signal, 1e-30) / max(noise, 1e-30))))
    return least


def _finding(tensor: Tensor, name: str, given: Sequence[Array], seen: Range,
             kept: tuple[float, float]) -> list[Finding]:
    from vitrify.quant.reach import AMPLITUDE_DB
    from vitrify.quant.recipe import override_line

    eight, sixteen = kept
    if eight >= POOR_DB or sixteen < eight + CURED_DB:
        return []
    values = np.abs(np.concatenate([array.reshape(-1) for array in given]))
    values = values[values > 0]
    span = 20 * float(np.log10(values.max() / np.percentile(values, QUIET_END)))
    lost = float(np.mean(values < seen.width / 255 / 2))
    readers = sorted(dict.fromkeys(user.name for user in _readers(tensor)))
    least = f", or at least {override_line(nodes=readers, activations='int16')}" if len(readers) <= SHOWN else ""
    return [Finding(
        code="quant.input-range", severity=Severity.WARNING, where=f"input '{name}'",
        headline=f"input '{name}' spans {span:.0f} dB, 8 bits hold {AMPLITUDE_DB:.0f} dB: {lost:.0%} of its values "
                 f"become 0, and that alone leaves {decibels(eight)} of the outputs",
        why=f"with the input alone in 16 bits they keep {decibels(sixteen)}; both measured on the float model, with "
            f"{len(given)} of the samples",
        help=f"give it in 16 bits and compute with it so: --io int16 and, in the recipe, activations = \"int16\"{least}"
             "; or take the logarithm (or a root) of the values before the model, if it can be trained so")]


def _readers(tensor: Tensor) -> Iterator[Node]:
    """What computes with an input, behind what only moves its values."""
    from vitrify.quant.rules import keeps_values

    for user in tensor.users:
        if keeps_values(user):
            for moved in user.outputs:
                yield from _readers(moved)
        else:
            yield user
