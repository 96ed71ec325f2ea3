"""Random quantized models in LiteRT and in the numpy references."""

from __future__ import annotations

import pickle
import subprocess
import sys
import zlib
from pathlib import Path

import integer_cases_lstm  # noqa: F401  (each registers its draws)
import integer_cases_pointwise  # noqa: F401
import integer_cases_rows  # noqa: F401
import integer_cases_window  # noqa: F401
import numpy as np
from integer_draw import DRAWS, Made

from vitrify.ops.evaluate import evaluate_graph
from vitrify.tflite import to_bytes

Array = np.ndarray
Outcome = list[np.ndarray] | str


def cases(label: str, count: int, start: int = 0) -> list[Made]:
    """The random cases of a label: always the same ones."""
    return [DRAWS[label](np.random.default_rng([zlib.crc32(label.encode()), start + seed])) for seed in range(count)]


def in_litert(made: list[Made], kernels: str = "reference") -> list[Outcome]:
    """Run models in LiteRT; gives the outputs, or "refused: message", or "died: signal"."""
    jobs = [(bytes(to_bytes(model)), arrays) for model, arrays in made]
    done = subprocess.run([sys.executable, str(Path(__file__).with_name("integer_child.py")), kernels],
                          input=pickle.dumps(jobs), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True,
                          timeout=600)
    outcomes: list[Outcome] = pickle.loads(done.stdout)
    return outcomes


def in_numpy(made: list[Made]) -> list[list[np.ndarray]]:
    """Run models in the numpy references."""
    return [evaluate_graph(model.main, arrays) for model, arrays in made]


def distance(ours: list[np.ndarray], theirs: list[np.ndarray]) -> float:
    """The largest difference, in steps where the outputs are steps."""
    return max((float(np.abs(a.astype(np.float64) - b.astype(np.float64)).max(initial=0))
                for a, b in zip(ours, theirs, strict=True)), default=0.0)


def kernels_of(label: str) -> str:
    """Which of LiteRT's kernels a label is compared with: the reference, where it is right."""
    return "optimized" if label in ("SUM int8", "SUM int16") else "reference"


NOT_DRAWN = frozenset({"SQUEEZE", "EXPAND_DIMS", "DYNAMIC_UPDATE_SLICE", "SPLIT_V", "GATHER_ND", "SCATTER_ND",
                       "ONE_HOT", "REVERSE_SEQUENCE", "EMBEDDING_LOOKUP", "SELECT", "FILL", "SHAPE", "RANK",
                       "ZEROS_LIKE", "CAST"})
"""Operators whose steps are moved by the same code as real numbers, which other tests compare."""
