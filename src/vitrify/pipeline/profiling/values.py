"""What a model is run on: one sample of the data, or random values."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from msgspec import structs

from vitrify.core.errors import DataError, UsageError, VitrifyError
from vitrify.core.findings import Finding, Severity
from vitrify.pipeline.options import DataOptions


class Values(NamedTuple):
    """The input tensors of a file by name, what they are in words, and what was wrong with those asked for."""

    arrays: Mapping[str, Any]
    words: str
    findings: list[Finding]


def values_for(path: Path, data: DataOptions) -> Values:
    """Return input tensors for the file at ``path``: the first sample, or random values where none is given or fits.

    Raises:
        VitrifyError: LiteRT cannot load the file.
    """
    from vitrify.runtimes.base import zeros
    from vitrify.runtimes.litert import LiteRT

    findings: list[Finding] = []
    with LiteRT(path, kernels="optimized") as runtime:
        if data.path is not None or data.feed is not None:
            try:
                sample = next(iter(data.open(runtime.interface, 1, purpose="comparison")))
                return Values(runtime.named_inputs(sample), f"the first sample of {data.path or 'the data'}", [])
            except (DataError, UsageError) as error:
                findings = [structs.replace(f, severity=Severity.ERROR) for f in error.findings]
        random = DataOptions(random=True, samples=1, seed=data.seed)
        try:
            sample = next(iter(random.open(runtime.interface, 1)))
            return Values(runtime.named_inputs(sample), f"random values, seed {data.seed}", findings)
        except VitrifyError:          # an index beyond its table
            return Values(runtime.named_inputs(zeros(runtime.interface)), "zeros", findings)
