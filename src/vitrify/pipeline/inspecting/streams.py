"""`inspect --commands`: the command streams of a file that Vela compiled, in words."""

from __future__ import annotations

from pathlib import Path

from vitrify.core.errors import UsageError
from vitrify.core.findings import Finding, Severity
from vitrify.core.words import counted
from vitrify.pipeline.files import existing
from vitrify.pipeline.steps import is_tflite
from vitrify.results import InspectResult
from vitrify.results.streams import StreamRow


def inspect_commands(path: Path, *, registers: bool = False) -> InspectResult:
    """Take the command streams of a compiled file apart; a damaged one up to its fault, which is an error.

    ``registers``: keep what each command finds changed.

    Raises:
        UsageError: the file has no command stream that is known.
        ModelError: the file itself is damaged.
    """
    from vitrify.runtimes.npusim.disassembly import disassemble
    from vitrify.runtimes.opening import ETHOS_U, compiled_for

    existing(path)
    if not is_tflite(path) or compiled_for(path) != ETHOS_U:
        raise UsageError.of("inspect.commands", f"{path} holds no command stream of an Ethos-U", where=str(path),
                            help=f"compile a model first: vitrify compile MODEL --target imx93; without --commands, "
                                 f"`vitrify inspect {path}` says what the file is")
    streams = list(disassemble(path))
    if not registers:
        for block in (block for stream in streams for block in stream.blocks):
            block.changed = {}
    findings = [_fault(stream, path) for stream in streams if stream.fault]
    blocks = sum(len(stream.blocks) for stream in streams)
    return InspectResult(file=str(path), format="tflite", kind="compiled", bytes=path.stat().st_size, streams=streams,
                         npu_graphs=len(streams), findings=findings, ok=not findings,
                         summary=f"{counted(len(streams), 'command stream')}, {counted(blocks, 'operation')}")


def _fault(stream: StreamRow, path: Path) -> Finding:
    code, _, headline = stream.fault.partition(": ")
    return Finding(code=code, severity=Severity.ERROR, headline=f"stream {stream.number}: {headline}", where=str(path),
                   why=f"{len(stream.blocks)} operations stand before it")
