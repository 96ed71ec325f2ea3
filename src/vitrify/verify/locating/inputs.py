"""The reference's inputs, as another form takes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from vitrify.runtimes import Runtime
from vitrify.verify.alignment import as_taken, match

Array = np.ndarray[Any, np.dtype[Any]]


def renamed_inputs(sample: Mapping[str, Array], reference: Runtime, candidate: Runtime) -> dict[str, Array]:
    """Return the reference's inputs under the candidate's names and in its layouts.

    Raises:
        UsageError: the inputs cannot be told apart.
    """
    names = match(reference.interface.inputs, candidate.interface.inputs,
                  {**candidate.aliases, **{name: tensor for tensor, name in reference.aliases.items()}}, "inputs")
    return as_taken(sample, names, candidate.interface.inputs)
