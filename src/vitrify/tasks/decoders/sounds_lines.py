"""Lines of text by CTC, speech in a recording's frames, and vectors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from vitrify.tasks.found import Curve, Text, Vector
from vitrify.tasks.registry import Answer, Signs, decoder, never
from vitrify.tasks.spec import TaskSpec
from vitrify.tasks.suppression import are_shares, softmax

LEAST_FRAME = 256
"""Samples of the shortest frames that voice detectors take: 16 ms at 16 kHz."""


def _ctc(signs: Signs) -> Mapping[str, Any] | None:
    """PaddleOCR writes its characters into the file, each in a line; a space comes last, nothing first."""
    told = signs.metadata.get("character", "")
    if not told or len(signs.shapes) != 1 or len(signs.shapes[0]) != 3:
        return None
    characters = ["", *told.splitlines(), " "]
    return {"characters": characters} if len(characters) == signs.shapes[0][2] else {"characters": characters[:-1]}


@decoder("ctc", "reading", "[1, steps, characters] or [steps, 1, characters]", fits=_ctc, weight=40, fit="letterbox",
         color="bgr", mean=(0.5,), std=(0.5,), pad=0.5)
def ctc(answer: Answer, spec: TaskSpec, size: tuple[int, int]) -> Text:
    """The best character of each step; repeated ones count once, and the blank not at all.

    Source: Connectionist Temporal Classification, Graves et al. 2006, best path decoding.
    """
    value = next(iter(answer.values())).astype(np.float32)
    rows = value[:, 0] if value.ndim == 3 and value.shape[1] == 1 and value.shape[0] > 1 else value.reshape(
        -1, value.shape[-1])
    shares = rows if are_shares(rows) else softmax(rows)
    blank = int(spec.options.get("blank", 0)) % rows.shape[1]
    named = [*spec.names[:blank], "", *spec.names[blank:]] if spec.names else ()
    characters = spec.options.get("characters") or named
    best = shares.argmax(1)
    kept = np.flatnonzero((np.diff(best, prepend=-1) != 0) & (best != blank))
    text = "".join(characters[best[k]] if best[k] < len(characters) else "?" for k in kept)
    return Text(text, float(shares[kept, best[kept]].mean()) if len(kept) else 0.0)


def _speaks(signs: Signs) -> Mapping[str, Any] | None:
    frames = [s for s in signs.inputs.values() if sum(e > 1 for e in s) == 1 and max(s) >= LEAST_FRAME]
    single = [s for s in signs.shapes if int(np.prod(s)) == 1]
    fits = len(frames) == 1 and len(single) == 1 and not any(signs.size)
    return {} if fits and len(signs.shapes) == len(signs.inputs) else None


@decoder("voice", "speech", "how sure that someone speaks in a frame; a state goes from frame to frame", fits=_speaks,
         weight=20, rate=16000, hop=512)
def voice(answer: Answer, spec: TaskSpec, size: tuple[int, int]) -> Curve:
    """One value for one frame."""
    return Curve(next(v for v in answer.values() if v.size == 1).reshape(-1).astype(np.float32))


@decoder("vector", "embedding", "one row to be compared with others", fits=never)
def vector(answer: Answer, spec: TaskSpec, size: tuple[int, int]) -> Vector:
    """The first output at length 1."""
    values = next(iter(answer.values())).reshape(-1).astype(np.float32)
    return Vector(values / max(float(np.linalg.norm(values)), 1e-12))
