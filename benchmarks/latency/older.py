"""What the compilers of the published i.MX 93 rows (Vela 3.6 to 3.11) left to the CPU, and today's takes.

Source: ethosu/vela/tflite_supported_operators.py of github.com/nxp-imx/ethos-u-vela, Vela 3.x.
"""

from __future__ import annotations

import math

from vitrify.backends.base import Compiled
from vitrify.ir import Graph, Node
from vitrify.targets import Estimate, Target
from vitrify.targets.estimating import Seconds, call_seconds, cpu_seconds, total
from vitrify.targets.partition import partition
from vitrify.targets.placement import Place

MEAN_CELLS = 4096


def was_left(node: Node) -> bool:
    """True for a node that they did not take."""
    first = node.inputs[0] if node.inputs else None
    if node.op.kind == "ELU":
        return True
    if node.op.kind == "DEPTHWISE_CONV_2D" and first is not None:
        return 1 < first.shape[3] < node.output.shape[3]
    if node.op.kind == "MEAN" and first is not None:
        differ = first.quantization != node.output.quantization or getattr(node.op, "keep_dims", False)
        return differ and math.prod(first.shape[1:3]) > MEAN_CELLS
    return False


def estimate(graph: Graph, compiled: Compiled, target: Target) -> Estimate:
    """Return today's estimate, with what was left then priced on the CPU and the calls around it added."""
    today = compiled.estimate
    assert today is not None
    left = {node for node in graph if was_left(node)}
    if not left:
        return today
    verdicts = compiled.placement.verdicts
    places: dict[Node, Place] = {node: "cpu" if node in left else verdict.placement
                                 for node, verdict in zip(graph, verdicts, strict=True)}
    moved = sum(row.ms for node, row in zip(graph, compiled.operators, strict=True) if node in left and
                row.placement != "cpu") / 1e3
    npu = today.npu_ms / 1e3 - moved
    calls = sum(part.placement == "npu" for part in partition(graph, places))
    cpu = total(cpu_seconds(node, target) for node, place in places.items() if place == "cpu")
    narrow = (today.low_ms / today.latency_ms, today.high_ms / today.latency_ms)
    both = total((Seconds(npu * narrow[0], npu, npu * narrow[1]), cpu, call_seconds(calls, target)))
    return Estimate(latency_ms=both.likely * 1e3, low_ms=both.low * 1e3, high_ms=both.high * 1e3, npu_ms=npu * 1e3,
                    source=f"{today.source}, with {len(left)} nodes on the CPU that Vela 3 did not take",
                    cpu_ms=cpu.likely * 1e3, driver_ms=calls * target.value("driver_call_s") * 1e3,
                    npu_cycles=today.npu_cycles, assumptions=today.assumptions)
