"""The failures that `reduce` knows by name, one function each. They run in a child process.

Each takes a ``Trial`` and gives the findings that are the failure; none when the model does not fail. A failure is
known again by its signature: the code, and the words of the headline without names and numbers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

from vitrify.core.errors import UsageError, VitrifyError
from vitrify.core.files import temporary_folder
from vitrify.core.findings import Finding
from vitrify.core.isolation import shared_child
from vitrify.core.progress import Silent
from vitrify.pipeline.convert import float_model
from vitrify.pipeline.options import ConvertOptions, DataOptions, QuantizeOptions
from vitrify.pipeline.steps import COMPILABLE, is_tflite, kind_of

_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"|[\d.]+|\[[^]]*\]|\([^)]*\)")
_NAMES = re.compile(r"'([^']+)'")
_DEAD = ("process.died",)


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What came of one try. ``names`` are those that the failure mentions, ``signature`` is what it is known by."""

    fails: bool
    text: str = ""
    code: str = ""
    signature: str = ""
    names: tuple[str, ...] = ()


class Trial(NamedTuple):
    """One model that is tried, with values for its inputs."""

    path: Path
    inputs: Mapping[str, Any]
    arguments: tuple[str, ...]

    def argument(self, number: int, default: str = "") -> str:
        """The predicate's argument at that place."""
        return self.arguments[number] if number < len(self.arguments) else default


class Known(NamedTuple):
    """A predicate: what it takes, what it is, and the function."""

    name: str
    takes: str
    least: int
    title: str
    function: Callable[[Trial], list[Finding]]


PREDICATES: dict[str, Known] = {}


def predicate(name: str, takes: str = "", least: int = 0) -> Callable[[Callable[[Trial], list[Finding]]],
                                                                      Callable[[Trial], list[Finding]]]:
    """Register a predicate under ``name``; ``takes`` names its arguments, ``least`` have to be given."""
    def register(function: Callable[[Trial], list[Finding]]) -> Callable[[Trial], list[Finding]]:
        PREDICATES[name] = Known(name, takes, least, (function.__doc__ or "").splitlines()[0], function)
        return function

    return register


def parse(text: str) -> tuple[str, tuple[str, ...]]:
    """Read ``NAME`` or ``NAME:ARG,ARG``.

    Raises:
        UsageError: there is no such predicate, or an argument is missing.
    """
    name, _, rest = text.partition(":")
    arguments = tuple(word for word in rest.split(",") if word)
    listed = ", ".join(f"{k.name}:{k.takes}" if k.takes else k.name for k in PREDICATES.values())
    if name not in PREDICATES:
        raise UsageError.of("reduce.predicate", f"there is no predicate '{name}'", where="--predicate",
                            help=f"there are {listed}")
    if len(arguments) < PREDICATES[name].least:
        raise UsageError.of("reduce.predicate", f"the predicate '{name}' takes {PREDICATES[name].takes}",
                            where="--predicate", help=f"there are {listed}")
    if name == "sqnr":
        _decibels(arguments[0])
    if name in ("vela", "miscompiled"):
        from vitrify.targets import base as targets

        targets.load(arguments[0])
    return name, arguments


def check_here(path: str, inputs: str, name: str, arguments: tuple[str, ...], signature: str, pattern: str) -> Any:
    """Run in a child: try a model; ``signature`` is the failure that is looked for, empty while it is not known."""
    given = dict(np.load(inputs)) if inputs else {}
    with shared_child():
        found = PREDICATES[name].function(Trial(Path(path), given, arguments))
    return msgspec.to_builtins(judged(found, signature, pattern))


def judged(found: Iterable[Finding], signature: str, pattern: str) -> Verdict:
    """Say whether the failure that is looked for is among the findings."""
    other = ""
    for finding in found:
        text = str(finding)
        if pattern and not re.search(pattern, text):
            other = other or finding.headline
            continue
        if signature and signature_of(finding) != signature:
            other = other or finding.headline
            continue
        names = tuple(dict.fromkeys(_NAMES.findall(f"{finding.where} {finding.headline}")))
        return Verdict(fails=True, text=finding.headline, code=finding.code, signature=signature_of(finding),
                       names=names)
    return Verdict(fails=False, text=other)


def signature_of(finding: Finding) -> str:
    """What a failure is known by in a smaller model, where names, numbers and shapes are others."""
    words = re.findall(r"[A-Za-z_]+", _QUOTED.sub(" ", finding.headline))
    return f"{finding.code}: {' '.join(words)}"


@predicate("import", "[CODE]")
def importing(trial: Trial) -> list[Finding]:
    """The importer refuses the model, or stumbles over it."""
    try:
        float_model(trial.path, ConvertOptions(), Silent())
    except VitrifyError as error:
        return _of_code(error.findings, trial.argument(0))
    except Exception as error:       # the border of the child: a stumbling importer is what may be looked for
        return _of_code([_stumbled(error)], trial.argument(0))
    return []


