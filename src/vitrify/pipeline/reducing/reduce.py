"""`reduce`: a model that fails becomes the smallest model found that fails the same way."""

from __future__ import annotations

import shutil
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from vitrify.core.errors import UsageError
from vitrify.core.files import temporary_folder
from vitrify.core.findings import Finding, Severity
from vitrify.core.hashing import hash_file
from vitrify.core.progress import Reporter, Silent, duration
from vitrify.core.words import counted
from vitrify.pipeline.files import existing
from vitrify.pipeline.options import ConvertOptions, DataOptions
from vitrify.pipeline.quantizing.search.kept import Kept
from vitrify.pipeline.reducing.drafts import Draft, open_draft
from vitrify.pipeline.reducing.judging import Asked, Judge
from vitrify.pipeline.reducing.predicates import Verdict, parse
from vitrify.pipeline.reducing.searching import Best, Search
from vitrify.pipeline.reducing.values import Values, trace
from vitrify.pipeline.reducing.writing import MODEL, repeat_command, write_folder
from vitrify.pipeline.resources import Meter
from vitrify.pipeline.steps import step
from vitrify.pipeline.versions import code, versions
from vitrify.results import ReduceResult

STATE = ".reduce"
"""The folder in the output that keeps what was tried, so that the same call goes on from there."""

VERDICTS, VALUES = "verdicts.jsonl", "values"
DEFAULT_SECONDS = 600.0


def reduce_file(source: Path, output: Path | None, asked: Asked, data: DataOptions = DataOptions(),
                conversion: ConvertOptions = ConvertOptions(), reporter: Reporter | None = None, *,
                seconds: float | None = DEFAULT_SECONDS, seed: int = 0) -> ReduceResult:
    """Reduce ``source`` as long as it fails as ``asked``; what is left stands in the folder ``output``.

    The same call again goes on where it was stopped. An interruption leaves the smallest model so far.

    Raises:
        UsageError: nothing sensible is asked for, or the folder holds something else.
        VitrifyError: the file cannot be read.
    """
    existing(source)
    asked.check()
    data.check()
    shown = reporter or Silent()
    folder = output or Path(f"{source.stem}_reduced")
    fresh = _require_room(folder)
    work = _Reduction(source, folder, asked, data, conversion, shown, seconds, seed)
    try:
        return work.run()
    except BaseException:
        if fresh and not work.is_written:
            shutil.rmtree(folder / STATE, ignore_errors=True)
            if folder.is_dir() and not any(folder.iterdir()):
                folder.rmdir()
        raise
    finally:
        work.close()


def reduce_failure(source: Path, folder: Path, predicate: str, *, inputs: Mapping[str, Any] | None = None,
                   seconds: float = 120.0, seed: int = 0, reporter: Reporter | None = None) -> ReduceResult:
    """Write the smallest reproduction of a failure to ``folder``, for what finds failures of its own.

        reduce_failure(int8_file, folder / "smallest", "miscompiled:imx93", seconds=60)

    Args:
        source: the model that fails: for a compiled file that is wrong, the int8 file that it was made from.
        folder: is made, or goes on where it was stopped.
        predicate: one of ``predicates.PREDICATES``, with its arguments.
        inputs: values for the source's inputs; None: random ones.
        seconds: the time that the search may take; the smallest model so far is written then.
        seed: of random weights and values.
        reporter: is told of the steps.

    Returns:
        What is left; ``ok`` is false, with nothing written, where the model does not fail in the end.
    """
    with temporary_folder("reduce") as work:
        data = DataOptions()
        if inputs:
            np.savez(work / "sample.npz", **inputs)
            data = DataOptions(path=work / "sample.npz")
        return reduce_file(source, folder, Asked(predicate=predicate), data, reporter=reporter, seconds=seconds,
                           seed=seed)


