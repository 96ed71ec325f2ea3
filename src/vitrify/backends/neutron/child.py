"""The child's side: starts the SDK's programs, or loads its module, which may die of a bad target. Nothing heavy."""

from __future__ import annotations

import importlib
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType

MODULES = ("eiq_neutron_sdk.neutron_converter", "neutron_converter")
_OLDER = "neutron_converter_SDK_"
_PR_SET_CHILD_SUBREAPER = 36


def run_program(command: Sequence[str], folder: str, libraries: Sequence[str] = ()) -> int | str:
    """Run ``command`` in ``folder`` and return its exit status, or minus the signal that ended it.

    A text is returned where it cannot be started. What it prints goes where this process prints.
    """
    environment = dict(os.environ)
    if libraries:
        known = environment.get("LD_LIBRARY_PATH")
        environment["LD_LIBRARY_PATH"] = os.pathsep.join([*libraries, *([known] if known else [])])
    _take_orphans()
    try:
        return subprocess.run(list(command), cwd=folder, env=environment, stdin=subprocess.DEVNULL,
                              check=False).returncode
    except OSError as error:
        return error.strerror or str(error)
    finally:
        _end_what_is_left()


def _take_orphans() -> None:
    """Become the parent of what the program leaves running behind it, in whatever session. Source: prctl(2)."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _end_what_is_left() -> None:
    """Kill the children of this process until there are none: one that dies leaves its own to us."""
    while sys.platform == "linux" and (children := _children()):
        for child in children:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)


def _children() -> list[int]:
    found = []
    for folder in Path("/proc").iterdir():
        if not folder.name.isdecimal():
            continue
        try:
            parent = (folder / "stat").read_text().rpartition(")")[2].split()[1]
        except OSError:
            continue      # it ended meanwhile
        if int(parent) == os.getpid():
            found.append(int(folder.name))
    return found


def module_version(place: str) -> str:
    """Return the version of the module whose package lies in the folder ``place``."""
    from importlib.metadata import distributions

    for found in distributions(path=[place]):
        name = (found.metadata["Name"] or "").replace("_", "-").lower()
        if name == "eiq-neutron-sdk" or name.startswith("neutron-converter"):
            return found.version
    version = getattr(_module(place), "__version__", "")
    return str(version)


def convert(place: str, source: str, output: str, target: str, options: Mapping[str, str]) -> None:
    """Convert the file ``source`` with the module in the folder ``place``.

    Source: ExecuTorch, backends/nxp (neutron_converter_manager.py); releases before 3.0 take the target's name.
    """
    module = _module(place)
    data = list(Path(source).read_bytes())
    if hasattr(module, "CompilationContext"):
        context = module.CompilationContext()
        context.targetOpts = module.getNeutronTarget(target)
        for name, text in options.items():
            setattr(context.compilationOpts, name, _value(text))
        made = module.convertModel(data, context)
    else:
        made = module.convertModel(data, target)
    Path(output).write_bytes(bytes(made))
    sys.stdout.flush()


def _value(text: str) -> bool | int | str:
    known = {"": True, "true": True, "false": False}
    return known[text.lower()] if text.lower() in known else int(text) if text.isdecimal() else text


def _module(place: str) -> ModuleType:
    if place not in sys.path:
        sys.path.insert(0, place)
    older = sorted(path.name for path in Path(place).glob(f"{_OLDER}*") if path.suffix != ".dist-info")
    for name in (*MODULES, *(f"{one}.neutron_converter" for one in reversed(older))):
        try:
            return importlib.import_module(name)
        except ModuleNotFoundError as error:
            if not name.startswith(error.name or "-"):
                raise
    raise ModuleNotFoundError(f"no neutron_converter in {place}")
