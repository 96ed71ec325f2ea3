"""The findings of a compilation: why it was refused, what stays on the CPU, what the result is known to get wrong."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from vitrify.backends.vela.database import Perf
from vitrify.core.findings import Finding, Severity
from vitrify.core.words import shell
from vitrify.ir import Graph
from vitrify.targets.base import Target

_LINES_SHOWN = 8
_DISK_FULL = "No space left on device"
_INVALID = re.compile(r"Error: (?P<operator>\S+) '(?P<tensor>.*)' Does not have valid TFLite Semantics\.\s+- "
                      r"(?P<rule>.*)\n(?P<value>.*)")
_FULL = re.compile(r"Failed to allocate tensors\. Memory used (?P<used>\d+), limit (?P<limit>\d+)")
_BAD_CALL = 2      # argparse's exit status


def already_compiled(path: Path, count: int) -> Finding:
    """The file holds NPU operators."""
    return Finding(code="ethos-u.already-compiled", headline=f"{path.name} is compiled already: it holds "
                   f"{count} ethos-u operator{'s' * (count > 1)}", where=str(path),
                   help="give the model that it was compiled from")


def died(findings: Sequence[Finding], path: Path) -> list[Finding]:
    """The compiler's process ended badly; the file is named."""
    return [msgspec.structs.replace(finding, where=str(path)) for finding in findings]


def second_try(first: Finding) -> Finding:
    """The compiler died when it optimized for speed, and did not when it optimized for memory."""
    return Finding(code="vela.second-try", severity=Severity.WARNING, where=first.where,
                   headline=f"{first.headline} when it optimized for speed; compiled for little memory instead",
                   why="the results are the same bit for bit; on four models that compile both ways the estimated time "
                   "differed by -5 to +4 %", help="another input size may compile for speed as well")


def refused(path: Path, target: Target, graph: Graph, status: int, message: str, log: str) -> list[Finding]:
    """The compiler ended with an error of its own; of a float model that is said first, as it is the cause."""
    found = _refused(path, graph, status, message, log)
    floats = nothing_placed(path, target, graph)
    is_cause = found.code == "vela.invalid-operator" and floats.code == "ethos-u.float-model"
    return [floats, found] if is_cause else [found]


def _refused(path: Path, graph: Graph, status: int, message: str, log: str) -> Finding:
    text = message.strip() or next((line for line in reversed(log.splitlines()) if line.strip()), "it printed nothing")
    if status == _BAD_CALL:
        return Finding(code="vela.bad-call", headline=f"Vela does not know an option that it was given: {text}",
                       where=str(path),
                       help="install the release that Vitrify asks for: pip install 'ethos-u-vela>=5.2,<6'")
    if _DISK_FULL in text:
        return no_room(_DISK_FULL)
    if invalid := _INVALID.search(text):
        return _invalid_operator(path, graph, **invalid.groupdict())
    if full := _FULL.search(text):
        return _no_memory(path, int(full["used"]), int(full["limit"]))
    return Finding(code="vela.failed", headline=f"Vela cannot compile {path.name}: {text}", where=str(path),
                   why="\n".join(_told(log)))


def _no_memory(path: Path, used: int, limit: int) -> Finding:
    """The tensors do not fit the memory that the target has for them."""
    return Finding(code="vela.memory", headline=f"the tensors of {path.name} need {used:,} bytes at once; the target "
                   f"has {limit:,} for them", where=str(path), why="Vela finds no schedule that needs less",
                   help="a smaller input size, or fewer channels where the largest tensors are: vitrify sweep MODEL "
                        "--size shows from which size on it fits")


def no_room(reason: str) -> Finding:
    """The working folder cannot be filled."""
    return Finding(code="file.write", headline=f"cannot work in the folder for temporary files: {reason}",
                   where=tempfile.gettempdir(), help="free space there, or name another folder in TMPDIR")


def _invalid_operator(path: Path, graph: Graph, operator: str, tensor: str, rule: str, value: str) -> Finding:
    name = next((node.name for node in graph if tensor in (made.name for made in node.outputs)), tensor)
    found = value.strip().rstrip(",")
    return Finding(code="vela.invalid-operator", headline=f"Vela refuses {operator} '{name}', and the model with it: "
                   f"{rule.strip()}{f'; found {found}' if found else ''}", where=f"{path}, node '{name}'",
                   why="the compiler takes the operator for invalid instead of leaving it to the CPU")


def _told(log: str) -> list[str]:
    """The end of what the compiler said, without the traceback of its own code."""
    before = log.split("Traceback (most recent call last)", 1)[0]
    return [line.rstrip() for line in before.splitlines() if line.strip()][-_LINES_SHOWN:]


def nothing_placed(path: Path, target: Target, graph: Graph) -> Finding:
    """Nothing runs on the NPU; names the cause by what the nodes compute with."""
    total = len(graph)
    floats = sum(any(tensor.dtype.is_float for tensor in node.outputs) for node in graph)
    headline = f"no node of {path.name} runs on the {target.npu}: 0 of {total}"
    if floats * 2 > total:
        return Finding(code="ethos-u.float-model", headline=f"{headline}; {floats} of them compute in float",
                       where=str(path), why="the NPU computes with integers only",
                       help=f"quantize it first: vitrify quantize {shell(path.name)} --data FOLDER "
                            f"-o {shell(path.stem + '_int8.tflite')}")
    return Finding(code="ethos-u.nothing-placed", headline=headline, where=str(path),
                   why="the compiler succeeds on such a model, but its result is no faster than the original")


def calls(count: int, target: Target) -> Iterator[Finding]:
    """Say what more than one call of the NPU costs."""
    if count > 1:
        fact = target.fact("driver_call_s")
        low, high = (bound * 1e3 * count for bound in fact.bounds)
        yield Finding(code="ethos-u.many-calls", severity=Severity.INFO,
                      headline=f"one inference calls the NPU {count} times, since CPU nodes stand between: "
                      f"{low:.2g} to {high:.2g} ms of driver time (estimate)", why=f"{fact.basis}: {fact.source}")



def no_cycles(lost: Sequence[Perf], graphs: int) -> Iterator[Finding]:
    """Say that the compiler's cycles are known for the whole model only."""
    if lost:
        yield Finding(code="vela.cycles-not-split", severity=Severity.INFO,
                      headline=f"{lost[0].cycles} NPU cycles are known for the whole model, not for each node",
                      why=f"the model has {graphs} graphs, and the compiler lists the operators of the last one only")
