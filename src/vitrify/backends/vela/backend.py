"""Registers Vela; what drives it is imported when it is needed."""

from __future__ import annotations

import importlib.metadata
import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from vitrify.backends.base import Compiled, CompilerOptions, Installation, NpuPart, backend
from vitrify.core.errors import UsageError
from vitrify.core.findings import Finding, Severity
from vitrify.core.words import shell
from vitrify.ir import Graph, Model
from vitrify.targets.base import Target

if TYPE_CHECKING:
    from vitrify.backends.vela.settings import Optimise

IGNORE = "ignore-ops"
"""The option that names operators to leave on the CPU, with commas between them."""
_MODULE, _PACKAGE = "ethosu", "ethos-u-vela"


@backend
class Vela:
    """Arm's compiler for the Ethos-U NPUs, a Python package of this environment."""

    name = "vela"
    title = "Vela"
    ending = "_vela.tflite"
    must_verify = False

    def installations(self, options: CompilerOptions = CompilerOptions()) -> list[Installation]:
        """Return the one that this environment has."""
        if importlib.util.find_spec(_MODULE) is None:
            return []
        return [Installation(compiler=self.title, version=importlib.metadata.version(_PACKAGE), place=_MODULE,
                             found_by="this Python environment")]

    def missing(self, path: Path, target: Target, options: CompilerOptions = CompilerOptions()) -> Finding:
        """Say how to install it."""
        return Finding(code="vela.not-installed", severity=Severity.WARNING, where=target.name,
                       headline="Vela, the compiler of Ethos-U NPUs, is not installed",
                       help=f"pip install 'ethos-u-vela>=5.2,<6', then vitrify compile {shell(path)} --target "
                            f"{target.name}")

    def check(self, path: Path, target: Target, options: CompilerOptions = CompilerOptions()) -> Compiled:
        """Compile and keep nothing (see ``backends.base.Backend``)."""
        from vitrify.backends.vela.compiling import DEFAULT_SECONDS, check_model

        return check_model(path, target, optimise=_optimise(options), seconds=options.seconds or DEFAULT_SECONDS,
                           memory_bytes=options.memory_bytes)

    def compile(self, path: Path, target: Target, output: Path,
                options: CompilerOptions = CompilerOptions()) -> Compiled:
        """Compile and write ``output`` (see ``backends.base.Backend``)."""
        from vitrify.backends.vela.compiling import DEFAULT_SECONDS, compile_model

        return compile_model(path, target, output, optimise=_optimise(options), ignore=_ignored(options),
                             seconds=options.seconds or DEFAULT_SECONDS, memory_bytes=options.memory_bytes)

    def parts(self, source: Graph, compiled: Model) -> list[NpuPart]:
        """Return nothing: command streams of one file share an arena."""
        return []

    def run(self, compiled: Path, target: Target, samples: Sequence[Sequence[Any]],
            options: CompilerOptions = CompilerOptions()) -> list[list[Any]] | None:
        """Return nothing: a command stream runs on the chip only."""
        return None


def _ignored(options: CompilerOptions) -> tuple[str, ...]:
    """The operators that are to stay on the CPU.

    Raises:
        UsageError: there is no such operator.
    """
    from vitrify.tflite.schema import operator_codes

    names = tuple(name.strip().upper() for name in options.options.get(IGNORE, "").split(",") if name.strip())
    unknown = [name for name in names if name not in operator_codes()]
    if unknown:
        raise UsageError.of("compile.operator", f"there is no operator '{unknown[0]}'",
                            help="name kinds as `vitrify inspect MODEL` does, as in --ignore-ops SUM,SOFTMAX")
    return names


def _optimise(options: CompilerOptions) -> Optimise | None:
    """What it is to work for, the one option that is passed on.

    Raises:
        UsageError: it is told something else.
    """
    known: dict[str, Literal["Performance", "Size"]] = {"Performance": "Performance", "Size": "Size"}
    unknown = [name for name in options.options if name not in ("optimise", IGNORE)]
    value = options.options.get("optimise")
    if unknown or value not in (None, *known):
        said = unknown[0] if unknown else f"optimise={value}"
        raise UsageError.of("compile.option", f"Vela is not told '{said}'",
                            help="what it takes here is optimise=Performance or optimise=Size")
    _ignored(options)
    return None if value is None else known[value]
