"""The files a command reads and writes, checked before any long work begins."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from msgspec import structs

from vitrify.core.errors import UsageError, VitrifyError
from vitrify.core.files import cannot_write, look, owner, short, sweep, take_place
from vitrify.core.findings import Finding
from vitrify.core.words import shell
from vitrify.importers import refuse_unknown
from vitrify.importers.exchange import front_end
from vitrify.pipeline.building.sources import external_files

_EFFECTIVE = os.access in os.supports_effective_ids


def existing(path: Path) -> Path:
    """Return ``path`` when it is a file that can be read, or a folder that is a model.

    Raises:
        UsageError: it is missing, a folder, a pipe or a device, or not ours to read.
        ModelError: it is empty, or of no format that there is.
    """
    found = look(path)
    if found is None:
        raise UsageError.of("file.missing", f"there is no file {path}", where=str(path))
    if stat.S_ISDIR(found.st_mode) and front_end(path) is None:
        raise UsageError.of("file.folder", f"{path} is a folder, not a model file", where=str(path),
                            help=f"name a file in it; `vitrify inspect {shell(path)}` lists them")
    if path.is_dir():
        return path
    try:
        path.open("rb").close()
    except OSError as error:
        raise UsageError.of("file.permission", f"{path} cannot be read: {error.strerror}", where=str(path)) from error
    refuse_unknown(path)
    return path


def destination(source: Path, output: Path | None, ending: str) -> Path:
    """Return where to write: ``output``, or a name made from the source's in the current folder.

    What killed processes left half-written there is removed.

    Raises:
        UsageError: it is a folder, a pipe or a device, or in a place that cannot be written.
    """
    target = output if output is not None else Path(source.stem + ending)
    found = look(target)
    if found is not None and stat.S_ISDIR(found.st_mode):
        raise UsageError.of("file.folder", f"{target} is a folder, not a file to write", where=str(target),
                            help=f"name the file, for example -o {shell(target / (source.stem + ending))}")
    parent = target.absolute().parent
    while look(parent) is None:
        parent = parent.parent
    if not parent.is_dir() or not os.access(parent, os.W_OK | os.X_OK, effective_ids=_EFFECTIVE):
        raise UsageError.of("file.permission", f"cannot write in {parent}", where=str(target),
                            help="choose another place with -o")
    sweep(target.absolute().parent)
    return target


def refuse_overlap(outputs: Mapping[str, Path | None], inputs: Mapping[str, Path | None],
                   data: Path | None = None) -> None:
    """Refuse a call that would write over what it reads, or write two things to one file.

    ``outputs`` and ``inputs`` are files by what the user calls them, as ``--recipe``; the first input is the model.

    Raises:
        UsageError: it would; says which two are the same.
    """
    written = {name: path for name, path in outputs.items() if path is not None}
    read = {name: path for name, path in inputs.items() if path is not None}
    for number, (name, path) in enumerate(written.items()):
        twin = next((other for other, place in read.items() if same(path, place)), None)
        if twin is not None:
            what = "the model itself" if twin == next(iter(inputs)) else f"what {twin} names"
            raise _same(name, path, f"{path} is {what}, which is never changed")
        twin = next((other for other in list(written)[:number] if same(path, written[other])), None)
        if twin is not None:
            raise _same(name, path, f"{twin} and {name} both name {path}")
        if path.exists() and any(same(path, file) for file in _beside(next(iter(read.values())))):
            raise _same(name, path, f"{path} holds weights of the model, which are never changed")
        if data is not None and _is_sample(path, data):
            raise _same(name, path, f"{path} is one of the samples that --data names, which are never changed")


def _same(name: str, path: Path, headline: str) -> UsageError:
    help = f"choose another name with {name}" if name.startswith("-") else "choose another folder with -o"
    return UsageError.of("file.same", headline, where=str(path), help=help)


def same(one: Path, other: Path) -> bool:
    """True when two paths lead to one file, whether it exists or not."""
    if look(one) is not None and look(other) is not None:
        return os.path.samefile(one, other)
    return os.path.realpath(one) == os.path.realpath(other)


def _beside(model: Path) -> list[Path]:
    return external_files(model) if look(model) is not None and model.is_file() else []


def _is_sample(path: Path, data: Path) -> bool:
    """True for a file that would be read as a sample: ``data`` itself, or one in its folder with a sample's ending.

    Folders of builds are not read, so a build may stand below its data.
    """
    from vitrify.data.reading import KNOWN
    from vitrify.data.samples import RUN_RECORD

    if same(path, data):
        return True
    real, root = Path(os.path.realpath(path)), Path(os.path.realpath(data))
    if path.suffix.lower() not in KNOWN or look(path) is None or not real.is_relative_to(root):
        return False
    between = [folder for folder in real.parents if folder.is_relative_to(root)]
    return not any((folder / RUN_RECORD).exists() for folder in between)


@contextmanager
def staged(target: Path) -> Iterator[Path]:
    """Yield a name beside ``target`` for a file that is checked before it takes the place of ``target``.

    When the block ends well the file is renamed; otherwise it is removed, and what stood at ``target`` stays.
    Findings of errors that speak of the staged name are told with the real one.
    """
    aside = target.parent / f".{short(target.stem)}.{owner()}.part{target.suffix}"
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        yield aside
        take_place(aside, target)
    except VitrifyError as error:
        raise type(error)(_renamed(error, aside, target)) from error
    except OSError as error:
        raise cannot_write(target, error) from error
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


@contextmanager
def called(aside: Path, target: Path) -> Iterator[None]:
    """Let errors of the block name ``target`` where they mean ``aside``, a file that the user never sees.

    Raises:
        VitrifyError: the block's own, renamed.
    """
    try:
        yield
    except VitrifyError as error:
        raise type(error)([rename(finding, aside, target) for finding in error.findings]) from error
