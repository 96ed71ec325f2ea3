"""Command streams on the terminal: a block of lines for each command that acts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vitrify.results.streams import CommandBlock, StreamRow

if TYPE_CHECKING:
    from rich.console import Console


def show_streams(streams: list[StreamRow], out: Console) -> None:
    """Print every stream, plainly: names may hold what the console takes for marks."""
    for stream in streams:
        _line(out, f"stream {stream.number}: {stream.accelerator or 'unknown'}, {stream.bytes:,} bytes, "
                   f"{stream.commands:,} commands")
        for block in stream.blocks:
            _block(block, out)
        if stream.fault:
            _line(out, f"  the stream ends here: {stream.fault}")


def _block(block: CommandBlock, out: Console) -> None:
    names = f"  {block.operator} '{block.node}'" if block.node else ""
    made = f" -> '{block.tensor}'" if block.tensor else ""
    word = f" ({block.scheduled})" if block.scheduled else ""
    _line(out, f"{block.offset:#08x}  {block.operation}{word}{names}{made}")
    for subject, words in block.details.items():
        _line(out, f"            {subject:<12} {words}")
    for register, value in block.changed.items():
        _line(out, f"              {register:<20} {value:#x}")


def _line(out: Console, text: str) -> None:
    out.print(text, markup=False, highlight=False, soft_wrap=True)
