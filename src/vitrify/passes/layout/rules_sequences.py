"""Layout of sequence operators: batch first and time first are an attribute."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from vitrify import ops
from vitrify.ir import Node, Operator, Tensor
from vitrify.passes.layout.rule import Anchor, Editor, LayoutRule, Layouts, rule

_SWAPPED = (1, 0, 2)


@rule
class Recurring(LayoutRule):
    """Recurrent layers over [time,batch,depth] or [batch,time,depth]."""

    kinds = (ops.UnidirectionalSequenceLSTM, ops.UnidirectionalSequenceRNN)

    def spread(self, node: Node, anchor: Anchor) -> Layouts | None:
        """The same on both sides; time and batch may change places."""
        if anchor.perm != _SWAPPED or (not anchor.is_output and anchor.place != 0):
            return None
        return Layouts((_SWAPPED, *[None] * (len(node.inputs) - 1)), (_SWAPPED,))

    def rewrite(self, node: Node, layouts: Layouts, inputs: list[Tensor | None],
                editor: Editor) -> tuple[Operator, Sequence[Tensor | None]]:
        """Turn the attribute over."""
        op = node.op
        assert isinstance(op, ops.UnidirectionalSequenceLSTM | ops.UnidirectionalSequenceRNN)
        return replace(op, time_major=not op.time_major), inputs
