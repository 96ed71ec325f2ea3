"""Rewrites of a graph, one per file, in tables per purpose.

``optimize`` runs the tables in order, each until nothing changes, and returns the ledger of what was done.
"""

from __future__ import annotations

from typing import Literal

from vitrify.core.errors import ModelError
from vitrify.ir import Ledger, Model
from vitrify.ir.inheriting import inherit_origins
from vitrify.ir.naming import make_names_unique
from vitrify.passes.base import Pass, Runner
from vitrify.passes.integers.unroll import UnrollAll
from vitrify.passes.layout.turning import TurnLayout
from vitrify.passes.misfits import misfits
from vitrify.passes.quantized import has_steps, keep_steps
from vitrify.passes.tables import CLEANUP, FUSION, HEADS, INTEGER_FORMS, LAYOUT, LEFTOVERS, PATTERNS, SEQUENCES

ROUNDS = 6
"""How often patterns, layout and clean-up may feed each other; two do for every model seen."""
Layout = Literal["nhwc", "nchw"]

__all__ = ["CLEANUP", "FUSION", "INTEGER_FORMS", "LAYOUT", "PATTERNS", "Layout", "Pass", "Runner", "has_steps",
           "optimize", "to_integer_forms"]


def optimize(model: Model, *, input_layout: Layout = "nhwc", output_layout: Layout = "nhwc",
             most: int | None = None) -> Ledger:
    """Rewrite ``model`` in place to fewer nodes in the runtime's layout; returns what was done.

    With "nhwc" a graph input or output takes the layout of the operators beside it where that saves a TRANSPOSE, and
    ``model.interface`` remembers the source's; with "nchw" it keeps the source's layout.
    Of the passes that change something, the first ``most`` run.

    Raises:
        ModelError: nodes have inputs that their operators cannot take; names each.
    """
    try:
        return _optimize(model, TurnLayout(model, input_layout == "nhwc", output_layout == "nhwc"), most)
    except (ArithmeticError, AssertionError, LookupError, RuntimeError, TypeError, ValueError) as stumbled:
        found = misfits(model)
        if found:
            raise ModelError(found) from stumbled
        raise


def to_integer_forms(model: Model, ledger: Ledger | None = None, *, steps: bool = False,
                     most: int | None = None) -> Ledger:
    """Bring an optimized model into the form that full-integer quantization needs, in place; inputs and outputs stay.

    Sequence operators without an integer kernel, with ``steps`` all of them, are written out step by step: the steps
    have kernels of every kind, and ranges for each tensor. Means over channels become products, which an NPU computes
    faster. ``most`` counts the ledger's lines before it, too.
    """
    runner = Runner(model, ledger, most)
    unrolled = runner.run((UnrollAll,) if steps else SEQUENCES, rounds=1)
    if unrolled:
        runner.run(CLEANUP)
        runner.apply(TurnLayout(model, False, False))
    if runner.run(INTEGER_FORMS, rounds=1) or unrolled:
        runner.run(FUSION)
        for graph in model.graphs:
            make_names_unique(graph)
            inherit_origins(graph)
    return runner.ledger


def _optimize(model: Model, layout: TurnLayout, most: int | None) -> Ledger:
    runner = Runner(model, most=most)
    for _ in range(ROUNDS):
        runner.run((*CLEANUP, *PATTERNS))
        if runner.apply(layout.again()):
            continue
        runner.run(FUSION)      # brings biases to their weights, behind which attention can be told
        if not runner.run(HEADS):
            break
    runner.run(LEFTOVERS)
    runner.run(FUSION)
    if has_steps(model):
        model.extras["findings"] = [*model.extras.get("findings", ()), *keep_steps(runner, (*CLEANUP, *FUSION))]
    for graph in model.graphs:
        make_names_unique(graph)
        inherit_origins(graph)
    return runner.ledger
