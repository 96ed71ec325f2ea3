"""The one registration of fixes: what a rewrite is called, which rules it mends, and how far it keeps the values."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import TypeVar

import msgspec

from vitrify.core.errors import InternalError, UsageError
from vitrify.ir import Exactness, Model, Operator, Tensor
from vitrify.passes.targets.place import Place

Rewrite = Callable[[Place], "Tensor | Sequence[Tensor] | None"]
"""Builds nodes before ``place.node`` and returns what stands for its outputs; None where it cannot help."""
Sweep = Callable[[Model], int]
"""Rewrites a whole model; returns the number of places changed."""
Function = TypeVar("Function", bound=Callable[..., object])


class Fix(msgspec.Struct, frozen=True, kw_only=True):
    """One rewrite.

    ``says`` is what it does, in a sentence; ``wins`` what that wins. ``mends`` lists the rules by code; with
    ``cheaper`` it also runs where no rule is broken, on chips of ``families`` (empty: of all). ``largest_lsb`` bounds
    the error of one place, in steps of its output; None where only a measurement tells. Either ``rewrite`` or ``sweep``
    is there. What ``repairs`` is for nodes that LiteRT refuses, or computes wrongly: it is measured against the
    operator's meaning in float. What is ``asked`` for changes what the file takes and gives, so it runs by name only;
    what ``cuts`` drops outputs, and is proved by those that it makes instead. What ``avoids`` a fault of the compiler,
    by its code, always runs, whatever it costs.
    """

    name: str
    says: str
    wins: str
    mends: tuple[str, ...]
    operators: tuple[str, ...]
    exactness: Exactness
    largest_lsb: int | None
    cheaper: bool
    families: tuple[str, ...] = ()
    repairs: bool = False
    asked: bool = False
    cuts: bool = False
    avoids: str = ""
    rewrite: Rewrite | None = None
    sweep: Sweep | None = None

    @property
    def by_default(self) -> bool:
        """True when it runs without being asked for by name."""
        return not self.asked and (self.repairs or self.exactness is Exactness.EXACT)

    def is_cheaper_on(self, family: str) -> bool:
        """True when it runs on chips of that family where no rule is broken."""
        return (self.cheaper or bool(self.avoids)) and (not self.families or family in self.families)

    def starts_at(self, kind: str) -> bool:
        """True when it rewrites nodes of that operator."""
        return kind in self.operators


MEASURED = "ethos_u"
"""The family whose compiler says what is cheaper; where nothing says so, nothing is rewritten for its cost alone."""
_FIXES: dict[str, Fix] = {}
_ERRORS = {Exactness.EXACT: 0, Exactness.ROUNDING: 1, Exactness.APPROXIMATE: None}


def fix(name: str, *kinds: type[Operator], says: str, wins: str = "", mends: Iterable[str] = (),
        exactness: Exactness = Exactness.EXACT, cheaper: bool = False, families: Iterable[str] = (MEASURED,),
        repairs: bool = False, asked: bool = False, cuts: bool = False, avoids: str = "",
        whole: bool = False) -> Callable[[Function], Function]:
    """Register a function as a fix: a ``Rewrite`` of nodes of ``kinds``, or with ``whole`` a ``Sweep``.

    Raises:
        TypeError: the name is taken.
    """

    def register(function: Function) -> Function:
        if name in _FIXES:
            raise TypeError(f"there are two fixes '{name}'; the second is in {function.__module__}")
        found: dict[str, object] = {"sweep" if whole else "rewrite": function}
        _FIXES[name] = Fix(name=name, says=says, wins=wins, mends=tuple(mends), exactness=exactness, cheaper=cheaper,
                           families=tuple(families),
                           operators=tuple(kind.name for kind in kinds), largest_lsb=_ERRORS[exactness],
                           repairs=repairs, asked=asked, cuts=cuts, avoids=avoids,
                           **found)  # type: ignore[arg-type]
        return function

    return register


@cache
def catalogue() -> tuple[Fix, ...]:
    """Return all fixes, sorted by name."""
    package = importlib.import_module(__name__.rsplit(".", 1)[0])
    for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
        importlib.import_module(module.name)
    if not _FIXES:
        raise InternalError.of("fix.none", "there are no fixes")
    return tuple(_FIXES[name] for name in sorted(_FIXES))


def find(names: Iterable[str]) -> tuple[Fix, ...]:
    """Return the fixes of those names.

    Raises:
        UsageError: there is no such fix; lists those there are.
    """
    known = {one.name: one for one in catalogue()}
    unknown = [name for name in dict.fromkeys(names) if name not in known]
    if unknown:
        raise UsageError.of("fix.unknown", f"there is no fix '{unknown[0]}'", help=f"use one of: {', '.join(known)}")
    return tuple(known[name] for name in dict.fromkeys(names))
