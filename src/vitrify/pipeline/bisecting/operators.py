"""Which operators' quantization brings an error: they are left in float, the most costly first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from vitrify.core.errors import VitrifyError
from vitrify.core.progress import Reporter
from vitrify.ir import Model, Node
from vitrify.pipeline.bisecting.halving import shortest_start, without_needless
from vitrify.pipeline.bisecting.judging import Ruler, figure, told
from vitrify.pipeline.options import DataOptions
from vitrify.pipeline.quantizing.analysis import analyzed
from vitrify.pipeline.steps import calibrate_model, quantize_model
from vitrify.results import BisectRow, OperatorRow

if TYPE_CHECKING:
    from vitrify.quant import Recipe, Statistics

WORST = float("-inf")


@dataclass
class Toggles:
    """A float model that is quantized again and again, each time with other operators left in float."""

    model: Model
    path: Path
    folder: Path
    statistics: Statistics
    recipe: Recipe
    ruler: Ruler
    known: dict[frozenset[str], float] = field(default_factory=dict)

    def quantize(self, nodes: Sequence[str], name: str) -> Path:
        """Write the model with these nodes in float.

        Raises:
            VitrifyError: it cannot be quantized so.
        """
        from vitrify import tflite
        from vitrify.quant.recipe import Override

        rules = (Override(nodes=tuple(nodes), activations="float"),) if nodes else ()
        recipe = msgspec.structs.replace(self.recipe, overrides=(*self.recipe.overrides, *rules))
        path = self.folder / name
        tflite.write(quantize_model(self.model, self.statistics, recipe).model, path)
        return path

    def kept(self, nodes: Sequence[str]) -> float:
        """What the worst output keeps with these nodes in float; minus infinity where that cannot be made."""
        key = frozenset(nodes)
        if key not in self.known:
            try:
                self.known[key] = self.ruler.measure(self.path, self.quantize(nodes, "toggled.tflite"))
            except VitrifyError:
                self.known[key] = WORST
        return self.known[key]


def open_toggles(model: Model, path: Path, folder: Path, data: DataOptions, recipe: Recipe, ruler: Ruler,
                 reporter: Reporter) -> Toggles:
    """Calibrate a float model once, for all that follows.

    Raises:
        VitrifyError: the data does not fit, or LiteRT does not run the model.
    """
    plain = msgspec.structs.replace(recipe.without_goal, trials="none", outputs="keep", least_db=0.0)
    statistics, _ = calibrate_model(path, model, data, plain, None, reporter)
    return Toggles(model, path, folder, statistics, plain, ruler)


def guilty_operators(toggles: Toggles, whole: Path, whole_db: float, least_db: float, data: DataOptions,
                     reporter: Reporter) -> tuple[list[BisectRow], bool]:
    """Find the fewest operators that have to stay in float for the worst output to keep ``least_db``.

    What is switched is a tensor: the operator that makes it, and those that read it, compute in float. An operator
    alone in float would still have to give its result in 8 bits.

    Returns:
        A row for each, and whether they are enough; where all together are not, the most costly.
    """
    found, _ = analyzed(toggles.path, whole, data, reporter, ("float", "int8"))
    around = _around(toggles.model)
    order = [row for row in found.worst(len(found.operators)) if row.tensor in around]

    def nodes_of(rows: Sequence[OperatorRow]) -> list[str]:
        return list(dict.fromkeys(name for row in rows for name in around[row.tensor]))

    def is_enough(rows: Sequence[OperatorRow]) -> bool:
        return toggles.kept(nodes_of(rows)) >= least_db

    count = shortest_start(len(order), lambda most: is_enough(order[:most])) if order else None
    chosen = order[:1] if count is None else without_needless(order[:count], is_enough)
    rows, before = [], whole_db
    for number, row in enumerate(chosen, 1):
        after = toggles.kept(nodes_of(chosen[:number]))
        alone = toggles.kept(nodes_of([row]))
        origin = ", ".join(row.origin)
        rows.append(BisectRow(
            kind="operator", name=origin or row.node, operator=row.operator, source=row.tensor,
            all_db=figure(whole_db), without_db=figure(alone), before_db=figure(before), after_db=figure(after),
            words=f"{told(before)} with '{row.tensor}' of {row.operator} in 8 bits, {told(after)} with it in float"))
        before = after
    return rows, count is not None


def _around(model: Model) -> dict[str, tuple[str, ...]]:
    """For each tensor by name, the node that makes it and those that read it."""
    def names(node: Node) -> tuple[str, ...]:
        out = node.outputs[0]
        return tuple(dict.fromkeys([node.name, *(user.name for user, _ in out.uses)]))

    return {node.outputs[0].name: names(node) for node in model.main if node.outputs}
