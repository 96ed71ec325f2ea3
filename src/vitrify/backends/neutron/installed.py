"""Where the eIQ Neutron SDK is: named by the user, in a variable, in a file, on the PATH, or in this Python.

Several versions may stand side by side. The SDK is a folder with ``bin/neutron-converter``, a folder of Python packages
with the module, a virtual environment that has it, or the program itself.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import tomllib
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from vitrify.backends.neutron import findings as said
from vitrify.core.errors import UsageError, VitrifyError
from vitrify.core.isolation import Worker

VARIABLE = "VITRIFY_NEUTRON_SDK"
CONVERTER, RUNNER = "neutron-converter", "neutron-runner"
ASKING_SECONDS = 60.0
_CHILD = "vitrify.backends.neutron.child"
_PACKAGES = ("eiq_neutron_sdk", "neutron_converter*")
_VERSION = re.compile(r"\bversion\s*:?\s*v?(\d+(?:\.\d+)+)", re.IGNORECASE)
_ONLY_VERSION = re.compile(r"\d+(\.\d+)*")
_TARGET = re.compile(r"\b[a-z][a-z0-9]*\d[a-z0-9]*\b")
_FAMILY = ("imx", "mcxn")


class Sdk(NamedTuple):
    """One SDK: its ``converter`` program, or the folder that holds the ``module``; ``libraries`` that it needs."""

    version: str
    converter: str
    module: str
    runner: str
    libraries: tuple[str, ...]
    found_by: str

    @property
    def place(self) -> str:
        """What was found: the program, or the folder with the module."""
        return self.converter or self.module


def find_sdks(where: str = "") -> list[Sdk]:
    """Return the SDKs there are, the one to use first; of ``where``, a place or a version, those that it means.

    Raises:
        UsageError: ``where`` is a place without an SDK.
    """
    if where and not _ONLY_VERSION.fullmatch(where):
        found = _sdk(Path(where).expanduser(), "--neutron-sdk")
        if found is None:
            raise UsageError(said.no_sdk_at(where))
        return [found]
    every = list({sdk.place: sdk for sdk in _usual()}.values())
    return [sdk for sdk in every if not where or f"{sdk.version}.".startswith(f"{where}.")]


def configuration() -> Path:
    """Return the file in which places of SDKs may be listed: ``sdks = ["/opt/eiq-neutron-sdk-linux-3.1.2"]``."""
    folder = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(folder) / "vitrify" / "neutron.toml"


def targets_of(sdk: Sdk) -> list[str]:
    """Return the targets that the SDK's converter lists; empty where it names none of the family."""
    if not sdk.converter:
        return []
    text = _asked(sdk.converter, "--show-targets", sdk.libraries, _stamp(sdk.converter))
    listed = sorted(set(_TARGET.findall(text.lower())))
    return listed if any(one.startswith(_FAMILY) for one in listed) else []


def _usual() -> Iterator[Sdk]:
    places = [(place, f"${VARIABLE}") for place in os.environ.get(VARIABLE, "").split(os.pathsep) if place]
    places += [(place, str(configuration())) for place in _configured()]
    on_path = shutil.which(CONVERTER)
    places += [(on_path, "$PATH")] if on_path else []
    for place, by in places:
        found = _sdk(Path(place).expanduser(), by)
        if found is not None:
            yield found
    for name in ("eiq_neutron_sdk", "neutron_converter"):
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.origin is not None:
            folder = Path(spec.origin).parent
            yield _of_module(folder.parent if spec.submodule_search_locations else folder, "this Python environment")
            return


def _configured() -> list[str]:
    path = configuration()
    if not path.is_file():
        return []
    try:
        listed = tomllib.loads(path.read_text(encoding="utf-8")).get("sdks", [])
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError.of("neutron.configuration", f"{path} cannot be read: {error}", where=str(path)) from error
    if not isinstance(listed, list) or not all(isinstance(one, str) for one in listed):
        raise UsageError.of("neutron.configuration", f"'sdks' in {path} is no list of places", where=str(path),
                            help='write it like sdks = ["/opt/eiq-neutron-sdk-linux-3.1.2"]')
    return listed


def _sdk(place: Path, by: str) -> Sdk | None:
    """Return what is at ``place``; None where there is no SDK."""
    for program in (place, place / CONVERTER, place / "bin" / CONVERTER):
        if program.is_file() and os.access(program, os.X_OK):
            return _of_program(program.absolute(), by)
    for folder in (place, *sorted(place.glob("lib/python*/site-packages"))):
        if folder.is_dir() and any(_is_package(one) for name in _PACKAGES for one in folder.glob(name)):
            return _of_module(folder.absolute(), by)
    return None


def _is_package(path: Path) -> bool:
    return (path.is_dir() and path.suffix != ".dist-info") or path.suffix in (".py", ".so")


def _of_program(program: Path, by: str) -> Sdk:
    root = program.parent.parent if program.parent.name == "bin" else program.parent
    libraries = tuple(str(one) for one in (root / "lib", root / "lib64", *sorted(root.glob("lib/ortools*libs")))
                      if one.is_dir())
    runner = program.parent / RUNNER
    match = _VERSION.search(_asked(str(program), "--version", libraries, _stamp(str(program))))
    return Sdk(match[1] if match else "", str(program), "", str(runner) if os.access(runner, os.X_OK) else "",
               libraries, by)


def _of_module(folder: Path, by: str) -> Sdk:
    runner = shutil.which(RUNNER) or ""
    return Sdk(_module_version(str(folder)), "", str(folder), runner, (), by)


@lru_cache(maxsize=32)
def _module_version(folder: str) -> str:
    with Worker("the eIQ Neutron SDK's module") as worker:
        try:
            return str(worker.call(f"{_CHILD}:module_version", folder, seconds=ASKING_SECONDS))
        except VitrifyError:
            return ""      # it is told when it is used


@lru_cache(maxsize=32)
def _asked(program: str, option: str, libraries: tuple[str, ...], stamp: object) -> str:
    """What the program prints when it is asked; empty where it fails, which is told when it is used."""
    with Worker(f"{CONVERTER} {option}") as worker:
        try:
            status = worker.call(f"{_CHILD}:run_program", [program, option], "/", libraries, seconds=ASKING_SECONDS)
        except VitrifyError:
            return ""
        return worker.log if status == 0 else ""


def _stamp(program: str) -> tuple[int, int]:
    found = os.stat(program)
    return found.st_mtime_ns, found.st_size
