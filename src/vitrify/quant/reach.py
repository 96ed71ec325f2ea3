"""What int8 cannot hold although every operator has a kernel: divisors near 0, and powers over many decibels."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Set

from vitrify.core.findings import Finding, Severity
from vitrify.ir import Graph, Node, Tensor
from vitrify.ops import Div, Log, Reshape, Rsqrt, Slice, Split, SplitV, Squeeze, StridedSlice, Transpose
from vitrify.quant.calibration.observe import keys
from vitrify.quant.calibration.statistics import Range, Statistics
from vitrify.quant.forms.norms import norms
from vitrify.quant.forms.wide import wide_nodes
from vitrify.quant.planning import natural_ranges
from vitrify.quant.recipe import Recipe, override_line
from vitrify.quant.rules import is_real
from vitrify.quant.scales import LEVELS, levels_left

CUTS = (Slice, StridedSlice, Split, SplitV, Reshape, Squeeze, Transpose)
"""Operators that cut or move values and change none."""

DIVISOR_STEPS = 8
"""A divisor of this many steps is off by up to 6 %."""

AMPLITUDE_DB = 20 * math.log10(LEVELS - 1)
"""From the smallest to the largest value that int8 tells from 0: 48 dB."""


def reach_findings(graph: Graph, statistics: Statistics, recipe: Recipe,
                   kept: Set[Node] = frozenset()) -> list[Finding]:
    """Tell which inputs and which divisors ask too much of int8; ``kept`` stay in float."""
    found = input_findings(graph, statistics, keys(graph), recipe.split_levels)
    if graph.nodes_of(Div, Rsqrt):
        fine = {norm.root for norm in norms(graph)} if recipe.norms == "int16" else set[Node]()
        wide = wide_nodes(graph, recipe, statistics)
        fine |= {node for node in graph.nodes_of(Rsqrt) if node in wide and node.input(0).producer in wide}
        found += divisor_findings(graph, natural_ranges(graph, statistics, recipe), kept | fine)
    return found


def divisor_findings(graph: Graph, ranges: Mapping[Tensor, Range], kept: Set[Node] = frozenset()) -> list[Finding]:
    """Tell where dividing by what is computed at run time is rough in int8, or ends the process.

    ERROR where a divisor of DIV goes through 0, which its kernel does not survive; WARNING where a reciprocal root is
    taken of values of few steps.
    """
    return [f for node in graph.nodes_of(Div, Rsqrt) if node not in kept for f in divisor_of(node, ranges)]


def divisor_of(node: Node, ranges: Mapping[Tensor, Range]) -> Iterator[Finding]:
    """Tell whether what one node divides by is too near 0."""
    divisor = node.input(1 if isinstance(node.op, Div) else 0)
    if not is_real(divisor) or divisor not in ranges:
        return
    found = ranges[divisor]
    step = found.with_zero().width / (LEVELS - 1)
    nearest = 0.0 if found.low <= 0 <= found.high else min(abs(found.low), abs(found.high))
    if nearest >= DIVISOR_STEPS * step:
        return
    where = f"node '{node.name}', source {node.origin}"
    spans = f"'{divisor.name}' goes from {found.low:.3g} to {found.high:.3g}, a step of int8 is {step:.3g}"
    if isinstance(node.op, Div):
        if nearest == 0.0 and not node.input(0).is_constant:
            yield Finding(code="quant.division", where=where, headline=f"the divisor {spans}",
                          why="the integer kernels of DIV end the run when a divisor is 0",
                          help="divide by what is never below 0, as the result of ABS, EXP or RELU, or keep the "
                               "division in float, in the recipe: " + override_line(nodes=[node.name],
                                                                                  activations="float"))
        return
    if isinstance(node.op, Rsqrt):
        yield _rough_root(node, divisor, found, nearest, step)


def _rough_root(node: Node, divisor: Tensor, found: Range, nearest: float, step: float) -> Finding:
    """Tell of a root of values so small that a step more or less changes the answer."""
    steps = nearest / step if step else 0.0
    off = f"up to {1 - (steps / (steps + 0.5)) ** 0.5:.0%} off" if steps >= 1 else "any size"
    maker = divisor.producer
    names = [*([maker.name] if maker is not None else []), node.name]
    return Finding(
        code="quant.reciprocal", severity=Severity.WARNING, where=f"node '{node.name}', source {node.origin}",
        headline=f"1/sqrt('{divisor.name}') is rough in int8: it goes down to {nearest:.3g}, {steps:.1f} of the "
                 f"{LEVELS - 1} steps up to {max(abs(found.low), abs(found.high)):.3g}; {DIVISOR_STEPS} are asked",
        why=f"rounded to whole steps of {step:.3g}, the smallest values give answers that are {off}",
        help="compute it in 16 bits, in the recipe: " + override_line(nodes=names, activations="int16") + "; or leave "
             "silent and empty samples out of the data, if real use has none")


def input_findings(graph: Graph, statistics: Statistics, names: Mapping[Tensor, str], levels: int) -> list[Finding]:
    """Tell which inputs hold parts of very different range, of which one would be left with fewer than ``levels``."""
    found = []
    for source in (t for t in graph.inputs if is_real(t) and names[t] in statistics):
        whole = statistics[names[source]].range
        for part in _parts(source):
            if part is source or names[part] not in statistics:
                continue
            own = statistics[names[part]].range
            if 0 < (left := levels_left(own.with_zero(), whole)) < levels:
                found.append(Finding(
                    code="range.input", severity=Severity.WARNING, where=f"input '{source.name}'",
                    headline=f"'{part.name}' [{own.low:.3g}, {own.high:.3g}] is cut out of input '{source.name}' "
                             f"[{whole.low:.3g}, {whole.high:.3g}], which leaves it {left:.0f} of {LEVELS} levels",
                    why="an int8 tensor has one scale", help="give the parts as inputs of their own"))
                break
    return found


def _parts(source: Tensor) -> Iterator[Tensor]:
    """The input, and what is only cut out of it and moved."""
    waiting = [source]
    while waiting:
        tensor = waiting.pop()
        yield tensor
        waiting += [t for user in tensor.users if isinstance(user.op, CUTS) for t in user.outputs]


def power_findings(logs: list[Node], ranges: Mapping[Tensor, Range]) -> list[Finding]:
    """Tell which logarithms span more than int8 amplitudes do; ``ranges`` are those of the float model."""
    found = []
    for log in logs:
        decibels = 10 * math.log10(math.e) * (ranges[log.output].width if log.output in ranges else 0.0)
        if isinstance(log.op, Log) and decibels > AMPLITUDE_DB:
            found.append(Finding(
                code="quant.decibels", severity=Severity.WARNING, where=f"node '{log.name}', source {log.origin}",
                headline=f"the logarithm spans {decibels:.0f} dB, int8 amplitudes span {AMPLITUDE_DB:.0f} dB",
                why="what is quieter than that below the loudest becomes silence; loud parts keep their answer",
                help="compute the spectrum on the CPU and give the network its logarithm"))
    return found
