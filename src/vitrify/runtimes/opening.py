"""Open a file, or a model in memory, in the runtime that fits it; the content decides, never the name."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from vitrify.core.errors import UsageError
from vitrify.core.files import make_temporary_folder
from vitrify.runtimes.base import Runtime, stamp

if TYPE_CHECKING:
    from vitrify.ir import Model
    from vitrify.runtimes.litert import LiteRT

NUMPY = "numpy"
"""The kernels that are no runtime's: the operators' numpy references."""
ETHOS_U = "ethos-u"
"""The custom operator that stands for a command stream of an Ethos-U."""
_TFLITE = b"TFL3"      # the flatbuffer's file identifier, at byte 4. Source: TFLite schema.


def open(source: Path | str | Model, *, shapes: Mapping[str, Sequence[int] | int] | None = None,
         values: Mapping[str, Any] | None = None, kernels: str = "reference", threads: int = 1,
         seconds: float | None = None) -> Runtime:
    """Open a model to run, trace and profile it by the source model's names.

    Args:
        source: an ONNX or TFLite file, a TFLite file that Vela compiled, or a model in memory.
        shapes: static shapes of inputs by name; a number fixes the dimension of that name, in an ONNX model.
        values: constants to put in the place of an ONNX model's inputs.
        kernels: LiteRT's kernels, ``reference``, ``optimized``, ``xnnpack`` or ``auto``; or ``numpy``: the operators'
            own references, in this process and without the limit of time.
        threads: threads per run.
        seconds: the limit of time for one run.
    Raises:
        VitrifyError: the file cannot be had, or the runtime refuses it or dies of it.
    """
    if not isinstance(source, Path | str):
        return _open_reference(source) if kernels == NUMPY else _open_model(source, kernels, threads, seconds)
    path = Path(source)
    stamp(path)
    if _head(path)[4:8] == _TFLITE:
        if compiled_for(path):
            return _open_compiled(path, shapes, values)
        from vitrify.runtimes.litert import LiteRT

        if values:
            raise UsageError.of("runtime.values", "a TFLite file's inputs cannot be made constants", where=str(path))
        if kernels == NUMPY:
            if shapes:
                raise UsageError.of("runtime.shape", "the numpy references run a file with its own shapes",
                                    where=str(path))
            return _open_reference(path)
        return LiteRT(path, shapes=shapes, kernels=kernels, threads=threads, seconds=seconds)  # type: ignore[arg-type]
    from vitrify.runtimes.onnxruntime import OnnxRuntime

    return OnnxRuntime(path, shapes=shapes, values=values, threads=threads, seconds=seconds)


def compiled_for(path: Path | str) -> str:
    """Name the custom operator that stands for what an NPU runs in a TFLite file; empty where none does."""
    file = Path(path)
    data = np.memmap(file, np.uint8, "r") if file.stat().st_size else np.zeros(0, np.uint8)
    if data[4:8].tobytes() != _TFLITE:
        return ""
    from vitrify.tflite.decoding import Decoder
    from vitrify.tflite.kind import NPU_GRAPHS

    codes = Decoder(data, str(file)).root("Model").operator_codes or ()
    return next((str(code.custom_code) for code in codes if code.custom_code in NPU_GRAPHS), "")


def _open_compiled(path: Path, shapes: Mapping[str, Sequence[int] | int] | None,
                   values: Mapping[str, Any] | None) -> Runtime:
    """Open a compiled file in the functional model of its NPU.

    Raises:
        UsageError: shapes or values are given, or nothing here runs what it is compiled for.
    """
    if shapes or values:
        raise UsageError.of("runtime.compiled", "a compiled file runs with the shapes and inputs that it has",
                            where=str(path), help="compile the model again with other ones")
    if compiled_for(path) != ETHOS_U:
        raise UsageError.of("runtime.compiled", f"{path} is compiled for an eIQ Neutron NPU: nothing here runs that",
                            where=str(path), why="its format is not public; what runs on the host are files that Vela "
                            "compiled for an Ethos-U55 or U65",
                            help="give the file that it was made from, or run it on a board")
    from vitrify.runtimes.npusim.runtime import NpuSim

    return NpuSim(path)


def _open_reference(source: Path | Model) -> Runtime:
    from vitrify.runtimes.reference import Reference

    return Reference(source)


def _open_model(model: Model, kernels: str, threads: int, seconds: float | None) -> LiteRT:
    """Write the model to a folder of its own, which goes when the runtime is closed."""
    from vitrify.runtimes.litert import LiteRT
    from vitrify.tflite import write

    folder = make_temporary_folder()
    try:
        path = folder / "model.tflite"
        write(model, path)
        runtime = LiteRT(path, kernels=kernels, threads=threads, seconds=seconds, owned=folder)  # type: ignore[arg-type]
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return runtime


def _head(path: Path) -> bytes:
    with path.open("rb") as stream:
        return stream.read(8)
