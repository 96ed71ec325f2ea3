"""The findings of a conversion for Neutron: what is missing, how it died, and where log, file and rules disagree."""

from __future__ import annotations

import signal
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from vitrify.backends.neutron.log import Log
from vitrify.core.findings import Finding, Severity
from vitrify.core.words import percent, shell
from vitrify.targets.base import Target

KNOWN = ("2.0", "3.3")
"""The first and the last release whose log is known."""
_LINES_SHOWN = 8
_FULL = ("No space left on device", "Disk quota exceeded", "File too large", "ENOSPC")
_WANTED = "give --neutron-sdk a folder with bin/neutron-converter, the program itself, or a folder of Python packages"


def no_sdk_at(where: str) -> Finding:
    """There is no SDK where the user says."""
    return Finding(code="neutron.no-sdk", headline=f"there is no eIQ Neutron SDK at {where}", where=where, help=_WANTED)


def not_installed(path: Path, target: Target, wanted: str) -> Finding:
    """The SDK is missing; says how the file is compiled once it is there."""
    what = "the eIQ Neutron SDK" if not wanted else f"release {wanted} of the eIQ Neutron SDK"
    return Finding(
        code="neutron.not-installed", where=str(path),
        headline=f"{what} is not installed, so nothing was compiled for {target.name}",
        why="NXP gives it away itself; Vitrify only drives it. Verdicts are those of the rules, times are estimates",
        help=f"vitrify compile {shell(path)} --target {target.name} --neutron-sdk FOLDER; or by hand: "
             f"neutron-converter --input {shell(path)} --output {shell(path.stem + '_neutron.tflite')} "
             f"--target {target.accelerator}")


def unknown_target(path: Path, target: Target, listed: Sequence[str], version: str) -> Finding:
    """The installed converter does not know the chip."""
    return Finding(code="neutron.unknown-target", where=str(path),
                   headline=f"neutron-converter{version and f' {version}'} has no target '{target.accelerator}'",
                   why=f"it lists {', '.join(listed)}",
                   help="use a release of the SDK for this chip: --neutron-sdk FOLDER")


def versions(asked: str, logged: str, place: str) -> Iterator[Finding]:
    """Warn of a release whose log is not known, or of two that are mixed."""
    version = asked or logged
    if not version:
        yield Finding(code="neutron.unknown-version", severity=Severity.WARNING, where=place,
                      headline="the converter does not say its version", why="whether it fits the board cannot be told")
    elif not KNOWN[0] <= _release(version) <= KNOWN[1]:
        yield Finding(code="neutron.unknown-version", severity=Severity.WARNING, where=place,
                      headline=f"release {version} of the converter is not among those known, {KNOWN[0]} to {KNOWN[1]}",
                      why="what it prints may mean something else than is read from it here")
    if asked and logged and asked != logged:
        yield Finding(code="neutron.version-mismatch", severity=Severity.WARNING, where=place,
                      headline=f"the converter says that it is {asked}, and {logged} while it converts",
                      why="parts of two releases are mixed; converter, driver and firmware have to be of one")


def _release(version: str) -> str:
    return ".".join(version.split(".")[:2])


def ended(path: Path, status: int | str, log: str) -> Finding:
    """The converter ended with an error of its own, was killed by a signal, or could not be started."""
    why = "\n".join(_last(log))
    if isinstance(status, str):
        return Finding(code="neutron.cannot-start", headline=f"neutron-converter cannot be started: {status}",
                       where=str(path), why=why, help=_WANTED)
    if status == -signal.SIGXFSZ or any(text in log for text in _FULL):
        return full_disk(log)
    if status < 0:
        return Finding(code="neutron.died", where=str(path), why=why,
                       headline=f"neutron-converter died of {signal.Signals(-status).name} on {path.name}")
    said = next((line.strip() for line in reversed(log.splitlines()) if line.strip()), "it printed nothing")
    return Finding(code="neutron.failed", where=str(path), why=why,
                   headline=f"neutron-converter cannot convert {path.name} (status {status}): {said}")


def full_disk(log: str) -> Finding:
    """There is no room for what the converter writes."""
    return Finding(code="file.write", headline="neutron-converter has no room for what it writes",
                   where=tempfile.gettempdir(), why="\n".join(_last(log)),
                   help="free space there, or name another folder in TMPDIR")


