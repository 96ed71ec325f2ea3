"""Does Python code of a module read values that depend on its inputs? A trace would hold what it read forever."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_READS = "aten::_local_scalar_dense"      # what bool(tensor), int(tensor), tensor.item() and if tensor: call


def run_watched(call: Callable[[], Any], inputs: list[Any]) -> tuple[Any, bool]:
    """Return what the call gives, and whether a value that depends on ``inputs`` was read from a tensor meanwhile.

    Shapes are no such values: outside of a trace they are plain numbers.
    """
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils._pytree import tree_leaves
    from torch.utils.weak import WeakIdKeyDictionary

    class Watch(TorchDispatchMode):  # type: ignore[misc]      # torch is not looked into
        def __init__(self) -> None:
            super().__init__()
            self.reads = False
            self.depend: Any = WeakIdKeyDictionary()
            for tensor in inputs:
                self.depend[tensor] = True

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            result = func(*args, **(kwargs or {}))
            given = tree_leaves((args, kwargs or {}))
            if any(isinstance(value, torch.Tensor) and value in self.depend for value in given):
                self.reads = self.reads or func._schema.name == _READS
                for value in tree_leaves(result):
                    if isinstance(value, torch.Tensor):
                        self.depend[value] = True
                if func._schema.is_mutable:      # what is written to depends on them too
                    for value in given:
                        if isinstance(value, torch.Tensor):
                            self.depend[value] = True
            return result

    watch = Watch()
    with watch:
        found = call()
    return found, watch.reads
