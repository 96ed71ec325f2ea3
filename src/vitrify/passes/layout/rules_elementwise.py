"""Layout of elementwise operators: any permutation, the same on all inputs and the output, broadcasting kept."""

from __future__ import annotations

from collections.abc import Sequence

from vitrify import ops
from vitrify.ir import Node, Operator, Tensor
from vitrify.passes.layout.perms import Perm, Shape, is_identity, permute
from vitrify.passes.layout.rule import Anchor, Editor, LayoutRule, Layouts, rule


@rule
class Unary(LayoutRule):
    """One input, one output of the same shape; further inputs do not exist."""

    kinds = (ops.Relu, ops.Relu6, ops.ReluN1To1, ops.Relu0To1, ops.LeakyRelu, ops.Elu, ops.Logistic, ops.Tanh,
             ops.HardSwish, ops.Gelu, ops.Abs, ops.Neg, ops.Sqrt, ops.Rsqrt, ops.Square, ops.Exp, ops.Log, ops.Sin,
             ops.Cos, ops.Floor, ops.Ceil, ops.Round, ops.Sign, ops.LogicalNot, ops.Quantize, ops.Dequantize,
             ops.Cast, ops.FakeQuant, ops.ZerosLike)

    def spread(self, node: Node, anchor: Anchor) -> Layouts | None:
        """Same permutation on both sides."""
        return Layouts((anchor.perm,), (anchor.perm,))


def operand_perm(tensor: Tensor, rank: int, perm: Perm) -> Perm | None:
    """The permutation of an operand whose missing leading axes broadcast; None when a reshape alone must do.

    Raises:
        LookupError: no permutation of the operand with a reshape gives what is needed.
    """
    missing = rank - len(tensor.shape)
    if missing == 0:
        return perm
    if all(perm[i] == i for i in range(missing)):
        return tuple(i - missing for i in perm[missing:])
    if tensor.is_constant or sum(n != 1 for n in tensor.shape) <= 1:
        return None
    raise LookupError(tensor.name)


def extended(tensor: Tensor, perm: Perm, editor: Editor) -> Tensor:
    """``tensor`` with leading axes of extent 1 added and permuted: as constant data, or by a reshape."""
    shape: Shape = (1,) * (len(perm) - len(tensor.shape)) + tensor.shape
    if tensor.size == 1 and tensor.is_constant and tensor.quantization is None:
        return tensor
    if tensor.data is not None:
        return editor.constant(tensor, tensor.data.reshape(shape).transpose(perm))
    return editor.reshape(tensor, permute(shape, perm))


@rule
class Broadcasting(LayoutRule):
    """Several inputs that broadcast against each other, aligned at the last axis."""

    kinds = (ops.Add, ops.Sub, ops.Mul, ops.Div, ops.Maximum, ops.Minimum, ops.Pow, ops.SquaredDifference,
             ops.FloorDiv, ops.FloorMod, ops.Atan2, ops.AddN, ops.BitwiseXor, ops.RightShift, ops.Less,
             ops.LessEqual, ops.Greater, ops.GreaterEqual, ops.Equal, ops.NotEqual, ops.LogicalAnd, ops.LogicalOr,
             ops.SelectV2, ops.Prelu)

    def spread(self, node: Node, anchor: Anchor) -> Layouts | None:
        """Same permutation everywhere; operands of lower rank take the part of it that they have."""
        rank = len(node.output.shape)
        perm = anchor.perm
        if not anchor.is_output and len(perm) < rank:
            missing = rank - len(perm)
            perm = (*range(missing), *(i + missing for i in perm))
        if any(t is None or (t.is_constant and t.quantization is not None and t.quantization.is_per_axis)
               for t in node.inputs):
            return None
        try:
            return Layouts(tuple(operand_perm(node.input(i), rank, perm) for i in range(len(node.inputs))), (perm,))
        except LookupError:
            return None

    def rewrite(self, node: Node, layouts: Layouts, inputs: list[Tensor | None],
                editor: Editor) -> tuple[Operator, Sequence[Tensor | None]]:
        """Extend the operands of lower rank."""
        perm = layouts.outputs[0]
        for index, wanted in enumerate(layouts.inputs):
            tensor = inputs[index]
            if wanted is None and tensor is not None and tensor.shape != ():
                inputs[index] = extended(tensor, perm, editor)
        if isinstance(node.op, ops.Prelu):
            inputs[1] = _without_batch(inputs[1], editor)
        return node.op, inputs


def _without_batch(alpha: Tensor | None, editor: Editor) -> Tensor | None:
    """A PRELU's slopes without the leading axis of extent 1, the form that every kernel takes."""
    if alpha is None or alpha.data is None or len(alpha.shape) < 2 or alpha.shape[0] != 1:
        return alpha
    return editor.constant(alpha, alpha.data[0])


@rule
class SelectSame(LayoutRule):
    """SELECT, which does not broadcast: only where all shapes are the same."""

    kinds = (ops.Select,)

    def spread(self, node: Node, anchor: Anchor) -> Layouts | None:
        """Same permutation everywhere."""
        if any(t is None or t.shape != node.output.shape for t in node.inputs):
            return None
        return Layouts((anchor.perm,) * len(node.inputs), (anchor.perm,))


class KeepsLast(LayoutRule):
    """An operator along the last axis of its first input that treats all other axes alike."""

    def spread(self, node: Node, anchor: Anchor) -> Layouts | None:
        """Any permutation that leaves the last axis in place."""
        perm = anchor.perm
        if not perm or perm[-1] != len(perm) - 1 or is_identity(perm):
            return None
        others = (None,) * (len(node.inputs) - 1)
        return Layouts((perm, *others), (perm,))


@rule
class AlongLastAxis(KeepsLast):
    """Normalizations along the last axis."""

    kinds = (ops.Softmax, ops.LogSoftmax, ops.L2Normalization)