def _last(log: str) -> list[str]:
    return [line.rstrip() for line in log.splitlines() if line.strip()][-_LINES_SHOWN:]


def no_output(path: Path, log: str) -> Finding:
    """It ended well and wrote nothing."""
    return Finding(code="neutron.no-output", where=str(path), why="\n".join(_last(log)),
                   headline=f"neutron-converter ended well on {path.name}, but wrote no file")


def bad_output(path: Path, reason: str) -> Finding:
    """What it wrote is no model."""
    return Finding(code="neutron.bad-output", where=str(path),
                   headline=f"what neutron-converter wrote for {path.name} is no TFLite model: {reason}")


def other_model(path: Path, side: str, given: Sequence[str], made: Sequence[str]) -> Finding:
    """The result takes or gives something else than the model."""
    return Finding(code="neutron.other-model", where=str(path),
                   headline="what neutron-converter wrote is not the model: "
                            f"its {side} are {', '.join(made) or 'none'}",
                   why=f"those of {path.name} are {', '.join(given) or 'none'}")


def wrong_target(path: Path, wanted: str, told: str) -> Finding:
    """It converted for another chip."""
    return Finding(code="neutron.wrong-target", where=str(path),
                   headline=f"neutron-converter says that it converted for '{told}', not for '{wanted}'",
                   help="use another release of the SDK: --neutron-sdk FOLDER")


def already_compiled(path: Path, count: int) -> Finding:
    """The file holds Neutron graphs."""
    return Finding(code="neutron.already-compiled", where=str(path),
                   headline=f"{path.name} is compiled already: it holds {count} NeutronGraph "
                            f"operator{'s' * (count > 1)}",
                   help="give the model that it was compiled from")


def nothing_placed(path: Path, target: Target, total: int) -> Finding:
    """Nothing runs on the NPU."""
    return Finding(code="neutron.nothing-placed", where=str(path),
                   headline=f"no node of {path.name} runs on the {target.npu}: 0 of {total}",
                   why="the converter succeeds on such a model, but its result holds no NeutronGraph")


def ratio(log: Log, nodes: int) -> Iterator[Finding]:
    """Explain what the converter's ratio counts."""
    if log.ratio is None or not log.ratio[1]:
        return
    part, whole = log.ratio
    before = log.imported if log.imported is not None else nodes
    yield Finding(code="neutron.ratio", severity=Severity.INFO,
                  headline=f"the converter took {part} of {whole} operators ({percent(part / whole)})",
                  why=f"it counts after its optimize step, which made {whole} operators of {before}; the shares told "
                      "here are of the model's own nodes")


def log_disagrees(contradictions: Sequence[str], path: Path) -> Iterator[Finding]:
    """The log says something else than the file holds, or than it says elsewhere."""
    if contradictions:
        yield Finding(code="neutron.log-disagrees", severity=Severity.WARNING, where=str(path),
                      headline=f"the converter's log is wrong: {'; '.join(contradictions)}",
                      why="the verdicts here are read from the file that it wrote")


def no_statistics(path: Path) -> Finding:
    """The log is not one that is known."""
    return Finding(code="neutron.no-statistics", severity=Severity.WARNING, where=str(path),
                   headline="the converter's log holds no statistics",
                   why="the verdicts here are read from the file that it wrote")


def spoken(lines: Sequence[str]) -> Iterator[Finding]:
    """Hand on what the converter warns of."""
    if lines:
        more = f" (and {len(lines) - 1} more)" if len(lines) > 1 else ""
        yield Finding(code="neutron.warning", severity=Severity.WARNING,
                      headline=f"the converter says: {lines[0]}{more}", why="\n".join(lines[:_LINES_SHOWN]))


def unmapped(count: int, path: Path) -> Iterator[Finding]:
    """Neutron graphs whose tensors have names that the model does not have."""
    if count:
        yield Finding(code="neutron.unmapped", severity=Severity.WARNING, where=str(path),
                      headline=f"{count} Neutron graph{'s' * (count > 1)} cannot be traced to nodes of the model",
                      why="the converter named their tensors anew; nodes that are not left in the file are taken to be "
                          "in them")
