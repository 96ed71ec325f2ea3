"""Compiles the probes of a target's rules with the installed Vela, and says where the two differ."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from vitrify import tflite
from vitrify.backends.vela.compiling import check_model
from vitrify.core.errors import VitrifyError
from vitrify.core.files import temporary_folder
from vitrify.ir import Graph, Model
from vitrify.targets.base import Target
from vitrify.targets.ethos_u.probes import Probe, Sketch, probes
from vitrify.targets.ethos_u.settling import variant
from vitrify.targets.placement import Place

_TOGETHER = 40
"""Probes in one model: enough that the compiler's start does not count, few enough to find one that stops it."""


class Probed(NamedTuple):
    """What the compiler did with a probe. ``place`` is None where it stopped; ``said`` is its reason or error."""

    probe: Probe
    place: Place | None
    said: str

    @property
    def agrees(self) -> bool:
        """True where the rules say the same; a compiler that stops has not put the node on the NPU either."""
        return bool(self.probe.codes) == (self.place in ("cpu", None))


def probe_rules(target: Target, names: Iterable[str] = ()) -> Iterator[Probed]:
    """Yield what the compiler does with every probe of the target's core, with those called ``names`` if any are.

    Raises:
        VitrifyError: the compiler cannot be run at all.
    """
    wanted = set(names)
    chosen = [one for one in probes(variant(target.core)) if not wanted or one.name in wanted]
    together = iter([one for one in chosen if not one.alone])
    while pack := list(islice(together, _TOGETHER)):
        yield from _compiled(pack, target)
    for one in chosen:
        if one.alone:
            yield from _compiled([one], target)


def _compiled(pack: Sequence[Probe], target: Target) -> list[Probed]:
    """Compile probes in one model; where the compiler stops, the halves by themselves."""
    graph = Graph("probes")
    for one in pack:
        one.draw(Sketch(graph, one.name))
    with temporary_folder("probes") as folder:
        path = Path(folder) / "probes.tflite"
        tflite.write(Model(graphs=[graph]), path)
        try:
            verdicts = check_model(path, target).placement.verdicts
        except VitrifyError as error:
            if len(pack) == 1:
                return [Probed(pack[0], None, error.findings[0].headline)]
            half = len(pack) // 2
            return [*_compiled(pack[:half], target), *_compiled(pack[half:], target)]
    found = {verdict.node: verdict for verdict in verdicts}
    return [Probed(one, found[one.name].placement, "; ".join(reason.headline for reason in found[one.name].rules))
            for one in pack]
