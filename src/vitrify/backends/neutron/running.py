"""Runs a converted file on this machine with the SDK's ``neutron-runner``, which computes as the NPU does.

How it is fed and what it leaves is taken from public scripts: a folder of raw tensors, one file for each sample, and
one file for each sample and output. Several inputs follow each other in a sample's file, which no public page says.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from vitrify import tflite
from vitrify.core.errors import TargetError, VitrifyError
from vitrify.core.files import temporary_folder
from vitrify.core.isolation import Worker
from vitrify.ir import Tensor

Array = np.ndarray[Any, np.dtype[Any]]
SECONDS = 1800.0
_CHILD = "vitrify.backends.neutron.child"


def run_converted(runner: str, libraries: Sequence[str], path: Path, target: str,
                  samples: Sequence[Sequence[Array]], seconds: float = SECONDS) -> list[list[Array]]:
    """Return the file's own output tensors for each sample of its own input tensors.

    Raises:
        TargetError: the runner fails, dies, hangs, or leaves something else than such tensors.
    """
    outputs = tflite.read(path).main.outputs
    with temporary_folder("neutron") as folder:
        data, results = folder / "inputs", folder / "outputs"
        data.mkdir()
        results.mkdir()
        for number, arrays in enumerate(samples):
            (data / f"{number:04d}.bin").write_bytes(b"".join(np.ascontiguousarray(one).tobytes() for one in arrays))
        command = [runner, "--input", str(path.absolute()), "--dataset", str(data), "--target", target,
                   "--use-neutron-runtime=true", "--output-results", str(results / "results.bin")]
        _run(command, folder, libraries, path, seconds)
        return [[_read(results, number, place, tensor, len(samples) == len(outputs) == 1)
                 for place, tensor in enumerate(outputs)] for number in range(len(samples))]


def _run(command: Sequence[str], folder: Path, libraries: Sequence[str], path: Path, seconds: float) -> None:
    with Worker(f"neutron-runner on {path.name}") as worker:
        try:
            status = worker.call(f"{_CHILD}:run_program", list(command), str(folder), list(libraries), seconds=seconds)
        except VitrifyError as error:
            raise TargetError(error.findings) from error
        log = worker.log
    if status != 0:
        last = next((line.strip() for line in reversed(log.splitlines()) if line.strip()), "it printed nothing")
        raise TargetError.of("neutron.runner", f"neutron-runner cannot run {path.name} (status {status}): {last}",
                             where=str(path))


def _read(folder: Path, sample: int, place: int, tensor: Tensor, is_only: bool) -> Array:
    names = [f"results_{sample}_{place}.bin", *(["results.bin"] if is_only else [])]
    found = next((folder / name for name in names if (folder / name).is_file()), None)
    kind = tensor.dtype.numpy
    if found is None or kind is None or found.stat().st_size != tensor.nbytes:
        said = "is missing" if found is None else f"has {found.stat().st_size} bytes, not {tensor.nbytes}"
        raise TargetError.of("neutron.runner", f"what neutron-runner gave for '{tensor.name}' {said}",
                             where=f"sample {sample}")
    return np.fromfile(found, kind).reshape(tensor.shape)
