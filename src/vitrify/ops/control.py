"""Control flow and resource variables; what IF, CALL and READ_VARIABLE give is known to other graphs only.

Source: TFLite kernels/if.cc, while.cc, call_once.cc, var_handle.cc, read_variable.cc, assign_variable.cc.
"""

from __future__ import annotations

from vitrify.ir.dtypes import DType
from vitrify.ir.operator import Operator, operator
from vitrify.ops.base import Inputs, TensorType, given


@operator
class If(Operator):
    """Runs one of two graphs; input 0 is the condition."""

    name = "IF"
    options = "IfOptions"
    then_subgraph_index: int = 0
    else_subgraph_index: int = 0


@operator
class While(Operator):
    """Runs a graph on the inputs as long as another one says so."""

    name = "WHILE"
    options = "WhileOptions"
    cond_subgraph_index: int = 0
    body_subgraph_index: int = 0

    def infer(self, inputs: Inputs) -> list[TensorType]:
        """Return the inputs' types."""
        return [tensor.type for tensor in given(self, inputs, len(inputs))]


@operator
class Call(Operator):
    """Runs a graph."""

    name = "CALL"
    options = "CallOptions"
    subgraph: int = 0


@operator
class CallOnce(Operator):
    """Runs a graph once, before everything else."""

    name = "CALL_ONCE"
    options = "CallOnceOptions"
    init_subgraph_index: int = 0

    def infer(self, inputs: Inputs) -> list[TensorType]:
        """Return nothing: there are no outputs."""
        return []


@operator
class VarHandle(Operator):
    """The handle of a variable."""

    name = "VAR_HANDLE"
    options = "VarHandleOptions"
    container: str | None = None
    shared_name: str | None = None

    def infer(self, inputs: Inputs) -> list[TensorType]:
        """Return one handle."""
        return [TensorType(DType.RESOURCE, ())]


@operator
class ReadVariable(Operator):
    """The value of a variable."""

    name = "READ_VARIABLE"
    options = "ReadVariableOptions"


@operator
class AssignVariable(Operator):
    """Gives a variable a value; inputs handle, value."""

    name = "ASSIGN_VARIABLE"
    options = "AssignVariableOptions"

    def infer(self, inputs: Inputs) -> list[TensorType]:
        """Return nothing: there are no outputs."""
        given(self, inputs, 2)
        return []