def try_once(source: Path, asked: Asked, data: Path | None, reporter: Reporter | None = None) -> ReduceResult:
    """Say whether a model fails, as the README of a reduced one asks for; ``ok`` is that it does."""
    meter = Meter()
    existing(source)
    asked.check()
    inputs = dict(np.load(data)) if data is not None and data.suffix == ".npz" else {}
    judge = Judge(asked, Kept(None, ""))
    try:
        with step(reporter or Silent(), "try") as note, temporary_folder("reduce") as folder:
            path = folder / f"{MODEL}{source.suffix}"
            shutil.copyfile(source, path)
            verdict = judge.try_file(path, inputs)
            note.text = "it fails" if verdict.fails else "it does not fail"
    finally:
        judge.close()
    told = Finding(code="reduce.repeated", severity=Severity.INFO, where=str(source),
                   headline=f"the failure is there: {verdict.text}")
    return ReduceResult(model=str(source), reason=verdict.text, code=verdict.code, ok=verdict.fails, tries=1,
                        confirmed=verdict.fails, seconds=meter.seconds,
                        findings=[told] if verdict.fails else [_nothing(source, verdict)])


class _Reduction:
    """One reduction on its way."""

    def __init__(self, source: Path, folder: Path, asked: Asked, data: DataOptions, conversion: ConvertOptions,
                 shown: Reporter, seconds: float | None, seed: int) -> None:
        self.source, self.folder, self.asked, self.data = source, folder, asked, data
        self.conversion, self.shown, self.seconds, self.seed = conversion, shown, seconds, seed
        self.meter, self.began = Meter(), time.monotonic()
        self.is_written = False
        self.findings: list[Finding] = []
        self.judge: Judge | None = None

    def close(self) -> None:
        """End the children, and forget values that can be computed again."""
        if self.judge is not None:
            self.judge.close()
        shutil.rmtree(self.folder / STATE / VALUES, ignore_errors=True)

    def run(self) -> ReduceResult:
        with step(self.shown, "open") as note:
            draft = open_draft(self.source, self.conversion.sizes)
            count = len(draft.nodes)
            note.text = counted(count, "node")
        (self.folder / STATE).mkdir(parents=True, exist_ok=True)
        self.judge = judge = Judge(self.asked, Kept(self.folder / STATE / VERDICTS, self._key()))
        values = self._values()
        with step(self.shown, "try") as note:
            best = self._first(draft, values, judge)
            note.text = best.verdict.text if best.verdict.fails else "it does not fail"
        if not best.verdict.fails:
            return self._without(best.verdict)
        judge.signature = best.verdict.signature
        deadline = None if self.seconds is None else self.began + self.seconds
        search = Search(judge, values, best, self.seed, deadline, self._tell)
        try:
            with step(self.shown, "reduce") as note:
                finished = search.run()
                note.text = f"{counted(count, 'node')} -> {len(search.draft.nodes)}"
        except KeyboardInterrupt:
            self._write(search, values, count, finished=False)
            raise KeyboardInterrupt(f"the smallest model so far, of {counted(len(search.draft.nodes), 'node')}, is in "
                                    f"{self.folder}; the same call goes on from there") from None
        return self._write(search, values, count, finished)

    def _tell(self, text: str, tries: int) -> None:
        limit = self.seconds
        done = 0 if limit is None else int(time.monotonic() - self.began)
        self.shown.advance(done, 0 if limit is None else int(limit))

    def _key(self) -> Any:
        samples = "" if self.data.path is None or not self.data.path.is_file() else hash_file(self.data.path)
        return [hash_file(self.source), msgspec.to_builtins(self.asked), str(self.data.path or ""), samples, self.seed,
                msgspec.to_builtins(self.conversion), versions(), code()]

    def _values(self) -> Values:
        """Values for inputs, where what is asked for looks at any."""
        name = parse(self.asked.predicate)[0] if self.asked.predicate else ""
        if name != "sqnr" and "{inputs}" not in self.asked.command:
            values = Values(None, {}, self.seed, True)
            values.is_needed = False
            return values
        with step(self.shown, "run") as note:
            values = trace(self.source, self.folder / STATE / VALUES, self.data, self.conversion, self.seed)
            note.text = "values are made up: nothing runs the model" if not values.is_traced else "values are kept"
        return values

    def _first(self, draft: Draft, values: Values, judge: Judge) -> Best:
        """Try the whole model twice; a model that only fails as it stands, and not written anew, cannot be reduced."""
        inputs = values.of(draft)
        first, second = judge(draft, inputs, "first"), judge(draft, inputs, "second")
        if first.fails and second.fails and first.signature != second.signature:
            self.findings.append(self._flaky("in one way and in another"))
        elif first.fails != second.fails:
            self.findings.append(self._flaky("only now and then: one time of two"))
        judge.times = 3 if self.findings else 1
        return Best(draft=draft, inputs=inputs, verdict=first if first.fails else second)

    def _flaky(self, how: str) -> Finding:
        return Finding(code="reduce.flaky", severity=Severity.WARNING, where=str(self.source),
                       headline=f"the model fails {how}",
                       why="each smaller model is tried up to three times, and counts as failing when one try fails",
                       help="a check that gives the same answer each time is quicker and reduces further")

    def _without(self, verdict: Verdict) -> ReduceResult:
        """There is nothing to reduce."""
        assert self.judge is not None
        with temporary_folder("reduce") as folder:
            path = folder / f"whole{self.source.suffix}"
            shutil.copyfile(self.source, path)
            whole = self.judge.try_file(path, {})
        finding = _nothing(self.source, verdict)
        if whole.fails:
            finding = Finding(code="reduce.rewritten", where=str(self.source),
                              headline="the failure goes away when the file is written anew with the same nodes",
                              why=f"the file as it is: {whole.text}",
                              help="look at what only the file holds: unused buffers, metadata, its size")
        shutil.rmtree(self.folder / STATE, ignore_errors=True)
        if not any(self.folder.iterdir()):
            self.folder.rmdir()
        return ReduceResult(model=str(self.source), ok=False, tries=self.judge.tries, seconds=self.meter.seconds,
                            findings=[*self.findings, finding])

    def _write(self, search: Search, values: Values, count: int, finished: bool) -> ReduceResult:
        judge, draft, verdict = search.judge, search.draft, search.best.verdict
        inputs = search.best.inputs or values.drawn(draft)
        left = set(draft.weights)
        code_ = verdict.code if verdict.code else ""
        result = ReduceResult(
            model=str(self.source), output=str(self.folder), file=str(self.folder / f"{MODEL}{draft.suffix}"),
            reason=verdict.text, code=code_, repeat=repeat_command(self.asked, draft.suffix, code_),
            operators=[view.kind for view in draft.nodes], names={v.name: v.source for v in draft.inputs},
            nodes_before=count, nodes_after=len(draft.nodes), bytes_before=self.source.stat().st_size,
            bytes_after=len(draft.data()), steps=search.steps, tries=judge.tries, reused=judge.reused,
            kept_weights=sorted(search.kept_weights(left)), kept_inputs=search.has_user_values,
            finished=finished, findings=list(self.findings))
        write_folder(self.folder, draft, inputs, result)
        self.is_written = True
        with step(self.shown, "repeat") as note, temporary_folder("reduce") as fresh:
            path = Path(shutil.copyfile(result.file, fresh / f"{MODEL}{draft.suffix}"))
            again = judge.try_file(path, inputs if search.best.inputs else {})
            result.confirmed = again.fails
            note.text = "it fails in a fresh folder, too" if again.fails else "it does not fail any more"
        if not again.fails:
            result.findings.append(Finding(
                code="reduce.unconfirmed", severity=Severity.WARNING, where=result.file,
                headline="tried once more in a fresh folder, the reduced model does not fail",
                help="try it several times; what fails now and then cannot be reduced well"))
        if not finished:
            result.findings.append(Finding(
                code="reduce.stopped", severity=Severity.INFO, where=str(self.folder),
                headline=f"the search was stopped after {duration(time.monotonic() - self.began)}; a smaller model may "
                         "fail, too", help="the same call goes on from there; --seconds gives it more time"))
        result.seconds = self.meter.seconds
        return result


def _nothing(source: Path, verdict: Verdict) -> Finding:
    return Finding(code="reduce.nothing", where=str(source), headline="the model does not fail: nothing to reduce",
                   why=f"what it gave instead: {verdict.text}" if verdict.text else "",
                   help="try the command on the whole model first, and look at its exit status")


def _require_room(folder: Path) -> bool:
    """See to it that the folder is new, empty or one of an earlier reduction; True when there is nothing yet.

    Raises:
        UsageError: it is not.
    """
    if folder.exists() and not folder.is_dir():
        raise UsageError.of("reduce.folder", f"{folder} is a file, not a folder", where="-o",
                            help="name a new folder")
    if not folder.is_dir() or not any(folder.iterdir()):
        return True
    if not (folder / STATE).is_dir():
        raise UsageError.of("reduce.folder", f"{folder} holds files already, and none of a reduction",
                            where=str(folder), help="name a new folder with -o")
    return False

