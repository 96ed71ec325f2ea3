"""What was recorded on a board, as one more form of the model: tensors by name in an .npz file, a run in each row."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from vitrify.core.errors import DataError, UsageError
from vitrify.core.findings import Finding
from vitrify.data.binding import to_source_outputs
from vitrify.ir import Interface, Tensor
from vitrify.runtimes.litert import LiteRT

Array = np.ndarray[Any, np.dtype[Any]]

_ZIP = b"PK\x03\x04"
_MOST_BYTES = 4 << 30


def is_recorded(path: Path) -> bool:
    """True for an .npz file, whatever its name; what is no file, such as a pipe, would keep its reader waiting."""
    if not path.is_file():
        return False
    try:
        with path.open("rb") as stream:
            if stream.read(4) != _ZIP:
                return False
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
    except (OSError, zipfile.BadZipFile):
        return False
    return bool(names) and all(name.endswith(".npy") for name in names)


def read_recorded(path: Path) -> dict[str, Array]:
    """Return the arrays of an .npz file.

    Raises:
        DataError: it is damaged, holds objects, or is too large.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            size = sum(info.file_size for info in archive.infolist())
        if size > _MOST_BYTES:
            raise DataError.of("recorded.size", f"{path} unpacks to {size / 1e9:.1f} GB, at most "
                               f"{_MOST_BYTES / 1e9:.1f} GB are read", where=str(path), help="record fewer runs")
        with np.load(path, allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
    except (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile) as error:
        raise DataError.of("recorded.unreadable", f"{path} is no .npz file of plain arrays: {error}", where=str(path),
                           help="save inputs and outputs with numpy.savez") from error


class Recorded:
    """The recorded runs of one file, read by that file's own tensors.

    ``tensors`` are those that it computes, a list of arrays as the file holds them; ``samples`` the source model's
    inputs where they were recorded too.

    Raises:
        DataError: names, shapes or types do not fit; lists all of them.
    """

    def __init__(self, path: Path, base: LiteRT, graph_tensors: Sequence[Tensor], outputs: Sequence[Tensor],
                 inputs: Sequence[Tensor]) -> None:
        self.path, self.base = path, base
        arrays = read_recorded(path)
        self._problems: list[Finding] = []
        known = {tensor.name: tensor for tensor in (*inputs, *graph_tensors)}
        names = self._source_names(outputs)
        self.tensors: dict[str, list[Array]] = {}
        strange = []
        for name, array in arrays.items():
            tensor = known.get(name) or names.get(name)
            if tensor is None:
                strange.append(name)
                continue
            self.tensors[tensor.name] = self._runs(name, array, tensor)
        missing = [tensor.name for tensor in outputs if tensor.name not in self.tensors]
        if missing or not self.tensors:
            self._problems.append(self._lacks(missing, strange, outputs, inputs))
        counts = {name: len(runs) for name, runs in self.tensors.items() if runs}
        if len(set(counts.values())) > 1:
            told = ", ".join(f"'{name}' {count}" for name, count in list(counts.items())[:6])
            self._problems.append(Finding(code="recorded.runs", where=str(path), headline="tensors were recorded in "
                                          f"different numbers of runs: {told}", help="save the same runs of each"))
        if self._problems:
            raise DataError(self._problems)
        self.runs = min(counts.values())
        self.strange = strange
        self.inputs = [[self.tensors[tensor.name][run] for tensor in inputs] for run in range(self.runs)] \
            if all(tensor.name in self.tensors for tensor in inputs) else []

    def _source_names(self, outputs: Sequence[Tensor]) -> dict[str, Tensor]:
        """The interface's names of outputs that are one tensor of the file."""
        interface = self.base.interface
        return {b.name: outputs[b.parts[0].position] for b in interface.outputs
                 if interface.host is None and len(b.parts) == 1}

    def _runs(self, name: str, array: Array, tensor: Tensor) -> list[Array]:
        if array.dtype.kind not in "biuf" or array.size % max(1, tensor.size) or not array.size:
            self._problems.append(Finding(
                code="recorded.shape", where=f"{self.path}, '{name}'",
                headline=f"'{name}' is recorded as {array.dtype}{list(array.shape)}, the file's tensor is "
                         f"{tensor.dtype.label}{list(tensor.shape)}",
                help="save a run as it is in the file, several with one more axis in front"))
            return []
        if array.shape != tensor.shape and array.shape[1:] != tensor.shape and array.shape[1:] != tensor.shape[1:]:
            self._problems.append(Finding(
                code="recorded.shape", where=f"{self.path}, '{name}'",
                headline=f"'{name}' is recorded as {list(array.shape)}, the file's tensor is {list(tensor.shape)}",
                help="save a run as it is in the file, several with one more axis in front"))
            return []
        kind = np.dtype(tensor.dtype.numpy or array.dtype)
        if array.dtype != kind and array.dtype.kind != "f":
            self._problems.append(Finding(
                code="recorded.type", where=f"{self.path}, '{name}'", headline=f"'{name}' is recorded as {array.dtype},"
                f" the file's tensor is {tensor.dtype.label}", help="save what the runtime gave, or real numbers"))
            return []
        each = array.reshape(-1, *tensor.shape)
        return [_as_held(one, tensor) for one in each]

    def _lacks(self, missing: Sequence[str], strange: Sequence[str], outputs: Sequence[Tensor],
               inputs: Sequence[Tensor]) -> Finding:
        wanted = ", ".join(f"'{tensor.name}'" for tensor in (*inputs, *outputs))
        there = ", ".join(f"'{name}'" for name in strange[:8])
        return Finding(code="recorded.names", where=str(self.path),
                       headline=f"the recorded values lack the output '{missing[0]}'" if missing else
                       "nothing that was recorded is a tensor of the file",
                       why=f"it holds {there}, which the file does not have" if there else "",
                       help=f"save with numpy.savez under the names of {self.base.path.name}'s tensors: {wanted}")

    def outputs(self, run: int, names: Sequence[str]) -> dict[str, Array]:
        """Return the source model's outputs of one run."""
        raw = [self.tensors[name][run] for name in names]
        found: dict[str, Array] = to_source_outputs(self.base.interface, raw, self.base._details.outputs)
        return found

    def samples(self, interface: Interface) -> list[dict[str, Array]]:
        """Return the source model's inputs of all runs, real numbers in its own layout; empty where none are."""
        found = []
        for run in self.inputs:
            sample = {}
            for binding in interface.inputs:
                sample[binding.name] = _to_source(run[binding.position], binding.perm, binding.scale, binding.offset,
                                                  self.base._details.inputs[binding.position], binding.dtype)
            found.append(sample)
        return found


def _as_held(value: Array, tensor: Tensor) -> Array:
    kind = np.dtype(tensor.dtype.numpy or value.dtype)
    if value.dtype.kind == "f" and kind.kind in "iu" and tensor.quantization is not None:
        return tensor.quantization.quantize(np.nan_to_num(value), kind)
    return np.ascontiguousarray(value, kind)


def _to_source(value: Array, perm: Sequence[int], scale: Sequence[float], offset: Sequence[float],
               details: Mapping[str, Any], dtype: str) -> Array:
    from vitrify.data.binding import quantization_of

    how = quantization_of(details)
    real = how.dequantize(value) if how is not None else value
    if scale:
        real = (real - np.asarray(offset, np.float32)) / np.asarray(scale, np.float32)
    if perm:
        real = real.transpose(np.argsort(perm))
    return np.ascontiguousarray(real, dtype)


__all__ = ["Recorded", "UsageError", "is_recorded", "read_recorded"]
