"""Where each node of a model runs on a target, why, and what crosses between the sides.

These are values for reports and JSON: nothing here links back to a graph.
"""

from __future__ import annotations

from typing import Literal

import msgspec

Place = Literal["npu", "cpu", "folded"]
"""``folded``: the node costs nothing by itself; it went into a neighbour, into addressing, or into a constant."""


Confidence = Literal["compiler", "documented", "observed", "inferred", "unknown"]
"""How we know: the compiler itself did so with this model; its documentation says so; we saw it with the compiler on
small models; we conclude it; nothing is known."""


class Reason(msgspec.Struct, frozen=True, kw_only=True):
    """One rule that a node breaks. ``headline`` holds the value found and the limit; ``help`` is empty, not guessed.

    ``values`` are both by name, ``nearest`` the nearest form that is allowed, ``fix`` the rewrite that helps;
    ``confidence``, ``source`` and ``versions`` (of the compiler) say how far to believe it.
    """

    code: str
    headline: str
    why: str = ""
    help: str = ""
    values: dict[str, str | int | float | list[int]] = {}
    nearest: str = ""
    fix: str = ""
    source: str = ""
    confidence: Confidence = "compiler"
    versions: str = ""


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """Where one node runs. ``rules`` are the rules it breaks; empty unless it is on the CPU.

    ``confidence`` and ``source`` say how that is known: of a node that is taken, what is known of its operator there;
    of one that is not, what is known of the rule that is believed most, since one is enough. ``origin`` lists the nodes
    of the user's file it was made from.
    """

    node: str
    operator: str
    placement: Place
    rules: tuple[Reason, ...] = ()
    confidence: Confidence = "compiler"
    source: str = ""
    origin: tuple[str, ...] = ()

    @property
    def is_unsure(self) -> bool:
        """True where nobody says so in public: we conclude it, or nothing is known at all."""
        return self.confidence in ("inferred", "unknown")


class Crossing(msgspec.Struct, frozen=True, kw_only=True):
    """A tensor that enters or leaves a partition."""

    tensor: str
    bytes: int


class Partition(msgspec.Struct, frozen=True, kw_only=True):
    """Nodes that run together on one side, and the tensors that cross its border."""

    index: int
    placement: Literal["npu", "cpu"]
    nodes: tuple[str, ...]
    inputs: tuple[Crossing, ...] = ()
    outputs: tuple[Crossing, ...] = ()
    time_ms: float = 0.0

    @property
    def bytes_in(self) -> int:
        """Bytes that enter."""
        return sum(crossing.bytes for crossing in self.inputs)

    @property
    def bytes_out(self) -> int:
        """Bytes that leave."""
        return sum(crossing.bytes for crossing in self.outputs)


class Coverage(msgspec.Struct, frozen=True, kw_only=True):
    """Shares in 0..1 that are not left to the CPU: of the nodes, of the MACs, and of the estimated time.

    ``time`` is None where nothing has estimated it. The ``unsure`` ones are the shares of all nodes, MACs and time
    whose place is inferred or unknown, on either side.
    """

    nodes: float
    macs: float
    time: float | None
    unsure_nodes: float = 0.0
    unsure_macs: float = 0.0
    unsure_time: float | None = None


class Placement(msgspec.Struct, frozen=True, kw_only=True):
    """The verdicts on all nodes in the file's order, grouped into partitions in running order."""

    target: str
    coverage: Coverage
    verdicts: tuple[Verdict, ...]
    partitions: tuple[Partition, ...]

    def count(self, place: Place) -> int:
        """Return how many nodes have this verdict."""
        return sum(verdict.placement == place for verdict in self.verdicts)

    @property
    def npu_partitions(self) -> int:
        """How often one inference calls the NPU."""
        return sum(partition.placement == "npu" for partition in self.partitions)

    def __str__(self) -> str:
        return (f"{self.count('npu')} nodes on the NPU, {self.count('folded')} folded, {self.count('cpu')} on the CPU, "
                f"{self.npu_partitions} NPU call{'' if self.npu_partitions == 1 else 's'}")


class Estimate(msgspec.Struct, frozen=True, kw_only=True):
    """A latency from a model of the chip; never a measurement. ``assumptions`` names what is not documented."""

    latency_ms: float
    low_ms: float
    high_ms: float
    source: str
    npu_ms: float
    cpu_ms: float
    driver_ms: float
    npu_cycles: int
    assumptions: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"about {self.latency_ms:.3g} ms ({self.low_ms:.3g} to {self.high_ms:.3g}), estimated by {self.source}"


class Memory(msgspec.Struct, frozen=True, kw_only=True):
    """What a compiled model uses. ``arena_bytes`` is the arena that its NPU operators share;
    ``sram_bytes`` and ``dram_bytes`` are the compiler's peaks; ``flash_bytes`` is the file itself."""

    sram_bytes: int
    sram_limit_bytes: int
    dram_bytes: int
    arena_bytes: int
    flash_bytes: int
    dram_traffic_bytes: int
    sram_traffic_bytes: int
    weights_bytes: int
    encoded_weights_bytes: int
