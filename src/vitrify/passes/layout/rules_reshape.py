"""Layout of reshapes: axes that a reshape joins or splits stay together; a flatten moves into the weights behind it."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from vitrify import ops
from vitrify.ir import DType, Node, Operator, Tensor
from vitrify.passes.layout.perms import Perm, identity, is_identity, permute, through_reshape
from vitrify.passes.layout.rule import Anchor, Editor, LayoutRule, Layouts, rule


@rule
class Reshaping(LayoutRule):
    """RESHAPE, SQUEEZE and EXPAND_DIMS; all become a RESHAPE between the stored shapes."""

    kinds = (ops.Reshape, ops.Squeeze, ops.ExpandDims)

    def spread(self, node: Node, anchor: Anchor) -> Layouts | None:
        """The permutation through the reshape, where one exists."""
        before, after = node.input(0).shape, node.output.shape
        others = (None,) * (len(node.inputs) - 1)
        if anchor.is_output:
            found = through_reshape(after, anchor.perm, before)
            return None if found is None else Layouts((found, *others), (anchor.perm,))
        found = through_reshape(before, anchor.perm, after)
        if found is None and flattened(node, anchor.perm) is not None:
            found = identity(len(after))
        return None if found is None else Layouts((anchor.perm, *others), (found,))

    def rewrite(self, node: Node, layouts: Layouts, inputs: list[Tensor | None],
                editor: Editor) -> tuple[Operator, Sequence[Tensor | None]]:
        """Reshape between the stored shapes; reorder the weights' columns behind a flatten."""
        perm = layouts.inputs[0]
        assert perm is not None
        shape = permute(node.output.shape, layouts.outputs[0])
        if through_reshape(node.input(0).shape, perm, node.output.shape) is None:
            order = flattened(node, perm)
            assert order is not None
            for user in node.output.users:
                weights = user.input(1)
                assert weights.data is not None
                editor.graph.set_input(user, 1, editor.constant(weights, weights.data[:, order]))
        sizes = np.array(shape, np.int32)
        target = Tensor(f"{node.output.name}_shape", DType.INT32, sizes.shape, data=sizes)
        return ops.Reshape(new_shape=shape), [inputs[0], target]


def flattened(node: Node, perm: Perm) -> np.ndarray | None:
    """The new order of what a flatten gives, when its users can take any order: FULLY_CONNECTED by constants.

    The flatten joins all axes behind some leading ones, which the permutation must leave in place.
    """
    before, after = node.input(0).shape, node.output.shape
    lead = len(after) - 1
    if node.output.is_output or lead < 0 or before[:lead] != after[:lead] or perm[:lead] != identity(lead):
        return None
    if is_identity(perm) or prod(before[lead:]) != after[-1]:
        return None
    for user in node.output.users:
        if not isinstance(user.op, ops.FullyConnected) or user.op.weights_format or user.inputs[0] is not node.output:
            return None
        weights = user.input(1)
        if weights.data is None or weights.dtype.numpy is None or weights.shape[-1] != after[-1]:
            return None
    tail = tuple(axis - lead for axis in perm[lead:])
    return np.arange(after[-1]).reshape(before[lead:]).transpose(tail).reshape(-1)
