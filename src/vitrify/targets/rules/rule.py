"""A rule of a family of chips: what it allows, why, how we know, and the function that finds what breaks it.

A rule is a generator function that yields a ``Breach`` for each thing in a node that it does not allow, decorated with
``@rule``; nothing else lists the rules. A family is a package beside this one; importing it imports its rules.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple

import msgspec

from vitrify.core.errors import InternalError
from vitrify.ir import Node
from vitrify.targets.placement import Confidence

Value = str | int | float | list[int]


class Breach(NamedTuple):
    """What in a node a rule does not allow: a sentence with value and limit, both by name, the nearest legal form.

    ``confidence``, ``source`` and ``versions`` stand in the place of the rule's own where what is known differs from
    operator to operator.
    """

    headline: str
    values: Mapping[str, Value] = {}
    nearest: str = ""
    confidence: Confidence | None = None
    source: str = ""
    versions: str = ""


class Variant(msgspec.Struct, frozen=True, kw_only=True):
    """What rules ask of a chip: the name of its core, and its limits by name."""

    core: str
    limits: dict[str, int] = {}


Check = Callable[[Node, Variant], Iterable[Breach]]


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """One rule.

    ``says`` is what is allowed, in a sentence; ``fix`` names the rewrite of the catalogue that helps, where there is
    one; ``help`` is empty rather than guessed; ``versions`` are those of the compiler that it holds for. Of ``cores``
    and ``operators``, empty means all.
    """

    code: str
    says: str
    why: str
    source: str
    confidence: Confidence
    versions: str
    check: Check
    family: str
    help: str = ""
    fix: str = ""
    cores: frozenset[str] = frozenset()
    operators: frozenset[str] = frozenset()

    def breaches(self, node: Node, variant: Variant) -> Iterator[Breach]:
        """Yield what ``node`` breaks of it."""
        yield from self.check(node, variant)


_RULES: dict[str, dict[str, list[Rule]]] = {}


def rule(code: str, *, says: str, why: str, source: str, confidence: Confidence = "documented",
         versions: str = ">=5.2,<6", operators: Iterable[str] = (), cores: Iterable[str] = (), help: str = "",
         fix: str = "") -> Callable[[Check], Check]:
    """Register a function as a rule of the family whose package its module is in.

    Two rules of one family may have one code, for different cores or operators; their sentences tell them apart.
    """

    def register(check: Check) -> Check:
        family = check.__module__.removeprefix(f"{_PACKAGE}.").split(".")[0]
        made = Rule(code=code, says=says, why=why, source=source, confidence=confidence, versions=versions, check=check,
                    family=family, help=help, fix=fix, cores=frozenset(cores), operators=frozenset(operators))
        _RULES.setdefault(family, {}).setdefault(code, []).append(made)
        return check

    return register


_PACKAGE = __name__.rsplit(".", 2)[0]


@cache
def rules_of(family: str) -> tuple[Rule, ...]:
    """Return the rules of a family, sorted by code.

    Raises:
        InternalError: there is no such family.
    """
    try:
        package = importlib.import_module(f"{_PACKAGE}.{family}")
    except ModuleNotFoundError:
        raise InternalError.of("target.family", f"there is no family of chips '{family}'") from None
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        importlib.import_module(module.name)
    return tuple(rule for _, rules in sorted(_RULES.get(family, {}).items()) for rule in rules)


def applying(rules: Iterable[Rule], core: str) -> dict[str, tuple[Rule, ...]]:
    """Return the rules for a core by operator; those for every operator are under the empty name."""
    found: dict[str, list[Any]] = {}
    for one in rules:
        if not one.cores or core in one.cores:
            for name in one.operators or ("",):
                found.setdefault(name, []).append(one)
    return {name: tuple(some) for name, some in found.items()}
