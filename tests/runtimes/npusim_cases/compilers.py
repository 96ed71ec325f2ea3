"""The compilers and settings under which each case is tried, and the processes that compile."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from vitrify.backends.vela.settings import configuration, system_name
from vitrify.targets import load

ROOT = Path(__file__).parents[3]
OLD = ROOT / ".cache" / "peers" / "vela45" / "bin" / "python"
"""Vela 4.5.0 in its own environment, made by ``make .cache/peers/vela45/complete``."""
_CHILD = Path(__file__).with_name("vela_child.py")
TARGETS = ("ethos-u65-256", "ethos-u65-512", "ethos-u55-32", "ethos-u55-64", "ethos-u55-128", "ethos-u55-256")
ARENAS = (393_216, 65_536, 8_192)


class Compiler(NamedTuple):
    """One release of Vela and which of its two cores."""

    version: str
    core: str

    @property
    def name(self) -> str:
        return f"{self.version} {self.core}"

    @property
    def options(self) -> list[str]:
        """What selects the core."""
        newest = self.version.startswith("5")
        if (self.core == "Regor") == newest:
            return []
        return ["--debug-force-legacy-core"] if newest else ["--debug-force-regor"]

    @property
    def installed(self) -> bool:
        return self.version.startswith("5") or OLD.exists()


COMPILERS = tuple(Compiler(version, core) for version in ("5.2", "4.5") for core in ("Regor", "legacy"))


class Setting(NamedTuple):
    """A compiler with what it is told."""

    compiler: Compiler
    target: str = "ethos-u65-256"
    mode: str = "Performance"
    arena: int = ARENAS[0]

    @property
    def name(self) -> str:
        return f"{self.compiler.name}, {self.target}, {self.mode}, {self.arena}"


FIRST = Setting(COMPILERS[0])


SMALL = Setting(COMPILERS[1], arena=ARENAS[2])
"""In which the legacy core cuts a cascade at an odd row."""


def settings(place: int) -> Iterator[Setting]:
    """The settings for the case at a place: each compiler in both modes, targets and arenas in turn."""
    for number, compiler in enumerate(COMPILERS):
        for step, mode in enumerate(("Performance", "Size")):
            turn = place + 2 * number + 3 * step
            yield Setting(compiler, TARGETS[turn % 2 if step == 0 else turn % len(TARGETS)], mode,
                          ARENAS[(place + number) % len(ARENAS)])


class Compilers:
    """A process for each release, started when it is needed and again when it died."""

    def __init__(self) -> None:
        self._running: dict[str, subprocess.Popen[str]] = {}

    def compile(self, source: Path, folder: Path, setting: Setting) -> tuple[Path | None, str]:
        """Return the compiled file, or none and what was said."""
        folder.mkdir(parents=True, exist_ok=True)
        target = load(setting.target)
        config = folder / "target.ini"
        config.write_text(configuration(target), encoding="utf-8")
        name = system_name(target)
        arguments = [str(source), "--accelerator-config", target.accelerator, "--config", str(config),
                     "--system-config", name, "--memory-mode", name, "--optimise", setting.mode,
                     "--arena-cache-size", str(setting.arena), "--output-dir", str(folder), *setting.compiler.options]
        said = self._ask(setting.compiler, arguments)
        made = folder / f"{source.stem}_vela.tflite"
        return (None, said) if said else (made, "") if made.exists() else (None, "it left no file")

    def _ask(self, compiler: Compiler, arguments: list[str]) -> str:
        child = self._child(compiler)
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdin.write(json.dumps(arguments) + "\n")
        child.stdin.flush()
        answer = child.stdout.readline()
        if answer:
            return answer.strip()
        with child:
            pass
        del self._running[compiler.version]
        return f"it died with {child.returncode}"

    def _child(self, compiler: Compiler) -> subprocess.Popen[str]:
        if compiler.version not in self._running:
            python = sys.executable if compiler.version.startswith("5") else str(OLD)
            self._running[compiler.version] = subprocess.Popen([python, str(_CHILD)], text=True, stdin=subprocess.PIPE,
                                                               stdout=subprocess.PIPE)
        return self._running[compiler.version]

    def close(self) -> None:
        """End the processes."""
        for child in self._running.values():
            with child:      # closes its pipes, at which it ends
                pass
        self._running.clear()
