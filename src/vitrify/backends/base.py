"""What the drivers of outside compilers have in common: the answer to a compilation, and the register of the drivers.

A backend is a folder beside this file with a module ``backend``; it is called like the folder, and an instance of the
class that is decorated with ``@backend`` there drives it. Nothing else lists them, and only the one that a target asks
for is imported.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar

import msgspec

from vitrify.core.errors import InternalError
from vitrify.core.findings import Finding
from vitrify.core.isolation import DEFAULT_MEMORY_BYTES
from vitrify.ir import Graph, Model, Node
from vitrify.targets.base import Target
from vitrify.targets.placement import Estimate, Memory, Place, Placement

_FOLDER = Path(__file__).parent
_MODULE = "backend.py"


class Layer(msgspec.Struct, frozen=True, kw_only=True):
    """One operator that a compiler scheduled: cycles in all, of computing and of each memory (they overlap).

    ``name`` is the compiler's, usually that of a tensor; ``passed`` says that it was left to the CPU.
    """

    name: str
    operator: str
    cycles: int
    compute_cycles: int
    near_cycles: int
    far_cycles: int
    macs: int
    near_bytes: int
    far_bytes: int
    passed: bool = False


class Life(msgspec.Struct, frozen=True, kw_only=True):
    """A tensor as a compiler placed it: in which memory, where, and from when to when, in its own steps."""

    name: str
    memory: str
    usage: str
    offset: int
    bytes: int
    first: int
    last: int


class OperatorRow(msgspec.Struct, frozen=True, kw_only=True):
    """One node of the source model with its estimated cost.

    ``cycles`` counts everything on the NPU that the node became; 0 when it was fused or folded, None where the compiler
    tells none. ``ms`` of a CPU node is the likely value of a wide interval. ``utilisation`` is the share of the NPU's
    MACs that are busy, 0..1.
    """

    node: str
    operator: str
    placement: Place
    cycles: int | None
    ms: float
    macs: int
    utilisation: float
    dram_bytes: int
    layers: tuple[Layer, ...] = ()
    low_ms: float | None = None
    high_ms: float | None = None


class Compiled(msgspec.Struct, frozen=True, kw_only=True):
    """What a compilation gave. ``output`` is None when nothing was asked to be kept; times in it are estimates.

    ``compiler`` and ``version`` say what made it, ``options`` what it was told; ``statistics`` are figures that the
    compiler prints and that mean something for it alone. ``estimate`` and ``memory`` are None where nothing tells them.
    ``overhead`` are layers of no node of the source, ``totals`` the compiler's own sums (cycles, compute, near, far,
    macs), ``lives`` the tensors as it placed them.
    """

    output: str | None
    target: str
    compiler: str
    version: str
    placement: Placement
    estimate: Estimate | None
    memory: Memory | None
    operators: tuple[OperatorRow, ...]
    findings: tuple[Finding, ...]
    options: tuple[str, ...]
    seconds: float
    log: str
    statistics: dict[str, int | float | str] = {}
    overhead: tuple[Layer, ...] = ()
    totals: dict[str, int] = {}
    lives: tuple[Life, ...] = ()

    @property
    def maker(self) -> str:
        """What reports call the compiler: its name and version."""
        return f"{self.compiler} {self.version}".strip()


class CompilerOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What the user asks of a compiler.

    Args:
        where: a place to look for it, or one of several versions; empty: where it is usually found.
        options: options of its own by name, passed through; an empty value stands for a flag.
        seconds: the time limit, None for the backend's own.
        memory_bytes: the memory limit.
        as_it_is: compile the file and no other form of it, also where this compiler is known to compute it wrongly.
    """

    where: str = ""
    options: Mapping[str, str] = {}
    seconds: float | None = None
    memory_bytes: int = DEFAULT_MEMORY_BYTES
    as_it_is: bool = False


class Installation(msgspec.Struct, frozen=True, kw_only=True):
    """One installed version of a compiler: ``place`` is its file or module, ``found_by`` how it was found."""

    compiler: str
    version: str
    place: str
    found_by: str = ""


class NpuPart(NamedTuple):
    """One NPU operator of a compiled file: ``nodes`` of the source are in it, ``inputs`` and ``outputs`` are tensors
    that both have, by name."""

    node: Node
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    nodes: tuple[Node, ...]


class Backend(Protocol):
    """Drives one outside compiler, always in a child process."""

    name: str
    """The folder's name, which targets give as their ``backend``."""
    title: str
    """What people call the compiler."""
    ending: str
    """What a compiled file's name ends in."""
    must_verify: bool
    """Whether a result that nobody has compared with its source is worth a warning: wrong ones were published."""

    def installations(self, options: CompilerOptions = ...) -> list[Installation]:
        """Return the versions that are installed, the one that would be used first; cheap where there are none."""

    def missing(self, path: Path, target: Target, options: CompilerOptions = ...) -> Finding:
        """Say that it is not installed, and the exact command that compiles ``path`` once it is."""

    def check(self, path: Path, target: Target, options: CompilerOptions = ...) -> Compiled:
        """Compile and keep nothing; a model of which nothing runs on the NPU is no error.

        Raises:
            VitrifyError: the compiler is missing, refuses the file or dies of it.
        """

    def compile(self, path: Path, target: Target, output: Path, options: CompilerOptions = ...) -> Compiled:
        """Compile and write ``output``, whole or not at all.

        Raises:
            VitrifyError: as ``check``, or nothing of it would run on the NPU.
        """

    def parts(self, source: Graph, compiled: Model) -> list[NpuPart]:
        """Return the NPU operators of a compiled file in running order; empty where they cannot be had apart."""

    def run(self, compiled: Path, target: Target, samples: Sequence[Sequence[Any]],
            options: CompilerOptions = ...) -> list[list[Any]] | None:
        """Return a compiled file's output tensors for the samples' input tensors; None where nothing here can run it.

        Raises:
            VitrifyError: what could run it fails.
        """


Made = TypeVar("Made", bound=Backend)
_FOUND: dict[str, Backend] = {}


def backend(driver: type[Made]) -> type[Made]:
    """Register a class as the driver of the backend whose folder its module is in."""
    _FOUND[driver.__module__.rsplit(".", 2)[-2]] = driver()
    return driver


def names() -> list[str]:
    """Return the names of all backends, sorted."""
    return sorted(path.parent.name for path in _FOLDER.glob(f"*/{_MODULE}"))


@cache
def find(name: str) -> Backend | None:
    """Return the backend called ``name``; None where there is none, as for a chip whose graph is built at run time.

    Raises:
        InternalError: its module registers nothing.
    """
    if not (_FOLDER / name / _MODULE).is_file():
        return None
    importlib.import_module(f"vitrify.backends.{name}.{_MODULE.removesuffix('.py')}")
    if name not in _FOUND:
        raise InternalError.of("backend.empty", f"the backend '{name}' registers no driver")
    return _FOUND[name]


def driver_of(target: Target) -> Backend | None:
    """Return the driver of the compiler that serves the target's NPU."""
    return find(target.backend) if target.backend else None


def is_installed(target: Target, options: CompilerOptions = CompilerOptions()) -> bool:
    """True when the target's compiler is there."""
    driver = driver_of(target)
    return driver is not None and bool(driver.installations(options))
