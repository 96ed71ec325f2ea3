"""Tries one draft after another in child processes, and keeps what came of each by the content that was tried."""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import signal
import subprocess
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from vitrify.core.errors import UsageError, VitrifyError
from vitrify.core.files import temporary_folder
from vitrify.core.findings import Finding
from vitrify.core.isolation import Worker
from vitrify.pipeline.quantizing.search.kept import Kept
from vitrify.pipeline.reducing.drafts import Array, Draft
from vitrify.pipeline.reducing.predicates import Verdict, judged, parse

_CHECK = "vitrify.pipeline.reducing.predicates:check_here"
_NO_COMMAND = (126, 127)
_TAIL = 200


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """The failure that is looked for: a predicate, or a command that fails. Limits hold for one try."""

    predicate: str = ""
    command: str = ""
    pattern: str = ""
    seconds: float = 60.0
    memory_bytes: int = 4 << 30

    def check(self) -> None:
        """See to it that one thing is asked for, and that it can be.

        Raises:
            UsageError: it is not.
        """
        if bool(self.predicate) == bool(self.command):
            raise UsageError.of("reduce.what", "give either --fails or --predicate, and not both"
                                if self.command else "nothing says what the failure is",
                                help='--fails "CMD {}" with a command that fails, or --predicate import')
        if self.predicate:
            parse(self.predicate)
        if self.command and "{}" not in self.command:
            raise UsageError.of("reduce.command", "the command has no {} for the model's path", where="--fails",
                                help=f'write it like --fails "{self.command} {{}}"')
        try:
            re.compile(self.pattern)
        except re.error as error:
            raise UsageError.of("reduce.pattern", f"--fails-text is no regular expression: {error}",
                                where="--fails-text", help="to mean ( ) [ ] . * + ? so, write \\ before") from error


class Judge:
    """Says of drafts whether they fail; one that was tried before is not tried again."""

    def __init__(self, asked: Asked, kept: Kept) -> None:
        self.asked, self.kept = asked, kept
        self.signature = ""
        self.tries = self.reused = 0
        self.times = 1
        """How often a model is tried before it is said not to fail."""
        self._worker = Worker("trying a model", memory_bytes=asked.memory_bytes)

    def __call__(self, draft: Draft, inputs: Mapping[str, Array], again: str = "") -> Verdict:
        """Try a draft with values for its inputs; with ``again`` apart from what was tried before."""
        content = draft.data()
        state = hashlib.blake2b(content, digest_size=20)
        for name in sorted(inputs):
            state.update(name.encode() + np.ascontiguousarray(inputs[name]).tobytes())
        key = f"{self.signature}|{again}|{state.hexdigest()}"
        if key in self.kept:
            self.reused += 1
            return msgspec.convert(self.kept[key], Verdict)
        self.tries += 1
        with temporary_folder("reduce") as folder:
            path = folder / f"model{draft.suffix}"
            path.write_bytes(content)
            verdict = self.try_file(path, inputs)
            for _ in range(self.times - 1):
                verdict = verdict if verdict.fails else self.try_file(path, inputs)
        self.kept.add(key, msgspec.to_builtins(verdict))
        return verdict

    def try_file(self, path: Path, inputs: Mapping[str, Array]) -> Verdict:
        """Try a file.

        Raises:
            UsageError: the command cannot be run.
        """
        values = path.with_name("inputs.npz") if inputs else None
        if values is not None and (not values.exists() or path.name.startswith("model")):
            np.savez(values, **inputs)  # type: ignore[arg-type]
        if self.asked.command:
            return self._command(path, values)
        name, arguments = parse(self.asked.predicate)
        try:
            plain = self._worker.call(_CHECK, str(path), str(values or ""), name, arguments, self.signature,
                                      self.asked.pattern, seconds=self.asked.seconds, what=f"trying {path.name}")
        except VitrifyError as error:
            deaths = [f for f in error.findings if f.code in ("process.died", "process.memory")]
            return judged(deaths if name in ("import", "quantize") else [], self.signature, self.asked.pattern)
        return msgspec.convert(plain, Verdict)

    def _command(self, path: Path, values: Path | None) -> Verdict:
        text = self.asked.command.replace("{inputs}", shlex.quote(str(values or "")))
        status, output = run(text.replace("{}", shlex.quote(str(path))), path.parent, self.asked)
        if status is None:
            return Verdict(fails=False, text=f"it took longer than {self.asked.seconds:g} s and was stopped")
        if status in _NO_COMMAND:
            raise UsageError.of("reduce.command", f"the command cannot be run: status {status}", where="--fails",
                                why=output.strip()[-_TAIL:], help="try it by hand on the model")
        tail = next((line for line in reversed(output.splitlines()) if line.strip()), "")[:_TAIL]
        if status == 0 or (self.asked.pattern and not re.search(self.asked.pattern, output)):
            return Verdict(fails=False, text=tail)
        how = f"died of {signal.Signals(-status).name}" if status < 0 else f"ended with status {status}"
        if status > 128 and status - 128 in signal.valid_signals():
            how = f"died of {signal.Signals(status - 128).name}"
        finding = Finding(code="reduce.command", headline=f"the command {how}{f': {tail}' if tail else ''}")
        return Verdict(fails=True, text=finding.headline, code=finding.code)

    def close(self) -> None:
        """End the child."""
        self._worker.close()


def run(text: str, folder: Path, asked: Asked) -> tuple[int | None, str]:
    """Run a command in a shell of its own, within the limits; the status is None when it took too long."""
    def limit() -> None:
        import resource

        resource.setrlimit(resource.RLIMIT_DATA, (asked.memory_bytes, asked.memory_bytes))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    with open(folder / "output.txt", "wb+") as log:
        process: subprocess.Popen[Any] = subprocess.Popen(
            ["/bin/sh", "-c", text], stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
            preexec_fn=limit)
        try:
            status: int | None = process.wait(asked.seconds)
        except subprocess.TimeoutExpired:
            status = None
        finally:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        log.seek(max(0, log.tell() - (1 << 20)))
        return status, log.read().decode("utf-8", "replace")


def expired(deadline: float | None) -> bool:
    """True when the time is over."""
    return deadline is not None and time.monotonic() >= deadline
