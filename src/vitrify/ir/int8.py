"""How an operator is quantized to int8: the part of its description that the quantizer reads."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Int8Rule:
    """The TFLite int8 specification of one operator.

    weight: input position of the constant weights, symmetric, one scale per index of ``weight_axis`` (None: one scale).
    bias: input position of the bias, int32 with scale input scale * weight scale.
    same_scale: input positions that must have exactly the scale and zero point of every output.
    variadic: the operator takes any number of inputs, and what ``same_scale`` says of the first goes for all.
    output: fixed (scale, zero point) of the outputs, where the kernel demands it.
    keep: input positions that are never quantized (shapes, axes, permutations, indices).
    """

    weight: int | None = None
    weight_axis: int | None = None
    bias: int | None = None
    same_scale: tuple[int, ...] = ()
    variadic: bool = False
    output: tuple[float, int] | None = None
    keep: tuple[int, ...] = ()

    def shared(self, inputs: int) -> tuple[int, ...]:
        """Return the positions that share the outputs' scale, for a node of that many inputs."""
        return tuple(range(inputs)) if self.variadic else tuple(i for i in self.same_scale if i < inputs)
