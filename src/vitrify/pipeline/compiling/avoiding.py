"""Compiling round the compiler's faults: what it is known to get wrong is rewritten, exactly, and compiled again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import structs

from vitrify.core.findings import Finding, Severity
from vitrify.core.words import counted

if TYPE_CHECKING:
    from vitrify.backends.base import Backend, Compiled, CompilerOptions
    from vitrify.pipeline.checking.fixes.applying import Applied
    from vitrify.targets import Target

_NO_WAY_ROUND = "ethos-u.wrong-form"
_IGNORE = "ignore-ops"
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
    kinds = [] if how.as_it_is else _without_rewrite(file, compiled)
    if kinds:
        left = [name for name in (how.options.get(_IGNORE, ""), *kinds) if name]
        before, options = compiled, {**how.options, _IGNORE: ",".join(left)}
        compiled = driver.compile(file, chip, output, structs.replace(how, options=options))
        told.append(_left_to_cpu(kinds, before, compiled))
    return compiled, told


def _without_rewrite(file: Path, compiled: Compiled) -> list[str]:
    """The kinds of operators that the compiler is known to get wrong in a form that nothing goes round."""
    from vitrify import tflite

    places = {finding.where for finding in compiled.findings if finding.code == _NO_WAY_ROUND}
    if not places:
        return []
    return list(dict.fromkeys(node.op.kind for node in tflite.read(file).main if f"node '{node.name}'" in places))


def _left_to_cpu(kinds: list[str], before: Compiled, after: Compiled) -> Finding:
    names = ", ".join(kinds)
    wrong = [finding for finding in before.findings if finding.code == _NO_WAY_ROUND]
    return Finding(code="compile.avoided", severity=Severity.INFO, where=wrong[0].where,
                   headline=f"all {names} left to the CPU, round a fault of {after.maker} ({_NO_WAY_ROUND})",
                   why=f"{wrong[0].headline}. The compiler leaves whole kinds of operators out, not single ones: "
                       f"before {before.placement}, now {after.placement}; the CPU is slower at them")


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