@predicate("quantize", "[CODE]")
def quantizing(trial: Trial) -> list[Finding]:
    """The quantizer refuses a model that can be imported."""
    try:
        model, _ = float_model(trial.path, ConvertOptions(), Silent())
    except VitrifyError:
        return []
    try:
        _quantized(model, trial)
    except VitrifyError as error:
        return _of_code(error.findings, trial.argument(0))
    except Exception as error:       # the border of the child
        return _of_code([_stumbled(error)], trial.argument(0))
    return []


@predicate("sqnr", "DB[,TENSOR]", 1)
def drowning(trial: Trial) -> list[Finding]:
    """An output, a group of its channels, or the tensor named keeps less than so many decibels in 8 bits."""
    least = _decibels(trial.argument(0))
    model, _ = float_model(trial.path, ConvertOptions(), Silent())
    if trial.argument(1) and not _give_out(model, trial.argument(1)):
        return []
    lowest = _quantized(model, trial).result.quality.lowest()
    if lowest is None or lowest.sqnr_db >= least:
        return []
    return [Finding(code="reduce.sqnr", headline=f"{lowest.name} keeps {lowest} in 8 bits, {least:g} dB are asked for")]


@predicate("abort")
def aborting(trial: Trial) -> list[Finding]:
    """LiteRT dies of the model, with a signal instead of an error."""
    from vitrify.runtimes.base import zeros
    from vitrify.runtimes.litert import LiteRT

    with temporary_folder() as folder:
        path = _as_tflite(trial, folder)
        try:
            with LiteRT(path, kernels="reference", seconds=60) as runtime:
                runtime.run(zeros(runtime.interface))
        except VitrifyError as error:
            return [finding for finding in error.findings if finding.code in _DEAD]
    return []


@predicate("vela", "TARGET[,CODE]", 1)
def refused_by_vela(trial: Trial) -> list[Finding]:
    """Vela refuses the model, or dies of it; a float model is quantized on random values first."""
    from vitrify.backends.vela import check_model

    with temporary_folder() as folder:
        path = _as_integers(trial, folder)
        try:
            check_model(path, trial.argument(0), seconds=120)
        except VitrifyError as error:
            return _of_code(error.findings, trial.argument(1))
    return []


@predicate("miscompiled", "TARGET", 1)
def miscompiled(trial: Trial) -> list[Finding]:
    """The file that Vela makes gives other answers than the model, run on the host."""
    from vitrify.backends.vela import compile_model
    from vitrify.pipeline.compiling.simulated import verify_simulated

    with temporary_folder() as folder:
        path, compiled = _as_integers(trial, folder), folder / "compiled_vela.tflite"
        try:
            compile_model(path, trial.argument(0), compiled, seconds=120)
        except VitrifyError:
            return []
        return [f for f in verify_simulated(path, compiled).findings if f.code == "compile.damaged"]


def _of_code(findings: Iterable[Finding], code: str) -> list[Finding]:
    return [finding for finding in findings if not code or finding.code == code]


def _stumbled(error: Exception) -> Finding:
    return Finding(code="process.raised", headline=f"{type(error).__name__}: {error}")


def _decibels(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise UsageError.of("reduce.predicate", f"'{text}' is no number of decibels", where="--predicate",
                            help="write it like --predicate sqnr:20 or --predicate sqnr:20,TENSOR") from None


def _quantized(model: Any, trial: Trial) -> Any:
    """Quantize as `quantize --effort fast` does, on the inputs given, without which on random ones."""
    from vitrify.pipeline.quantizing.quantized import quantize_in_memory

    names = [binding.name for binding in model.interface.inputs] if model.interface else []
    given = all(name in trial.inputs for name in names) and bool(names)
    feed = [{name: trial.inputs[name] for name in names}] if given else None
    data = DataOptions() if given else DataOptions(random=True, samples=1)
    return quantize_in_memory(model, data, feed, QuantizeOptions(effort="fast"), None)


def _give_out(model: Any, name: str) -> bool:
    """Make a tensor of the user's the only output; False when there is none of that name."""
    found = next((t for node in model.main for t in node.outputs
                  if name in (t.name, *(source.name for source in t.origin.sources))), None)
    if found is None:
        return False
    model.main.set_outputs([found])
    model.main.remove_dead()
    if model.interface is not None:
        from vitrify.ir.interface import OutputBinding, Part

        binding = OutputBinding(name=found.name, shape=found.shape, dtype=found.dtype.label, parts=(Part(position=0),))
        model.interface = msgspec.structs.replace(model.interface, outputs=(binding,))
    return True


def _as_tflite(trial: Trial, folder: Path) -> Path:
    if is_tflite(trial.path):
        return trial.path
    from vitrify import tflite

    model, _ = float_model(trial.path, ConvertOptions(), Silent())
    tflite.write(model, folder / "float.tflite")
    return folder / "float.tflite"


def _as_integers(trial: Trial, folder: Path) -> Path:
    from vitrify import tflite
    from vitrify.pipeline.checking.without_data import quantize_on_trial

    if is_tflite(trial.path) and kind_of(tflite.read(trial.path)) in COMPILABLE:
        return trial.path
    model, ledger = float_model(trial.path, ConvertOptions(), Silent())
    quantize_on_trial(model, ledger, folder / "int8.tflite", ConvertOptions(), Silent())
    return folder / "int8.tflite"
