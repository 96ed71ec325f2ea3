"""What every runtime offers: ``run``, ``trace``, ``profile``, by the source model's names and in its layout."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Protocol, Self

import msgspec
import numpy as np

from vitrify.core.errors import UsageError
from vitrify.ir.interface import Interface
from vitrify.ir.quantization import Quantization

Array = np.ndarray[Any, np.dtype[Any]]
Precision = Literal["float32", "float16", "integer"]
"""What a file computes with: ``integer`` when any tensor or weight is an integer that stands for a real number."""


class Capabilities(msgspec.Struct, frozen=True, kw_only=True):
    """Which methods a runtime answers. ``trace``: inner tensors can be read; ``times_operators``: each is timed."""

    trace: bool = False
    profile: bool = False
    times_operators: bool = False


class Traced(msgspec.Struct, frozen=True, kw_only=True):
    """The value of one tensor in the file's own layout: as the file holds it, and how to read it as real numbers."""

    raw: Any
    quantization: Quantization | None = None

    @property
    def value(self) -> Array:
        """The real values: dequantized where the tensor is quantized."""
        raw: Array = self.raw
        return self.quantization.dequantize(raw) if self.quantization is not None else raw


class Observation(msgspec.Struct, frozen=True, kw_only=True):
    """One run seen whole: the source model's outputs and some inner tensors.

    For outputs that come from integers, ``steps`` holds the size of one step at each element (shaped like the output),
    and ``saturated`` the share of values that stand at the end of their range.
    """

    outputs: dict[str, Any]
    tensors: dict[str, Traced] = {}
    steps: dict[str, Any] = {}
    saturated: dict[str, float] = {}


class Profile(msgspec.Struct, frozen=True, kw_only=True):
    """Measured time of one run on this machine, in milliseconds, over ``runs`` runs after ``warmup`` uncounted ones."""

    runs: int
    warmup: int
    median_ms: float
    mean_ms: float
    min_ms: float
    p90_ms: float
    p99_ms: float
    max_ms: float
    source: str = ""

    @classmethod
    def of(cls, seconds: Sequence[float], warmup: int, source: str) -> Profile:
        """Summarize the times of single runs."""
        ms = np.asarray(seconds) * 1e3
        p50, p90, p99 = (float(p) for p in np.percentile(ms, (50, 90, 99)))
        return cls(runs=len(ms), warmup=warmup, median_ms=p50, mean_ms=float(ms.mean()), min_ms=float(ms.min()),
                   p90_ms=p90, p99_ms=p99, max_ms=float(ms.max()), source=source)


class Runtime(Protocol):
    """Runs one model. A context manager: ``close`` ends the process in which the outside code runs."""

    @property
    def name(self) -> str:
        """What reports call it, with the version of the outside code."""

    @property
    def capabilities(self) -> Capabilities:
        """What it can do."""

    @property
    def interface(self) -> Interface:
        """What the source model takes and gives."""

    @property
    def precision(self) -> Precision:
        """The coarsest kind of numbers that the file holds."""

    @property
    def aliases(self) -> dict[str, str]:
        """Other names of inputs and outputs, such as the file's own tensor names, to the interface's names."""

    @property
    def tensors(self) -> tuple[str, ...]:
        """The names that ``trace`` knows, in an order in which they are computed."""

    def run(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """Give the source model's outputs for its inputs, by name; floats where the source gives floats."""

    def trace(self, inputs: Mapping[str, Array], tensors: Sequence[str] | None = None) -> dict[str, Traced]:
        """Run, and give the values of the named inner tensors, or of all."""

    def observe(self, inputs: Mapping[str, Array], tensors: Sequence[str] = ()) -> Observation:
        """Run once, and give the outputs together with the named inner tensors."""

    def profile(self, inputs: Mapping[str, Array] | None = None, runs: int = 20, warmup: int = 3) -> Profile:
        """Measure the time of a run; without inputs, on zeros."""

    def close(self) -> None:
        """End the process and remove temporary files."""

    def __enter__(self) -> Runtime:
        """Return itself."""

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        """Close."""


class Closing:
    """The part of a runtime that makes it a context manager: it is closed at the end, whatever happens."""

    def close(self) -> None:
        """End what the runtime holds."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.close()


def zeros(interface: Interface) -> dict[str, Array]:
    """Return an input of zeros for each input of the source model."""
    return {binding.name: np.zeros(binding.shape, binding.dtype) for binding in interface.inputs}


def stamp(path: Path) -> tuple[int, int]:
    """Return what tells versions of a file apart.

    Raises:
        UsageError: there is no such file.
    """
    try:
        status = path.stat()
    except OSError as error:
        raise UsageError.of("file.read", f"cannot read {path}: {error.strerror}", where=str(path)) from error
    if not path.is_file():
        raise UsageError.of("file.read", f"cannot read {path}: it is not a file", where=str(path))
    return status.st_mtime_ns, status.st_size
