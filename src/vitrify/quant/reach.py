"""What int8 cannot hold although every operator has a kernel: divisors near 0, and powers over many decibels."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from vitrify.core.findings import Finding, Severity
from vitrify.ir import Graph, Node, Tensor
from vitrify.ops import Div, Log, Rsqrt
from vitrify.quant.rules import is_real
from vitrify.quant.scales import LEVELS
from vitrify.quant.statistics import Range

DIVISOR_STEPS = 8
"""A divisor of this many steps is off by up to 6 %."""

AMPLITUDE_DB = 20 * math.log10(LEVELS - 1)
"""From the smallest to the largest value that int8 tells from 0: 48 dB."""


def divisor_findings(graph: Graph, ranges: Mapping[Tensor, Range]) -> list[Finding]:
    """Tell where dividing by what is computed at run time is rough in int8, or ends the process.

    ERROR where the kernel of DIV would meet a divisor of 0, which it does not survive; WARNING where a reciprocal root
    is taken of values of few steps.
    """
    return [f for node in graph.nodes_of(Div, Rsqrt) for f in _divisor(node, ranges)]


def _divisor(node: Node, ranges: Mapping[Tensor, Range]) -> Iterator[Finding]:
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
        if nearest < step:
            yield Finding(code="quant.division", where=where, headline=f"the divisor {spans}",
                          why="the int8 kernel of DIV ends the process when a divisor rounds to 0",
                          help="divide by what is never below 0, as the result of ABS, EXP or RELU, or keep the "
                               "division out of the model")
        return
    yield Finding(code="quant.reciprocal", severity=Severity.WARNING, where=where, headline=f"the divisor {spans}",
                  why="what is divided by so few steps is rough in int8",
                  help="leave silent or empty samples out of the calibration data")


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
