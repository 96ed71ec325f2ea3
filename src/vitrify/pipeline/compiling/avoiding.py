"""Compiling round the compiler's faults: what it is known to get wrong is rewritten, exactly, and compiled again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from vitrify.core.findings import Finding, Severity
from vitrify.core.words import counted

if TYPE_CHECKING:
    from vitrify.backends.base import Backend, Compiled, CompilerOptions
    from vitrify.pipeline.checking.fixes.applying import Applied
    from vitrify.targets import Target

_ROUNDS = 3
"""A rewrite may change what the compiler folds elsewhere."""


def compile_avoiding(driver: Backend, source: Path, chip: Target, output: Path, how: CompilerOptions,
                     folder: Path) -> tuple[Compiled, list[Finding]]:
    """Compile ``source`` to ``output``; where the compiler does what it is known to get wrong, a rewritten form of it.

    Returns the answer, and what was rewritten. Rewritten files go to ``folder``.

    Raises:
        VitrifyError: the compiler refuses the file, or dies of it.
    """
    compiled, told = driver.compile(source, chip, output, how), list[Finding]()
    file = source
    for number in range(0 if how.as_it_is else _ROUNDS):
        codes = {finding.code for finding in compiled.findings}
        rewritten = _rewritten(file, chip, codes, folder / f"{number}-{source.name}")
        if rewritten is None:
            break
        file, places = rewritten
        told += [_told(one, places, compiled.maker) for one in dict.fromkeys(place.fix.name for place in places)]
        compiled = driver.compile(file, chip, output, how)
    return compiled, told


def _rewritten(file: Path, chip: Target, codes: set[str], output: Path) -> tuple[Path, list[Applied]] | None:
    """Write the model without what has one of these faults; None where nothing avoids any."""
    from vitrify import tflite
    from vitrify.ir.naming import make_names_unique
    from vitrify.passes.targets import catalogue
    from vitrify.pipeline.checking.fixes.applying import apply_fixes
    from vitrify.tflite.reading import FILE_TENSORS

    fixes = [one for one in catalogue() if one.avoids in codes]
    if not fixes:
        return None
    model = tflite.read(file)
    make_names_unique(model.main)
    places = apply_fixes(model, chip, fixes)
    if not places:
        return None
    model.extras.pop(FILE_TENSORS, None)
    tflite.write(model, output)
    return output, places


def _told(name: str, places: list[Applied], maker: str) -> Finding:
    mine = [place for place in places if place.fix.name == name]
    names = ", ".join(f"'{place.origin or place.node}'" for place in mine[:5])
    return Finding(code="compile.avoided", severity=Severity.INFO, where=f"node{'s' * (len(mine) > 1)} {names}"
                   f"{f' and {len(mine) - 5} more' if len(mine) > 5 else ''}",
                   headline=f"{counted(len(mine), 'place')} rewritten, exactly, round a fault of {maker} "
                            f"({mine[0].fix.avoids}): {mine[0].fix.name} {mine[0].fix.says}", why=mine[0].fix.wins)
