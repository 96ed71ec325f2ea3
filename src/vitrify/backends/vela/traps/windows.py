"""Convolutions that leave most of the NPU's multipliers idle."""

from __future__ import annotations

from collections.abc import Iterator

from vitrify.backends.vela.traps.trap import LEAST_SHARE, Costs, trap, where
from vitrify.core.findings import Finding, Severity
from vitrify.targets.cost import node_macs

_LONGEST_STRIDE = 3
_FEW_CHANNELS = 8
_BUSY = 0.3
_WIDE, _FOLDED = 7, 2
"""Taps and stride of stems that fold. Source: vitrify.passes.targets.folded_stems."""


@trap
def patches(costs: Costs) -> Iterator[Finding]:
    """Strides that the compiler unrolls into one operation for each output position."""
    nodes = [node for node in costs.nodes("CONV_2D")
             if max(getattr(node.op, "stride_h", 1), getattr(node.op, "stride_w", 1)) > _LONGEST_STRIDE]
    for node in nodes:
        if costs.share([node]) >= LEAST_SHARE and costs.commands(node) > _FEW_CHANNELS:
            yield Finding(code="ethos-u.unrolled-patches", severity=Severity.WARNING, where=where([node]),
                          headline=f"CONV_2D '{node.name}' was unrolled into {costs.commands(node)} operations, which "
                          f"take {costs.told([node])}",
                          why="the NPU steps by 3 at most; patches cut out by a reshape and multiplied by a 1x1 "
                          "convolution are the same values, up to 14 times faster",
                          help=costs.fix("long-strides"))


@trap
def few_channels(costs: Costs) -> Iterator[Finding]:
    """A convolution of an image: the NPU reads and multiplies channels in groups of eight and more."""
    for node in costs.nodes("CONV_2D"):
        channels = node.input(0).shape[-1]
        capacity = costs.cycles[node] * costs.target.value("macs_per_cycle")
        busy = node_macs(node) / capacity if capacity else 1.0
        if channels < _FEW_CHANNELS and busy < _BUSY and costs.share([node]) >= LEAST_SHARE:
            yield Finding(code="ethos-u.few-channels", severity=Severity.INFO, where=where([node]),
                          headline=f"CONV_2D '{node.name}' has {channels} input channels and keeps {busy:.0%} of the "
                          f"multipliers busy; it takes {costs.told([node])}",
                          why="channels are read in bursts and multiplied eight at a time",
                          help=costs.fix("folded-stems") if node.input(1).shape[2] >= _WIDE and
                          getattr(node.op, "stride_w", 1) == _FOLDED else "train with a stem of blocks of pixels (2x2 "
                          "pixels as 12 channels)")


@trap
def softmax(costs: Costs) -> Iterator[Finding]:
    """SOFTMAX, which is about 25 operations on values of 32 bits."""
    nodes = costs.nodes("SOFTMAX")
    if costs.share(nodes) >= LEAST_SHARE:
        yield Finding(code="ethos-u.costly-softmax", severity=Severity.INFO, where=where(nodes),
                      headline=f"{len(nodes)} SOFTMAX take {costs.told(nodes)}",
                      why="each becomes some 25 operations, most of them on values of 32 bits",
                      help="leave a softmax at the end of the model to the CPU if only the largest class counts")
