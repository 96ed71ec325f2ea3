"""The files a command reads and writes, checked before any long work begins."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from msgspec import structs

from vitrify.core.errors import UsageError, VitrifyError
from vitrify.core.findings import Finding

_EFFECTIVE = os.access in os.supports_effective_ids


def existing(path: Path) -> Path:
    """Return ``path`` when it is a file that can be read.

    Raises:
        UsageError: it is missing, a folder, or not ours to read.
    """
    if path.is_dir():
        raise UsageError.of("file.folder", f"{path} is a folder, not a model file", where=str(path),
                            help=f"name a file in it; `vitrify inspect {path}` lists them")
    if not path.exists():
        raise UsageError.of("file.missing", f"there is no file {path}", where=str(path))
    try:
        path.open("rb").close()
    except OSError as error:
        raise UsageError.of("file.permission", f"{path} cannot be read: {error.strerror}", where=str(path)) from error
    return path


def destination(source: Path, output: Path | None, ending: str) -> Path:
    """Return where to write: ``output``, or a name made from the source's in the current folder.

    Raises:
        UsageError: it is the source itself, a folder, or in a place that cannot be written.
    """
    target = output if output is not None else Path(source.stem + ending)
    if target.is_dir():
        raise UsageError.of("file.folder", f"{target} is a folder, not a file to write", where=str(target),
                            help=f"name the file, for example -o {target / (source.stem + ending)}")
    if target.exists() and source.exists() and target.samefile(source):
        raise UsageError.of("file.same", f"{target} is the model itself, which is never changed", where=str(target),
                            help="choose another name with -o")
    parent = target.absolute().parent
    while not parent.exists():
        parent = parent.parent
    if not parent.is_dir() or not os.access(parent, os.W_OK | os.X_OK, effective_ids=_EFFECTIVE):
        raise UsageError.of("file.permission", f"cannot write in {parent}", where=str(target),
                            help="choose another place with -o")
    return target


@contextmanager
def staged(target: Path) -> Iterator[Path]:
    """Yield a name beside ``target`` for a file that is checked before it takes the place of ``target``.

    When the block ends well the file is renamed; otherwise it is removed, and what stood at ``target`` stays.
    Findings of errors that speak of the staged name are told with the real one.
    """
    aside = target.parent / f".{target.stem}.{os.getpid()}.part{target.suffix}"
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        yield aside
        os.replace(aside, target)
    except VitrifyError as error:
        raise type(error)(_renamed(error, aside, target)) from error
    except OSError as error:
        raise UsageError.of("file.write", f"cannot write {target}: {error.strerror or error}", where=str(target),
                            help="choose another place with -o, or free space and permissions there") from error
    finally:
        aside.unlink(missing_ok=True)


def _renamed(error: VitrifyError, aside: Path, target: Path) -> list[Finding]:
    return [rename(finding, aside, target) for finding in error.findings]


def rename(finding: Finding, aside: Path, target: Path) -> Finding:
    """Return the finding with the name of a staged file replaced by the real one."""
    def told(text: str) -> str:
        return text.replace(str(aside), str(target)).replace(aside.name, target.name)

    return structs.replace(finding, headline=told(finding.headline), where=told(finding.where),
                           why=told(finding.why), help=told(finding.help))
