"""Judging a detector by what it finds: how far scores that count, and the boxes they belong to, are off.

A signal-to-noise ratio over boxes of hundreds of pixels says nothing of scores below 1, which decide what is found.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from vitrify.ir import Model
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
"""Other pictures are further off than those that the choice was made on."""

SIDE = 640
"""Boxes may be off by a pixel of a picture this large."""

PIXELS = 2.0
"""Rows with values above this are places; scores, angles and visibilities are below."""


@dataclass(frozen=True)
class Off:
    """How far a candidate is off: the worst score that counts, and the worst place of those found, in pixels of 640."""

    score: float
    place: float

    def share(self, score_error: float) -> float:
        """The worse of both, as a share of what is allowed."""
        return max(self.score / score_error, self.place)

    def __str__(self) -> str:
        return f"scores within {self.score:.3f} and boxes within {self.place:.1f} pixels of {SIDE}"


def scores_of(result: QuantizeResult, model: Model) -> list[str]:
    """The file's outputs that are scores of a detector, by name: shares of 0..1 that the host puts beside boxes."""
    interface = result.model.interface
    if interface is None or interface.host is None:
        return []
    known = {t.name for node in model.main for t in node.outputs if node.op.kind == "LOGISTIC"}
    return [t.name for t in result.model.main.outputs if t.name in known]


class ScoreJudge:
    """The float model's answers on a few samples, and candidates held against them."""

    def __init__(self, model: Model, names: Sequence[str], samples: Samples, folder: Path) -> None:
        from vitrify import tflite
        from vitrify.data.binding import identity_interface
        from vitrify.quant.copying import model_around

        self._names = list(names)
        self._candidate = folder / "scores.tflite"
        self._side = max(max(t.shape[1:3], default=SIDE) for t in model.main.inputs)
        by_name = {t.name: t for node in model.main for t in node.outputs}
        given = list(dict.fromkeys([*model.main.outputs, *(by_name[name] for name in names)]))
        around = model_around(model.main, given)
        tflite.write(around, folder / "float_scores.tflite")
        interface = model.interface or identity_interface(model)
        answers = []
        for raw in _run(folder / "float_scores.tflite", _raw(interface, around), samples, "auto"):
            scores = {name: raw[name] for name in names}
            answers.append((scores, _decoded(interface, [raw[t.name] for t in model.main.outputs])))
        order = sorted(range(len(samples)), key=lambda i: -sum(int((a > FOUND).sum()) for a in answers[i][0].values()))
        self._compared = [(samples[i], *answers[i]) for i in order[:COMPARED]]

    @property
    def finds(self) -> bool:
        """True when the samples hold scores that count."""
        return any(bool((a > FOUND).any()) for _, scores, _ in self._compared for a in scores.values())

    def off(self, result: QuantizeResult) -> Off:
        """How far a candidate is off on the compared samples."""
        from vitrify import tflite

        made = result.model
        assert made.interface is not None
        bare = Model(list(made.graphs), interface=_raw(made.interface, made))
        tflite.write(bare, self._candidate)
        score = place = 0.0
        answers = _run(self._candidate, bare.interface, [sample for sample, *_ in self._compared], "optimized")
        for (_, scores, wanted), raw in zip(self._compared, answers, strict=True):
            got = _decoded(made.interface, [raw[t.name] for t in made.main.outputs])
            for name in self._names:
                count = scores[name] > FOUND
                score = max(score, float(np.abs(scores[name] - raw[name])[count].max(initial=0.0)))
                place = max(place, self._place(count, wanted, got))
        return Off(score, place)

    def _place(self, count: Array, wanted: Mapping[str, Array], got: Mapping[str, Array]) -> float:
        """The worst error of a place beside a score that counts, where scores and places stand in rows of one axis."""
        if count.ndim < 2 or not count.any():
            return 0.0
        found: Array = np.nonzero(count.any(axis=tuple(a for a in range(count.ndim) if a != 1)))[0]
        worst = 0.0
        for name, value in wanted.items():
            axes = [a for a, n in enumerate(value.shape) if n == count.shape[1]]
            if len(axes) != 1:
                continue
            rows, other = (np.moveaxis(v, axes[0], -1).reshape(-1, count.shape[1]) for v in (value, got[name]))
            places = np.abs(rows).max(axis=1) > PIXELS
            worst = max(worst, float(np.abs(rows - other)[places][:, found].max(initial=0.0)))
        return worst * SIDE / self._side


def _raw(interface: Interface, model: Model) -> Interface:
    """The interface that takes what the source model takes, and gives the file's outputs as they are."""
    from vitrify.data.binding import identity_interface

    own = identity_interface(model)
    outputs = tuple(msgspec.structs.replace(b, name=t.name) for b, t in zip(own.outputs, model.main.outputs,
                                                                            strict=True))
    return Interface(inputs=interface.inputs, outputs=outputs, source_format="tflite")


def _decoded(interface: Interface, outputs: Sequence[Array]) -> dict[str, Array]:
    """What a user gets of the file's outputs, given as real numbers."""
    from vitrify.data.binding import to_source_outputs

    return to_source_outputs(interface, outputs, [{} for _ in outputs])


def _run(path: Path, interface: Interface | None, samples: Samples, kernels: str) -> list[dict[str, Array]]:
    from vitrify.runtimes.litert import LiteRT

    with LiteRT(path, kernels=kernels, interface=interface) as opened:      # type: ignore[arg-type]
        return [opened.run(sample) for sample in samples]
