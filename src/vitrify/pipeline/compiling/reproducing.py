"""The smallest model that the compiler still gets wrong: the first operator that differs, with as many before it as
it takes.

Each draft is compiled and run on its own. What is known to go round the fault is looked up in the same draft.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from vitrify.core.errors import VitrifyError
from vitrify.core.files import temporary_folder
from vitrify.core.words import counted, shell
from vitrify.ir import Graph, Model, Node
from vitrify.ir.cutting import cut_out
from vitrify.pipeline.compiling.comparing import MEAN_STEPS, STEPS, Apart, apart, is_beyond, random_samples

if TYPE_CHECKING:
    from vitrify.targets import Target

_GROWTH = 3
_MOST_NODES = 24


class Reproduction(msgspec.Struct, frozen=True, kw_only=True):
    """What came of the search: the model that was written, what is said of it, and what goes round the fault."""

    model: Path | None = None
    alone: bool = False
    words: str = ""
    way_round: str = ""


def reproduce(compiled: Path, node: Node) -> Reproduction:
    """Cut out ``node``, alone and then with more and more of what it reads, until a draft is compiled wrongly too.

    The draft is written beside ``compiled``; where none is wrong alone, the node with its neighbours is.
    """
    chip = _target_of(compiled)
    draft = _draft([node])
    wrong = False
    nodes = [node]
    for _ in range(_GROWTH):
        wrong = chip is not None and _is_wrong(_draft(nodes), chip)
        if wrong or len(nodes) > _MOST_NODES:
            break
        grown = _grown(nodes)
        if len(grown) == len(nodes):
            break
        nodes = grown
    if not wrong:
        nodes = _grown([node])
    draft = _draft(nodes)
    place = compiled.with_name(f"{compiled.stem}_guilty.tflite")
    _write(draft, place)
    return Reproduction(model=place, alone=wrong, words=_words(place, nodes, wrong, chip),
                        way_round=_way_round(node, draft, chip))


def _words(place: Path, nodes: list[Node], wrong: bool, chip: Target | None) -> str:
    made = f"{place.name} beside the file holds {'it alone' if len(nodes) == 1 else counted(len(nodes), 'node')}"
    if not wrong or chip is None:
        return f"{made}: it with its neighbours; alone they are compiled rightly"
    out = shell(f"{place.stem}_vela.tflite")
    return (f"{made}, which is compiled wrongly too; to repeat: vitrify compile {shell(place.name)} --target "
            f"{chip.name} --as-it-is -o {out}; vitrify verify {shell(place.name)} {out}")


def _way_round(node: Node, draft: Graph, chip: Target | None) -> str:
    """Say what avoids the fault: a rewrite where one is known, else the CPU."""
    name = _known(draft, chip) if chip is not None else ""
    if name:
        return (f"`vitrify compile` and `vitrify build` go round it by the rewrite '{name}'; the same in the model: "
                "vitrify check MODEL --fix")
    return (f"do not ship this file; vitrify compile MODEL --target {chip.name if chip else 'TARGET'} --ignore-ops "
            f"{node.op.kind} leaves such operators on the CPU, where they are right")


def _known(draft: Graph, chip: Target | None) -> str:
    from vitrify.passes.targets import catalogue
    from vitrify.pipeline.checking.fixes.applying import apply_fixes

    assert chip is not None
    fixes = [one for one in catalogue() if one.avoids]
    places = apply_fixes(Model(graphs=[_copy(draft)]), chip, fixes)
    return places[0].fix.name if places else ""


def _copy(graph: Graph) -> Graph:
    return cut_out(graph.nodes, outputs=graph.outputs)


def _draft(nodes: Iterable[Node]) -> Graph:
    listed = Graph.in_order(list(nodes))
    return cut_out(listed, outputs=[tensor for one in listed for tensor in one.outputs
                                    if tensor.is_output or not all(user in listed for user in tensor.users)
                                    or not tensor.users])


def _grown(nodes: list[Node]) -> list[Node]:
    """The nodes with those that make what they read."""
    found = dict.fromkeys(nodes)
    for node in nodes:
        found.update(dict.fromkeys(tensor.producer for tensor in node.inputs
                                   if tensor is not None and tensor.producer is not None))
    return list(found)


def _is_wrong(draft: Graph, chip: Target) -> bool:
    """Compile the draft as it is and run it; what cannot be compiled or run is not called wrong."""
    from vitrify.backends.vela import compile_model
    from vitrify.pipeline.compiling.comparing import Reference
    from vitrify.runtimes.npusim import NpuSim, oracle

    with temporary_folder() as folder:
        path, out = Path(folder) / "draft.tflite", Path(folder) / "draft_vela.tflite"
        _write(draft, path)
        model = Model(graphs=[_copy(draft)])
        names = [tensor.name for tensor in draft.outputs]
        samples = random_samples(model)[:1]
        try:
            compile_model(path, chip, out)
            with NpuSim(out) as runtime:
                given = runtime.invoke_raw(samples[0])
            oracle(model)
            _write(model.main, path)
            reference = Reference(path, samples)
            reference.look(names)
        except VitrifyError:
            return False
    for name, array in zip(names, given, strict=True):
        wanted = reference.value(0, name)
        found = apart(array.reshape(wanted.shape), wanted) if array.size == wanted.size else Apart(float("inf"), 0.0)
        floor = reference.floor(name)
        if is_beyond(found, Apart(max(STEPS, 2 * floor.largest), max(MEAN_STEPS, 2 * floor.mean))):
            return True
    return False


def _write(graph: Graph, path: Path) -> None:
    from vitrify import tflite

    tflite.write(Model(graphs=[graph]), path)


def _target_of(compiled: Path) -> Target | None:
    """The chip that the file says it was compiled for; else the one of its streams' accelerator that runs most."""
    from vitrify.runtimes.npusim import NpuSim
    from vitrify.targets import load

    with NpuSim(compiled) as runtime:
        name = runtime.commands.target if runtime.commands is not None and runtime.commands.target else \
            runtime.program.npu[0].accelerator.name
    try:
        return load(name)
    except VitrifyError:
        return None
