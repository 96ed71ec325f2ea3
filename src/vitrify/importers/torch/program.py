"""An exported program as a source: its inputs, and what becomes of the dimensions that it leaves open."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from vitrify.core.errors import UnsupportedError, UsageError
from vitrify.core.findings import Finding, Severity
from vitrify.importers.sizes import Sizes, conflicts, show_dims, unknown_dimension
from vitrify.importers.torch.examples import random_tensor, shapes_given
from vitrify.importers.torch.source import Dim, TorchSource

_TRAINING = {
    "aten.dropout.default": 2,
    "aten.batch_norm.default": 5,
    "aten.instance_norm.default": 5,
    "aten.feature_dropout.default": 2,
    "aten.alpha_dropout.default": 2,
}
"""Operators that compute otherwise in training, and which argument says so. Source: PyTorch, native_functions.yaml."""


def from_program(label: str, program: Any, sizes: Sizes, given: Sequence[Any] | None = None) -> TorchSource:
    """Return what is to be exported; ``given`` are example inputs for it.

    Raises:
        UsageError: shapes or dimensions do not fit the program.
        UnsupportedError: it was exported in training mode, or an input is no tensor.
    """
    _refuse_training(label, program)
    names, known = _inputs(label, program)
    extents = _Extents(label, program, known, sizes)
    inputs = {name: random_tensor(extents.shape(name), known[name].dtype, name) for name in names}
    if given is not None:
        inputs = dict(zip(names, given, strict=True))
    spec = program.call_spec.in_spec

    def arrange(flat: list[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        from torch.utils import _pytree

        args, kwargs = _pytree.tree_unflatten(flat, spec)
        return tuple(args), dict(kwargs)

    return TorchSource(
        label,
        inputs,
        program=program,
        arrange=arrange,
        findings=extents.findings(),
        shapes={name: extents.declared(name) for name in names} if given is None else {},
    )


def _refuse_training(label: str, program: Any) -> None:
    for node in program.graph.nodes:
        place = _TRAINING.get(str(node.target)) if node.op == "call_function" else None
        if place is not None and len(node.args) > place and node.args[place] is True:
            raise UnsupportedError.of(
                "torch.training",
                f"{label} was exported in training mode: '{node.name}' is told to train",
                where=label,
                why="its answers depend on chance or on the batch",
                help="torch.export.export(module.eval(), ...)",
            )


def _inputs(label: str, program: Any) -> tuple[list[str], dict[str, Any]]:
    """The names of the inputs, and for each a tensor without data.

    Raises:
        UnsupportedError: an input is no tensor; lists them all.
    """
    from torch.export.graph_signature import InputKind

    names = [str(s.arg.name) for s in program.graph_signature.input_specs if s.kind == InputKind.USER_INPUT]
    placed = {node.name: node.meta.get("val") for node in program.graph.nodes if node.op == "placeholder"}
    odd = [name for name in names if not hasattr(placed.get(name), "shape")]
    if odd:
        raise UnsupportedError(
            [
                Finding(
                    code="torch.input",
                    where=f"input '{name}'",
                    headline=f"input '{name}' of {label} is no tensor",
                    why="a model file takes tensors",
                    help="bind it beforehand, in a module that hands it on",
                )
                for name in odd
            ]
        )
    return names, {name: placed[name] for name in names}


class _Extents:
    """The extents of a program's inputs: those that stand there, those of the caller, and for the rest a choice."""

    def __init__(self, label: str, program: Any, known: dict[str, Any], sizes: Sizes) -> None:
        self.label = label
        self.known = known
        self.dims = {name: size for name, size in sizes.items() if isinstance(size, int)}
        self.values: dict[str, int] = dict(self.dims)
        self.chosen: dict[str, str] = {}
        self._lowest = {str(symbol): found.lower for symbol, found in program.range_constraints.items()}
        problems = [*self._unknown(), *conflicts({name: self._stands(name) for name in known}, sizes)]
        if problems:
            raise UsageError(problems)
        for name, shape in shapes_given(label, list(known), sizes).items():
            self._take(name, shape)

    def _stands(self, name: str) -> list[Dim]:
        """The dimensions of an input as the program declares them."""
        return [extent if isinstance(extent, int) else str(extent) for extent in self.known[name].shape]

    def _unknown(self) -> list[Finding]:
        """Findings for the dimensions that the caller names and the program has not."""
        opened: dict[str, str] = {}
        for name in self.known:
            for place, extent in enumerate(self._stands(name)):
                if isinstance(extent, str):
                    opened.setdefault(extent, f"'{extent}' (dimension {place} of '{name}')")
        known = f"the open ones are {', '.join(opened.values())}" if opened else "none is open in this program"
        shapes = (f"--shape {name}={','.join('N' if isinstance(e, str) else str(e) for e in self._stands(name))}"
                  for name in self.known)
        why = "a program's file keeps no names of torch.export.Dim, only PyTorch's own" if opened else ""
        help = f"take PyTorch's name, or say whole shapes: {' '.join(shapes)}" if opened else "leave it out"
        return [unknown_dimension(name, known, self.label, why, help) for name in self.dims if name not in opened]

    def _take(self, name: str, shape: tuple[int, ...]) -> None:
        stands = list(self.known[name].shape)
        fits = len(stands) == len(shape)
        for extent, wanted in zip(stands, shape, strict=False):
            fits = fits and (
                extent == wanted if isinstance(extent, int) else self.values.setdefault(str(extent), wanted) == wanted
            )
        if not fits:
            raise UsageError.of(
                "shape.fixed",
                f"the shape {show_dims(shape)} does not fit input '{name}' of {self.label}: it is "
                f"{show_dims(self._stands(name))}",
                where=f"input '{name}'",
                help="export the program again with that shape, or with dynamic_shapes",
            )

    def shape(self, name: str) -> tuple[int, ...]:
        """The shape that an input gets."""
        return tuple(
            extent if isinstance(extent, int) else self._extent(name, place, extent)
            for place, extent in enumerate(self.known[name].shape)
        )

    def declared(self, name: str) -> tuple[Dim, ...]:
        """The same, with the names of the dimensions that the caller named."""
        return tuple(
            str(stands) if str(stands) in self.dims else extent
            for stands, extent in zip(self.known[name].shape, self.shape(name), strict=True)
        )

    def _extent(self, name: str, place: int, extent: Any) -> int:
        word = str(extent)
        if word not in self.values:
            hint = extent.node.hint
            expression = extent.node.expr
            known = {
                symbol: self.values[str(symbol)] for symbol in expression.free_symbols if str(symbol) in self.values
            }
            if known:
                hint = expression.subs(known)
            elif place == 0 and hint is not None and self._lowest.get(word, 2) <= 1:
                hint = 1
            if hint is None or not str(hint).isdigit():
                raise UnsupportedError.of(
                    "torch.open-shape",
                    f"{self.label} leaves '{word}' of '{name}' open",
                    where=f"input '{name}'",
                    help=f"say how long it is: --dim {word}=N",
                )
            self.values[word] = int(hint)
            self.chosen[word] = f"dimension {place} of '{name}'"
        return self.values[word]

    def findings(self) -> list[Finding]:
        """What was chosen where nothing was said."""
        if not self.chosen:
            return []
        said = ", ".join(f"{place} ({word}) is {self.values[word]}" for word, place in self.chosen.items())
        return [
            Finding(
                code="torch.open-dim",
                severity=Severity.INFO,
                where=self.label,
                headline=f"{self.label} leaves dimensions open: {said}",
                why="a batch becomes 1, other extents are those of the export's own example",
                help=" ".join(f"--dim {word}=N" for word in self.chosen) + " says otherwise",
            )
        ]
