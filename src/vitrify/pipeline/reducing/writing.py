"""The folder that a reduction leaves: the model, values for its inputs, and how to repeat the failure."""

from __future__ import annotations

import io
import re
import shlex
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from vitrify.core.files import write_atomically
from vitrify.core.words import counted
from vitrify.pipeline.reducing.drafts import Array, Draft
from vitrify.pipeline.reducing.judging import Asked
from vitrify.pipeline.reducing.predicates import parse
from vitrify.pipeline.versions import versions
from vitrify.results import ReduceResult

MODEL, INPUTS, README = "model", "inputs.npz", "README.md"
_WORD = re.compile(r"[^\s\"';|&<>()]+")


def repeat_command(asked: Asked, suffix: str, code: str) -> str:
    """The line that repeats the failure in the folder."""
    file = MODEL + suffix
    if asked.command:
        text = _WORD.sub(lambda match: _absolute(match[0]), asked.command)
        return text.replace("{inputs}", INPUTS).replace("{}", file)
    name, arguments = parse(asked.predicate)
    if name == "import" and not arguments:
        arguments = (code,)
    if name == "vela" and len(arguments) == 1:
        arguments = (*arguments, code)
    chosen = f"{name}:{','.join(arguments)}" if any(arguments) else name
    data = f" --data {INPUTS}" if name == "sqnr" else ""
    more = f" --fails-text {shlex.quote(asked.pattern)}" if asked.pattern else ""
    return f"vitrify reduce {file} --once --predicate {shlex.quote(chosen)}{data}{more}"


def write_folder(folder: Path, draft: Draft, inputs: Mapping[str, Array], result: ReduceResult) -> None:
    """Write the files, each whole or not at all.

    Raises:
        UsageError: one cannot be written.
    """
    write_atomically(folder / f"{MODEL}{draft.suffix}", draft.data())
    stream = io.BytesIO()
    np.savez(stream, **inputs)  # type: ignore[arg-type]
    write_atomically(folder / INPUTS, stream.getvalue())
    write_atomically(folder / README, readme(draft, inputs, result).encode())


def readme(draft: Draft, inputs: Mapping[str, Array], result: ReduceResult) -> str:
    """What fails, with which versions, and how to repeat it."""
    known = ", ".join(f"{name} {version}" for name, version in versions().items())
    shapes = [f"- `{view.name}` {view.dtype}{list(view.shape)}" for view in draft.inputs]
    lines = [
        "# A model that fails", "", result.reason, "",
        f"`{MODEL}{draft.suffix}` ({result.bytes_after:,} bytes) has {counted(result.nodes_after, 'node')}: "
        f"{', '.join(result.operators)}. It was made from one with {counted(result.nodes_before, 'node')}.",
        "", "## Repeat it", "", "In this folder:", "", f"    {result.repeat}", "", f"Versions: {known}.", "",
        "## Inputs", "", f"`{INPUTS}` holds values for", "", *shapes, "", "## What is left of the original", ""]
    if result.kept_weights:
        names = ", ".join(f"`{name}`" for name in result.kept_weights)
        lines.append(f"These constants hold values of the original model, as random ones of equal range do not fail: "
                     f"{names}.")
    else:
        lines.append("No weights: their values are random, with the range of the original's; or constants that are "
                     "shapes, axes and single numbers.")
    if result.kept_inputs:
        lines.append(f"`{INPUTS}` holds values that the original data became inside the model.")
    if not result.finished:
        lines += ["", "The search was stopped before it was done: a smaller model may fail, too."]
    return "\n".join(lines) + "\n"


def _absolute(word: str) -> str:
    """A file beside the caller is not beside the reduced model."""
    if word.startswith(("-", "/", "{")) or "{}" in word:
        return word
    path = Path(word)
    return shlex.quote(str(path.resolve())) if path.is_file() else word
