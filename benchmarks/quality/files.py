"""Running a tool's file on the source model's samples, whatever the tool made of its inputs' and outputs' layout."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from vitrify import runtimes

Array = np.ndarray[Any, np.dtype[Any]]
Arrays = dict[str, Array]
Places = dict[str, tuple[int, tuple[int, ...]]]
"""Which of a file's outputs stands for each of the source's, and how its axes are turned to become it."""

SECONDS = 600
SAME_DB = 30.0
"""A float file's output that comes closer than this to a source's output stands for it."""


def decibels(expected: Sequence[Array], got: Sequence[Array]) -> float:
    """The ratio of signal to error over all samples."""
    signal = sum(float(np.square(e.astype(np.float64)).sum()) for e in expected)
    noise = sum(float(np.square(e.astype(np.float64) - g).sum()) for e, g in zip(expected, got, strict=True))
    if not np.isfinite(noise):
        return -999.0
    return 999.0 if noise == 0 else float(10 * np.log10(max(signal, 1e-300) / noise))


def run(file: Path, samples: Sequence[Arrays]) -> list[Arrays]:
    """Run a file over samples in the quick kernels, in a process of its own."""
    with runtimes.open(file, kernels="optimized", seconds=SECONDS) as opened:
        return [opened.run(sample) for sample in samples]


def reference(onnx: Path, samples: Sequence[Arrays], shapes: Mapping[str, Sequence[int]]) -> list[Arrays]:
    """The source model's float answers that an int8 model can be held against: not integers, not all zero."""
    with runtimes.open(onnx, shapes=shapes, seconds=SECONDS) as opened:
        answers = [opened.run(sample) for sample in samples]
    kept = [n for n, v in answers[0].items() if np.issubdtype(v.dtype, np.floating) and v.size and any(
        np.any(a[n]) for a in answers)]
    return [{n: answer[n] for n in kept} for answer in answers]


def turned(name: str, value: Array, shapes: dict[str, tuple[int, ...]]) -> Array:
    """Bring a source input into a file's layout: as it is, or with its channels last."""
    shape = shapes[name]
    if value.shape == shape or value.ndim < 3:
        return value
    return np.ascontiguousarray(np.moveaxis(value, 1, -1))


def file_inputs(file: Path, samples: Sequence[Arrays]) -> list[Arrays]:
    """The samples under a file's own input names and in its own layout."""
    import ai_edge_litert.interpreter as litert

    interpreter = litert.Interpreter(str(file))
    key, names = next(iter(interpreter.get_signature_list().items()))
    details = interpreter.get_signature_runner(key).get_input_details()
    given = list(samples[0])
    stands = {n: n if n in given else min(given, key=lambda g: _unlike(samples[0][g], tuple(details[n]["shape"])))
              for n in names["inputs"]}
    shapes = {n: tuple(int(x) for x in details[n]["shape"]) for n in stands}
    return [{n: _narrowed(turned(n, s[g], shapes)) for n, g in stands.items()} for s in samples]


def _narrowed(value: Array) -> Array:
    return value.astype(np.int32) if value.dtype == np.int64 else value


def _unlike(value: Array, shape: tuple[int, ...]) -> int:
    return int(sorted(value.shape) != sorted(shape))


def own(file: Path, inputs: Sequence[Arrays]) -> list[list[Array]]:
    """Run a file on its own inputs; what it gives in its own order, in reals."""
    from vitrify.core.isolation import run_isolated

    found: list[list[Array]] = run_isolated("files:own_here", str(file), list(inputs), what=f"running {file.name}",
                                            seconds=SECONDS)
    return found


def own_here(file: str, inputs: Sequence[Arrays]) -> list[list[Array]]:
    """Do what ``own`` does, in this process."""
    import ai_edge_litert.interpreter as litert

    from vitrify.data.binding import quantization_of

    kernels = litert.OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    interpreter = litert.Interpreter(file, num_threads=1, experimental_op_resolver_type=kernels)
    interpreter.allocate_tensors()
    key, names = next(iter(interpreter.get_signature_list().items()))
    runner = interpreter.get_signature_runner(key)
    details = {d["name"]: d for d in interpreter.get_output_details()}
    described = runner.get_output_details()
    answers = []
    for sample in inputs:
        placed = {n: _placed(v, runner.get_input_details()[n]) for n, v in sample.items()}
        interpreter.reset_all_variables()
        values = runner(**placed)
        answers.append([_real(values[n], described[n] if n in described else details[n], quantization_of)
                        for n in names["outputs"]])
    return answers


def _placed(value: Array, details: dict[str, Any]) -> Array:
    from vitrify.data.binding import quantization_of

    quantization = quantization_of(details)
    if quantization is not None and np.issubdtype(value.dtype, np.floating):
        return quantization.quantize(value, details["dtype"])
    return value.astype(details["dtype"])


def _real(value: Array, details: dict[str, Any], quantization_of: Any) -> Array:
    quantization = quantization_of(details)
    return np.asarray(quantization.dequantize(value) if quantization is not None else value)


def places(expected: Sequence[Arrays], got: Sequence[Sequence[Array]]) -> Places:
    """Find which of a float file's outputs stands for each of the source's, and how it is turned.

    Raises:
        ValueError: one is not among them.
    """
    found: Places = {}
    for name, value in expected[0].items():
        best = max(((decibels([e[name] for e in expected], [g[k].transpose(p).reshape(value.shape) for g in got]), k, p)
                    for k, other in enumerate(got[0]) for p in _turns(other.shape, value.shape)), default=(-1e9, 0, ()))
        if best[0] < SAME_DB:
            raise ValueError(f"no output of the float file stands for '{name}'")
        found[name] = best[1], best[2]
    return found


def _turns(shape: tuple[int, ...], wanted: tuple[int, ...]) -> list[tuple[int, ...]]:
    """The permutations that bring a shape to another; ones may come and go where nothing is turned."""
    if len(shape) > 6 or int(np.prod(shape)) != int(np.prod(wanted)):
        return []
    exact = [p for p in itertools.permutations(range(len(shape))) if tuple(shape[a] for a in p) == tuple(wanted)]
    return exact or [tuple(range(len(shape)))]


def compare(expected: Sequence[Arrays], got: Sequence[Sequence[Array]],
            where: Places) -> dict[str, float]:
    """The SQNR in dB of each of the source's outputs."""
    return {name: decibels([e[name] for e in expected],
                           [g[k].transpose(p).reshape(expected[0][name].shape) for g in got])
            for name, (k, p) in where.items()}
