"""Tensors that share one scale: a union-find over tensors, with the range that each group needs."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from vitrify.ir import Quantization, Tensor
from vitrify.quant.calibration.statistics import Range
from vitrify.quant.scales import activation_scale, wide_scale

NOTHING = Range(0.0, 0.0)


@dataclass(eq=False)
class Group:
    """Tensors with one scale: the union of their ranges, or the quantization that a kernel fixes; ``wide`` in int16."""

    members: list[Tensor] = field(default_factory=list)
    range: Range = NOTHING
    fixed: Quantization | None = None
    wide: bool = False

    @property
    def quantization(self) -> Quantization:
        """The quantization of all members."""
        return self.fixed or (wide_scale if self.wide else activation_scale)(self.range)


class Groups:
    """A partition of tensors into groups; starts with each tensor alone."""

    def __init__(self) -> None:
        self._group: dict[Tensor, Group] = {}

    def add(self, tensor: Tensor, found: Range, fixed: Quantization | None = None, wide: bool = False) -> None:
        """Put a tensor into a group of its own."""
        self._group[tensor] = Group([tensor], found, fixed, wide)

    def __getitem__(self, tensor: Tensor) -> Group:
        return self._group[tensor]

    def __contains__(self, tensor: Tensor) -> bool:
        return tensor in self._group

    def get(self, tensor: Tensor) -> Group | None:
        """The group of a tensor, None when it was never added."""
        return self._group.get(tensor)

    def all(self) -> list[Group]:
        """Every group once, in the order in which their first members came."""
        return list(dict.fromkeys(self._group.values()))

    def can_join(self, tensors: Collection[Tensor]) -> bool:
        """True when the tensors' groups are of one width, and no two are fixed to different quantizations."""
        if len({self._group[t].wide for t in tensors}) > 1:
            return False
        return len({q for t in tensors if (q := self._group[t].fixed) is not None}) <= 1

    def join(self, first: Tensor, second: Tensor) -> None:
        """Give two tensors, and all that share their scales, one scale.

        Raises:
            ValueError: both are fixed, to different quantizations.
        """
        one, two = self._group[first], self._group[second]
        if one is two:
            return
        if one.fixed is not None and two.fixed is not None and one.fixed != two.fixed:
            raise ValueError(f"'{first.name}' and '{second.name}' are fixed to different scales")
        one.range = one.range.join(two.range)
        one.fixed = one.fixed or two.fixed
        one.members += two.members
        for tensor in two.members:
            self._group[tensor] = one
