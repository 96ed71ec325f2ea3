"""The program `vitrify`: gathers the commands and turns wrong calls into exit status 2."""

from __future__ import annotations

import signal
import sys
from types import FrameType
from typing import Annotated, NoReturn, cast

import typer

from vitrify._version import __version__
from vitrify.cli import build, check, compile, convert, inspect, quantize, running, verify

app = typer.Typer(name="vitrify", no_args_is_help=True, add_completion=False, rich_markup_mode=None,
                  pretty_exceptions_enable=False, context_settings={"help_option_names": ["-h", "--help"]})
for command in (build, inspect, convert, quantize, check, compile, verify):
    command.register(app)


# The parser's base of all complaints about a call; it stands in different modules in different releases of typer.
_WRONG_CALL = cast(type[Exception], typer.BadParameter.__mro__[2])


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"vitrify {__version__}")
        raise typer.Exit


@app.callback()
def _root(version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True,
                                                help="Show the version and exit.")] = False) -> None:
    """Take a trained model to an embedded NPU and prove every step."""


def main() -> NoReturn:
    """Run the program."""
    signal.signal(signal.SIGTERM, _terminated)
    sys.exit(call(sys.argv[1:]))


def call(arguments: list[str]) -> int:
    """Run one command line and return its exit status."""
    try:
        status = app(arguments, standalone_mode=False, prog_name="vitrify")
        return status if isinstance(status, int) else running.OK
    except typer.Exit as leaving:
        return leaving.exit_code
    except (typer.Abort, KeyboardInterrupt):
        return running.INTERRUPTED
    except _WRONG_CALL as error:
        return _refuse(error, arguments)


def _refuse(error: BaseException, arguments: list[str]) -> int:
    context = getattr(error, "ctx", None)
    message = error.format_message() if hasattr(error, "format_message") else str(error)
    if context is None:
        return running.wrong_call("", message, "vitrify --help", json="--json" in arguments)
    if not arguments and context.info_name == "vitrify":
        typer.echo(context.get_help())
        return running.WRONG_CALL
    name = context.info_name if context.parent is not None else ""
    return running.wrong_call(name, message, f"see `{context.command_path} --help`", json="--json" in arguments)


def _terminated(number: int, frame: FrameType | None) -> NoReturn:
    """End as on Ctrl-C, so that nothing half-written stays behind."""
    raise KeyboardInterrupt


if __name__ == "__main__":
    main()
