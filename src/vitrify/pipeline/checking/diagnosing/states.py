"""A streaming model whose variables the NPU does not hold."""

from __future__ import annotations

from collections.abc import Iterator

from vitrify.core.words import counted
from vitrify.ops import AssignVariable, CallOnce, ReadVariable, VarHandle
from vitrify.pipeline.checking.diagnosing.borders import fixing
from vitrify.pipeline.checking.diagnosing.diagnosis import Case, Diagnosis, diagnosis

PORTS = "state-ports"


@diagnosis("graph.variables", says="the model has no variables, or the NPU holds them",
           why="the small cores have no variables, so that every read and write of one leaves the NPU and comes back; "
               "as inputs and outputs the application hands them on",
           help=f"vitrify check MODEL --target NAME --fix --approximate {PORTS} -o OUT.tflite")
def variables(case: Case) -> Iterator[Diagnosis]:
    """Variables that are read and assigned on the CPU."""
    nodes = [node for node in case.on_cpu if isinstance(node.op, VarHandle | ReadVariable | AssignVariable | CallOnce)]
    if nodes:
        handles = case.graph.count(VarHandle)
        yield Diagnosis(headline=f"{counted(handles, 'variable')} {'is' if handles == 1 else 'are'} read and assigned "
                                 f"on the CPU, by {counted(len(nodes), 'operator')}, and the NPU is called again after "
                                 "each", nodes=nodes, command=fixing(case, PORTS))
