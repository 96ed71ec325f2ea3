"""Control flow and resource variables."""

from __future__ import annotations

from dataclasses import dataclass

from vitrify.ir.operator import Operator, operator


@operator
@dataclass(frozen=True)
class If(Operator):
    """IF."""

    name = "IF"
    options = "IfOptions"
    then_subgraph_index: int = 0
    else_subgraph_index: int = 0


@operator
@dataclass(frozen=True)
class While(Operator):
    """WHILE."""

    name = "WHILE"
    options = "WhileOptions"
    cond_subgraph_index: int = 0
    body_subgraph_index: int = 0


@operator
@dataclass(frozen=True)
class Call(Operator):
    """CALL."""

    name = "CALL"
    options = "CallOptions"
    subgraph: int = 0


@operator
@dataclass(frozen=True)
class CallOnce(Operator):
    """CALL_ONCE."""

    name = "CALL_ONCE"
    options = "CallOnceOptions"
    init_subgraph_index: int = 0


@operator
@dataclass(frozen=True)
class VarHandle(Operator):
    """VAR_HANDLE."""

    name = "VAR_HANDLE"
    options = "VarHandleOptions"
    container: str | None = None
    shared_name: str | None = None


@operator
@dataclass(frozen=True)
class ReadVariable(Operator):
    """READ_VARIABLE."""

    name = "READ_VARIABLE"
    options = "ReadVariableOptions"


@operator
@dataclass(frozen=True)
class AssignVariable(Operator):
    """ASSIGN_VARIABLE."""

    name = "ASSIGN_VARIABLE"
    options = "AssignVariableOptions"
