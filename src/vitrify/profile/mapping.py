"""The user's file beside its optimized forms: what became of every node, by which pass, and what that costs."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from vitrify.ir import Graph, Node
from vitrify.matching import Mapped, SourceEntry, map_sources
from vitrify.results.profiling import EstimatedRow, FormRow, InsertedRow, MappedRow, MappingRow, MeasuredRow
from vitrify.results.rows import PartitionRow

Row = MeasuredRow | EstimatedRow


def map_forms(sources: Sequence[SourceEntry], floating: Graph | None, integers: Graph | None, rows: Sequence[Row],
              partitions: Sequence[PartitionRow], float_rows: Sequence[Row] = (), on_host: bool = False) -> MappingRow:
    """Find every node of the source in each form; ``rows`` are those of the last form, ``float_rows`` of the float one.

    ``on_host``: what the integer form does not compute, the host does with its outputs.
    """
    answer = MappingRow()
    last = integers if integers is not None else floating
    maps: dict[str, list[Mapped]] = {}
    for name, graph in (("float", floating), ("integer", integers)):
        if graph is not None:
            answer.forms.append(name)
            maps[name] = map_sources(sources, graph)
    times = {name: _Costs(graph, found, rows if graph is last else float_rows)
             for (name, found), graph in zip(maps.items(), [g for g in (floating, integers) if g is not None],
                                             strict=True)}
    if partitions:
        answer.forms.append("compiled")
    for index, first in enumerate(next(iter(maps.values()), [])):
        row = MappedRow(name=first.source.name, operator=first.source.kind, how=first.how,
                        into=[node.name for node in first.nodes] if first.how == "folded" else [])
        for name, found in maps.items():
            one = found[index]
            setattr(row, f"{name}_form", times[name].form(one) or _gone(one, first, on_host))
            row.passes += [p for node in one.nodes if one.how != "folded" for p in node.origin.passes
                           if p not in row.passes]
        if partitions:
            row.compiled_form = _compiled(next(reversed(maps.values()))[index], rows, partitions, last)
        answer.nodes.append(row)
    _link(answer.nodes, sources)
    answer.counts = dict(Counter(row.how for row in answer.nodes))
    for name, graph in (("float", floating), ("integer", integers)):
        if graph is not None:
            given: Sequence[Row] = rows if graph is last else float_rows
            answer.inserted += _inserted(name, graph, given, {entry.name for entry in sources})
    return answer


def _link(rows: Sequence[MappedRow], sources: Sequence[SourceEntry]) -> None:
    """Say after which nodes of the source each one stands; there is a row for each, in order."""
    makers = {name: number for number, entry in enumerate(sources) for name in entry.outputs}
    for number, (row, entry) in enumerate(zip(rows, sources, strict=False)):
        row.after = sorted({makers[name] for name in entry.inputs if makers.get(name, number) != number})


class _Costs:
    """Times and bytes of the nodes of a form, shared out among the source nodes that live on in each."""

    def __init__(self, graph: Graph, found: Sequence[Mapped], rows: Sequence[Row]) -> None:
        nodes = list(graph)
        self.rows: Mapping[Node, Row] = dict(zip(nodes, rows, strict=True)) if rows else {}
        self.sharers: dict[Node, int] = defaultdict(int)
        for one in found:
            if one.how not in ("folded", "unused"):
                for node in one.nodes:
                    self.sharers[node] += 1

    def form(self, one: Mapped) -> FormRow | None:
        """Describe what a source node is in this form; None where nothing of it is left."""
        if one.how in ("folded", "unused") or not one.nodes:
            return None
        rows = [(self.rows[node], self.sharers[node]) for node in one.nodes if node in self.rows]
        timed = [(row.time_ms, share) for row, share in rows if row.time_ms is not None]
        return FormRow(nodes=[n.name for n in one.nodes], operators=[n.op.kind for n in one.nodes],
                       types=list(dict.fromkeys(n.outputs[0].dtype.label for n in one.nodes if n.outputs)),
                       time_ms=sum(time / share for time, share in timed) if timed else None,
                       bytes=sum(row.bytes // share for row, share in rows) if rows else None,
                       placement=", ".join(dict.fromkeys(row.placement for row, _ in rows)))


def _gone(one: Mapped, first: Mapped, on_host: bool) -> FormRow | None:
    """Say where a node is that an earlier form computes and this one does not."""
    if one is first or first.how in ("folded", "unused"):
        return None
    if on_host:
        return FormRow(placement="host")
    return FormRow(nodes=[node.name for node in one.nodes], placement="folded")


def _compiled(one: Mapped, rows: Sequence[Row], partitions: Sequence[PartitionRow], graph: Graph | None
              ) -> FormRow | None:
    """The parts of the compiled file that a source node is in: NPU operators, and operators left to the CPU."""
    if graph is None or one.how in ("folded", "unused"):
        return None
    row_of = dict(zip(graph, rows, strict=True)) if rows else {}
    found = [row_of[node] for node in one.nodes if node in row_of]
    numbers = {p.index: p for p in partitions}
    names, kinds = [], []
    for row in found:
        part = numbers.get(row.partition) if isinstance(row, EstimatedRow) and row.partition is not None else None
        on_npu = row.placement != "cpu" and part is not None and part.placement == "npu"
        names.append(f"NPU operator {part.index}" if on_npu and part is not None else row.node)
        kinds.append("NPU" if on_npu else row.operator)
    return FormRow(nodes=list(dict.fromkeys(names)), operators=list(dict.fromkeys(kinds)),
                   placement=", ".join(dict.fromkeys(row.placement for row in found)))


def _inserted(form: str, graph: Graph, rows: Sequence[Row], known: set[str]) -> list[InsertedRow]:
    found = []
    for index, node in enumerate(graph):
        if any(source.name in known for source in node.origin.sources):
            continue
        found.append(InsertedRow(form=form, node=node.name, operator=node.op.kind, passes=list(node.origin.passes),
                                 time_ms=rows[index].time_ms if rows else None))
    return found
