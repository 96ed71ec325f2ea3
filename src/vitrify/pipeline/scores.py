"""Judging a detector by its scores: how far those that count are off, on a few calibration samples.

A signal-to-noise ratio over boxes of hundreds of pixels says nothing of scores below 1, which decide what is found.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from vitrify.ir import Model, Tensor
from vitrify.ir.interface import Interface

if TYPE_CHECKING:
    from vitrify.quant import QuantizeResult

Array = np.ndarray[Any, np.dtype[Any]]
Samples = Sequence[Mapping[str, Array]]

COMPARED = 4
"""Samples that candidates are compared on: those in which most is found."""

FOUND = 0.25
"""Scores above this count: detectors are asked for no less."""

MARGIN = 0.6
"""Other pictures are somewhat further off than those that the choice was made on."""


def scores_of(result: QuantizeResult, model: Model) -> list[str]:
    """The file's outputs that are scores of a detector, by name: shares of 0..1 that the host puts beside boxes."""
    interface = result.model.interface
    if interface is None or interface.host is None:
        return []
    known = {t.name for node in model.main for t in node.outputs if node.op.kind == "LOGISTIC"}
    return [t.name for t in result.model.main.outputs if t.name in known]


class ScoreJudge:
    """The float model's scores on a few samples, and candidates held against them."""

    def __init__(self, model: Model, names: Sequence[str], samples: Samples, folder: Path) -> None:
        from vitrify import tflite
        from vitrify.quant.copying import model_around

        self._names = list(names)
        self._candidate = folder / "scores.tflite"
        by_name = {t.name: t for node in model.main for t in node.outputs}
        around = model_around(model.main, [by_name[name] for name in names])
        tflite.write(around, folder / "float_scores.tflite")
        answers = _run(folder / "float_scores.tflite", _raw(model.interface, around), samples, "auto")
        order = sorted(range(len(samples)), key=lambda i: -sum(int((a > FOUND).sum()) for a in answers[i].values()))
        self._compared = [(samples[i], answers[i]) for i in order[:COMPARED]]

    @property
    def finds(self) -> bool:
        """True when the samples hold scores that count."""
        return any(bool((a > FOUND).any()) for _, answer in self._compared for a in answer.values())

    def error(self, result: QuantizeResult) -> float:
        """The largest error of a score that counts."""
        from vitrify import tflite

        bare = Model(list(result.model.graphs), interface=_raw(result.model.interface, result.model))
        tflite.write(bare, self._candidate)
        given = _run(self._candidate, bare.interface, [sample for sample, _ in self._compared], "optimized")
        return max(float(np.abs(answer[name] - got[name])[answer[name] > FOUND].max(initial=0.0))
                   for (_, answer), got in zip(self._compared, given, strict=True) for name in self._names)


def _raw(interface: Interface | None, model: Model) -> Interface:
    """The interface that takes what the source model takes, and gives the file's outputs as they are."""
    from vitrify.data.binding import identity_interface

    own = identity_interface(model)
    outputs = tuple(msgspec.structs.replace(b, name=_name(t)) for b, t in zip(own.outputs, model.main.outputs,
                                                                              strict=True))
    return Interface(inputs=(interface or own).inputs, outputs=outputs, source_format="tflite")


def _name(tensor: Tensor) -> str:
    return tensor.name


def _run(path: Path, interface: Interface | None, samples: Samples, kernels: str) -> list[dict[str, Array]]:
    from vitrify.runtimes.litert import LiteRT

    with LiteRT(path, kernels=kernels, interface=interface) as opened:      # type: ignore[arg-type]
        return [opened.run(sample) for sample in samples]
