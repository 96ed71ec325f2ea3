"""A model of a training framework as the ONNX or TFLite file that everything after it reads."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from vitrify.core.files import look, temporary_folder
from vitrify.core.findings import Finding
from vitrify.core.progress import ProgressCallback, Reporter
from vitrify.pipeline.files import called, rename
from vitrify.pipeline.options import ConvertOptions
from vitrify.pipeline.steps import step


def needs_exchange(source: Path) -> bool:
    """True for a model that only its training framework reads."""
    from vitrify.importers.exchange import front_end

    return look(source) is not None and front_end(source) is not None


def exchange_to(source: Path, folder: Path, options: ConvertOptions,
                progress: ProgressCallback | None = None) -> tuple[Path, list[Finding]]:
    """Let the framework write the model into ``folder``, and return the file and what it told.

    Raises:
        VitrifyError: it cannot.
    """
    from vitrify.importers.exchange import Request, front_end

    front = front_end(source)
    assert front is not None
    request = Request(sizes=dict(options.sizes), trust=options.trust, progress=progress)
    found = front.exchange(source, folder, request)
    return found.path, found.findings


@contextmanager
def exchanged(source: Path, options: ConvertOptions, reporter: Reporter) -> Iterator[tuple[Path, list[Finding]]]:
    """Yield what is to be read in the place of ``source``: itself, or what its framework writes for it.

    Errors of the block that name the file between name ``source``.

    Raises:
        VitrifyError: the framework cannot write it.
    """
    if not needs_exchange(source):
        yield source, []
        return
    with temporary_folder() as folder:
        with step(reporter, "export") as note:
            path, findings = exchange_to(source, folder, options, reporter.advance)
            note.text = f"{path.suffix[1:]}, {path.stat().st_size / 1e6:.2f} MB"
        with called(path, source):
            yield path, [rename(finding, path, source) for finding in findings]
