"""A compiled file in which several NPU operators write parts of one tensor, drawn as a graph of its named borders."""

from __future__ import annotations

from pathlib import Path

from vitrify.ir import DType, Graph, Model, Tensor
from vitrify.ops import Custom

DRAWN = "drawn"
"""Key of ``Tensor.extras``: of this one nothing but the name is known."""


def drawn(path: Path) -> Model | None:
    """Return the operators of a compiled file, linked by the names of tensors; None for any other file."""
    from vitrify.backends.vela.compiled import NPU_OPERATOR, read_compiled

    found = read_compiled(path)
    if not found.npu:
        return None
    graph = Graph("main")
    known: dict[str, Tensor] = {}
    made: set[str] = set()

    def value(name: str) -> Tensor:
        if name not in known:
            known[name] = _tensor(name)
        return known[name]

    nodes = [(NPU_OPERATOR, part.inputs, part.outputs) for part in found.npu]
    nodes += [(part.kind, (), part.outputs) for part in found.cpu]
    for kind, inputs, outputs in nodes:
        given = [value(name) for name in inputs]
        graph.inputs += [t for t in given if t.name not in made and t not in graph.inputs]
        makes = [_tensor(name) if name in made or name in {t.name for t in graph.inputs} else value(name)
                 for name in outputs]
        graph.add(Custom(custom_code=kind), given, makes)
        made.update(outputs)
    graph.set_outputs([t for t in known.values() if t.producer is not None and not t.uses])
    return Model([graph], source=str(path))


def _tensor(name: str) -> Tensor:
    tensor = Tensor(name, DType.INT8, ())
    tensor.extras[DRAWN] = True
    return tensor
