"""A model as it was: its graphs, and what stands beside them in a file."""

from __future__ import annotations

from dataclasses import replace

from vitrify.ir import Model
from vitrify.passes.snapshot import Snapshot


class State:
    """What ``restore`` brings back, as often as it is wanted."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._graphs = Snapshot(model)
        self._list = list(model.graphs)
        self._signatures = [replace(s, inputs=dict(s.inputs), outputs=dict(s.outputs)) for s in model.signatures]
        self._extras = dict(model.extras)
        self._metadata = dict(model.metadata)

    def restore(self) -> None:
        """Put everything back; nodes are made anew."""
        model = self._model
        model.graphs[:] = self._list
        self._graphs.restore()
        model.signatures[:] = [replace(s, inputs=dict(s.inputs), outputs=dict(s.outputs)) for s in self._signatures]
        model.extras.clear()
        model.extras |= self._extras
        model.metadata.clear()
        model.metadata |= self._metadata
