"""A model run in numpy: every tensor can be read, variables are kept, graphs call graphs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from vitrify.core.errors import ModelError, UnsupportedError
from vitrify.ir import Model, Node, Tensor
from vitrify.ir.graph import Array
from vitrify.ops.control import AssignVariable, Call, CallOnce, If, ReadVariable, VarHandle, While
from vitrify.ops.evaluate import evaluate_node, evaluate_tensors, outputs_of

MOST_ROUNDS = 10_000
"""Rounds of one WHILE, after which a run is refused."""


class Interpreter:
    """Runs a model's main graph; what is quantized equals LiteRT's reference kernels to the bit.

    Resource variables live until ``reset``. The states of recurrent operators start from zero with each run.
    """

    def __init__(self, model: Model) -> None:
        self.model = model
        self._names: dict[tuple[str, str], int] = {}
        self._variables: dict[int, Array] = {}
        self._initialized: set[int] = set()

    def reset(self) -> None:
        """Forget all variables; graphs that run once run again."""
        self._variables.clear()
        self._initialized.clear()

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        """Return the model's outputs for one array per input.

        Raises:
            ValueError: an array does not have its input's type.
            ModelError: a node cannot be computed; names it.
            UnsupportedError: an operator has no reference for these types.
        """
        return outputs_of(self.model.main, self.trace(inputs))

    def trace(self, inputs: Sequence[Array]) -> dict[Tensor, Array]:
        """Return the value of every tensor that the main graph takes or computes; raises as ``run`` does."""
        return evaluate_tensors(self.model.main, inputs, self._compute)

    def _compute(self, node: Node, arrays: Sequence[Array | None]) -> list[Array]:
        match node.op:
            case VarHandle():
                name = (node.op.container or "", node.op.shared_name or "")
                return [np.array(self._names.setdefault(name, len(self._names)), np.int32)]
            case ReadVariable():
                return [self._variable(node, arrays[0])]
            case AssignVariable():
                value = _given(arrays)[1]
                self._variables[_handle(arrays[0])] = value
                return []
            case CallOnce():
                self._once(node.op.init_subgraph_index)
                return []
            case If():
                taken = node.op.then_subgraph_index if _given(arrays)[0].item() else node.op.else_subgraph_index
                return self._called(taken, _given(arrays)[1:])
            case While():
                return self._looped(node, node.op, _given(arrays))
            case Call():
                return self._called(node.op.subgraph, _given(arrays))
        try:
            return evaluate_node(node, arrays)
        except (ValueError, IndexError, ArithmeticError, MemoryError) as error:
            names = ", ".join(f"'{t.name}'" for t in node.outputs)
            what = f"{node.op.kind} '{node.name}' cannot be computed: {error or 'no memory is left'}"
            raise ModelError.of("ops.run", what,
                                where=f"node '{node.name}', outputs {names}") from error

    def _called(self, graph: int, arrays: Sequence[Array]) -> list[Array]:
        found = self.model.graphs[graph]
        return outputs_of(found, evaluate_tensors(found, arrays, self._compute))

    def _once(self, graph: int) -> None:
        if graph not in self._initialized:
            self._initialized.add(graph)
            self._called(graph, [])

    def _looped(self, node: Node, op: While, arrays: list[Array]) -> list[Array]:
        for _ in range(MOST_ROUNDS):
            if not self._called(op.cond_subgraph_index, arrays)[0].item():
                return arrays
            arrays = self._called(op.body_subgraph_index, arrays)
        raise UnsupportedError.of("ops.rounds", f"WHILE '{node.name}' does not end within {MOST_ROUNDS} rounds")

    def _variable(self, node: Node, handle: Array | None) -> Array:
        found = self._variables.get(_handle(handle))
        if found is None:
            raise UnsupportedError.of("ops.variable", f"READ_VARIABLE '{node.name}' reads a variable before it is set")
        return found


def _handle(value: Array | None) -> int:
    assert value is not None
    return int(value)


def _given(arrays: Sequence[Array | None]) -> list[Array]:
    return [array for array in arrays if array is not None]
