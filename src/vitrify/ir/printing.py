"""Text of a graph that a person can read."""

from __future__ import annotations

from vitrify.ir.graph import Graph, Model, Tensor


def _label(tensor: Tensor | None) -> str:
    if tensor is None:
        return "-"
    if tensor.is_constant and tensor.size <= 8 and tensor.data is not None and tensor.dtype.numpy is not None:
        return f"{tensor.type} = {tensor.data.tolist()}"
    return f"%{tensor.name}" + ("!" if tensor.is_constant else "")


def format_graph(graph: Graph) -> str:
    """Return one line per node: outputs with types, operator with attributes, inputs (``!`` marks a constant)."""
    lines = [f"graph {graph.name}({', '.join(f'%{t.name}: {t.type}' for t in graph.inputs)})"]
    for node in graph:
        outputs = ", ".join(f"%{t.name}: {t.type}" for t in node.outputs)
        lines.append(f"  {outputs} = {node.op}({', '.join(_label(t) for t in node.inputs)})")
    lines.append(f"  return {', '.join(f'%{t.name}' for t in graph.outputs)}")
    return "\n".join(lines)


def format_model(model: Model) -> str:
    """Return the text of all graphs."""
    return "\n\n".join(format_graph(graph) for graph in model.graphs)
