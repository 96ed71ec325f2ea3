"""`doctor` without a board: what is installed, what of it was tested, what can be compiled, if there is room."""

from __future__ import annotations

import os
import platform
import shutil
import tempfile
from collections.abc import Iterator
from functools import cache
from importlib import metadata, resources
from pathlib import Path

import msgspec

from vitrify._version import __version__
from vitrify.boards.facts import order
from vitrify.core.findings import Finding, Severity
from vitrify.core.words import bytes_text
from vitrify.results import DoctorResult, PartRow, ServedRow

LEAST_DISK = 1 << 30
LEAST_MEMORY = 2 << 30
"""Vela needs 0.6 GB for the largest models seen, a conversion several times the model's size."""
_NUMBERS = 2


class Package(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A package, what it is for, and from which version to which it was tried."""

    role: str
    needed: bool
    first: str
    last: str
    help: str = "pip install --upgrade vitrify"


@cache
def tested() -> dict[str, Package]:
    """Return the packages of the table by name."""
    text = resources.files(__package__).joinpath("tested.toml").read_text(encoding="utf-8")
    return msgspec.convert(msgspec.toml.decode(text)["packages"], dict[str, Package])


def examine_here(cache_folder: Path | None = None) -> DoctorResult:
    """Say what this machine has; ``ok`` unless something that is needed is missing or cannot be written."""
    result = DoctorResult(parts=[PartRow(name="vitrify", found=__version__, state="ok"),
                                 PartRow(name="system", found=f"{platform.system()} {platform.machine()}")])
    for name, package in tested().items():
        part, finding = judge_package(name, package, installed(name))
        result.parts.append(part)
        result.findings += [finding] if finding else []
    result.served = list(served())
    for part, finding in (*_room(cache_folder or _cache()), _memory()):
        result.parts.append(part)
        result.findings += [finding] if finding else []
    result.ok = not any(finding.severity is Severity.ERROR for finding in result.findings)
    return result


def installed(name: str) -> str:
    """Return the version of a package; empty when it is not installed."""
    if name == "python":
        return platform.python_version()
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""


def judge_package(name: str, package: Package, version: str) -> tuple[PartRow, Finding | None]:
    """Hold a version against those that were tested."""
    fits = package.first if package.first == package.last else f"{package.first} to {package.last}"
    part = PartRow(name=name, found=version or "not installed", fits=fits, state="ok", source=package.role)
    if not version:
        part.state = "error" if package.needed else "info"
        if not package.needed:
            return part, None
        return part, Finding(code="doctor.package-missing", headline=f"{name} is not installed", where=name,
                             why=f"it {package.role}", help=package.help)
    if order(version)[:_NUMBERS] < order(package.first) or order(version)[:len(order(package.last))] > order(
            package.last):
        part.state = "warning"
        return part, Finding(code="doctor.untested", severity=Severity.WARNING, where=name,
                             headline=f"{name} {version} is outside of what was tested ({fits})",
                             why=f"it {package.role}; another version may do it otherwise", help=package.help)
    return part, None


def served() -> Iterator[ServedRow]:
    """Yield each chip with what can be done for it here."""
    from vitrify.backends.base import driver_of
    from vitrify.targets import base as targets

    for name in targets.names():
        driver = driver_of(targets.load(name))
        found = driver.installations() if driver is not None else []
        yield ServedRow(target=name, can="compiled" if found else "judged",
                        compiler=f"{found[0].compiler} {found[0].version}".strip() if found else "")


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")


def _room(cache_folder: Path) -> Iterator[tuple[PartRow, Finding | None]]:
    """Folders that are written to: for temporary files, for what is kept, and the one we are in."""
    for name, folder, needed in (("temporary files", Path(tempfile.gettempdir()), True),
                                 ("cache", cache_folder, False), ("current folder", Path.cwd(), False)):
        refusal = _refusal(folder)
        if refusal:
            severity = Severity.ERROR if needed else Severity.WARNING
            yield PartRow(name=name, found=f"{folder}: {refusal}", state=severity.value), Finding(
                code="doctor.cannot-write", severity=severity, where=str(folder),
                headline=f"the folder for {name} cannot be written: {refusal}",
                why="models are written aside there before they appear",
                help="set TMPDIR to a folder that can be written" if needed else "")
            continue
        free = shutil.disk_usage(_existing(folder)).free
        part = PartRow(name=name, found=f"{folder}, {bytes_text(free)} free", state="ok")
        if free < LEAST_DISK:
            part.state = "warning"
            yield part, Finding(code="doctor.little-room", severity=Severity.WARNING, where=str(folder),
                                headline=f"{bytes_text(free)} are free for {name}; large models want "
                                         f"{bytes_text(LEAST_DISK)}")
        else:
            yield part, None


def _existing(folder: Path) -> Path:
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    return folder


def _refusal(folder: Path) -> str:
    """Why nothing can be written to a folder; empty when it can. A folder that is not there yet would be made."""
    try:
        with tempfile.TemporaryFile(dir=_existing(folder)) as stream:
            stream.write(b"x")
    except OSError as error:
        return error.strerror or str(error)
    return ""


def _memory() -> tuple[PartRow, Finding | None]:
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    part = PartRow(name="memory", found=bytes_text(total), state="ok")
    if total >= LEAST_MEMORY:
        return part, None
    part.state = "warning"
    return part, Finding(code="doctor.little-memory", severity=Severity.WARNING,
                         headline=f"this machine has {bytes_text(total)} of memory; large models want "
                                  f"{bytes_text(LEAST_MEMORY)}")
