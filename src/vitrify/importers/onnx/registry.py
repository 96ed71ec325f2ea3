"""The one registration of lowerings: a function per ONNX operator, found by the name it declares."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from importlib import import_module

from vitrify.importers.onnx.context import Context
from vitrify.importers.onnx.source import SourceNode

Lowering = Callable[[Context, SourceNode], None]


class Lowerings(Mapping[str, Lowering]):
    """Every lowering by ONNX operator name; filled by ``@lowering`` alone.

    ``files`` says in which module a kind is declared, so that a model loads the few families that it needs: all of them
    together cost 0.04 s of CPU, a tenth of a small conversion.
    """

    def __init__(self) -> None:
        self.loaded: dict[str, Lowering] = {}
        self.files: dict[str, str] = {}

    def __contains__(self, kind: object) -> bool:
        return kind in self.loaded or kind in self.files

    def __getitem__(self, kind: str) -> Lowering:
        if kind not in self.loaded:
            import_module(self.files[kind])
        return self.loaded[kind]

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys((*self.files, *self.loaded)))

    def __len__(self) -> int:
        return len(list(iter(self)))


LOWERINGS = Lowerings()


def lowering(*kinds: str) -> Callable[[Lowering], Lowering]:
    """Register a function that lowers the ONNX operators ``kinds``: it reads a node and binds its outputs.

    Raises:
        TypeError: a kind is registered already.
    """

    def register(function: Lowering) -> Lowering:
        for kind in kinds:
            other = LOWERINGS.loaded.setdefault(kind, function)
            if other is not function:
                raise TypeError(f"{kind} is lowered twice: in {other.__module__} and in {function.__module__}")
        return function

    return register


def axis_of(node: SourceNode, axis: int, rank: int) -> int:
    """A possibly negative axis as a position.

    Raises:
        ModelError: it is outside the rank.
    """
    if not -rank <= axis < max(rank, 1):
        raise node.problem(f"axis {axis} is outside a tensor of {rank} dimensions")
    return axis % rank if rank else 0


def axes_of(ctx: Context, node: SourceNode, rank: int, index: int = 1) -> list[int] | None:
    """The axes of a node: an attribute in old operator sets, input ``index`` in new ones; None when not given."""
    given = node.ints("axes")
    if given is None and ctx.present(node, index):
        given = [int(a) for a in ctx.known(node, index, "the list of axes").ravel()]
    return None if given is None else [axis_of(node, a, rank) for a in given]
