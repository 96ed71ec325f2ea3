"""The program `vitrify`: finds the command, runs it, and turns wrong calls into exit status 2."""

from __future__ import annotations

import gc
import os
import signal
import sys
from inspect import cleandoc
from types import FrameType
from typing import NoReturn

from vitrify._version import __version__
from vitrify.cli import running, streams
from vitrify.cli.arguments import Command, Parser, WrongCallError, parse, suggestion
from vitrify.cli.bisect import bisect
from vitrify.cli.build import build
from vitrify.cli.check import check
from vitrify.cli.compile import compile
from vitrify.cli.convert import convert
from vitrify.cli.diff import diff
from vitrify.cli.doctor import doctor
from vitrify.cli.eval import eval
from vitrify.cli.explain import explain
from vitrify.cli.inspect import inspect
from vitrify.cli.measure import measure
from vitrify.cli.profile import profile
from vitrify.cli.quantize import quantize
from vitrify.cli.recipes import recipes
from vitrify.cli.reduce import reduce
from vitrify.cli.run import run
from vitrify.cli.sweep import sweep
from vitrify.cli.targets import targets
from vitrify.cli.trace import trace
from vitrify.cli.verify import verify

COMMANDS: dict[str, Command] = {command.__name__: command for command in (
    build, inspect, convert, quantize, recipes, check, explain, targets, compile, sweep, verify, trace, diff, run, eval,
    doctor, profile, measure, reduce, bisect)}

STATUSES = ("exit status:", "  0         all is well", "  1         the model, the data or the check is not good",
            "  2         the call is wrong, or a file cannot be read or written", "  130       interrupted")

_YOUNG_OBJECTS = 50_000
"""New objects before the garbage collector looks at them: at Python's 700 a conversion spends 8 % of its time there."""


def main() -> NoReturn:
    """Run the program."""
    gc.set_threshold(_YOUNG_OBJECTS)
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")      # small matrices: its threads would only wait for each other
    signal.signal(signal.SIGTERM, _terminated)
    streams.open_missing()
    status = call(sys.argv[1:])
    sys.exit(status if streams.flush() else running.FAILED)


def call(arguments: list[str]) -> int:
    """Run one command line and return its exit status."""
    name = ""
    try:
        name, rest = _split(arguments)
        return parse(name, COMMANDS[name], rest)
    except SystemExit as leaving:      # help or the version has been printed
        return int(leaving.code or running.OK)
    except OSError as error:           # of printing help; commands keep theirs to themselves
        return running.OK if streams.give_up(error) else running.FAILED
    except KeyboardInterrupt:
        return running.INTERRUPTED
    except WrongCallError as error:
        return running.wrong_call(name, str(error), error.usage, json="--json" in arguments)


def _split(arguments: list[str]) -> tuple[str, list[str]]:
    """Return the command's name and the words after it.

    Raises:
        SystemExit: the user asked for help or the version.
        WrongCallError: there is no such command.
    """
    if arguments[:1] == ["help"]:                  # `help convert` is `convert --help`, for those used to it
        arguments = [*arguments[1:2], "--help"]
    if arguments and not arguments[0].startswith("-"):
        name, *rest = arguments
        if name not in COMMANDS:
            raise WrongCallError(f"there is no command {name!r}", _meant(name))
        return name, rest
    parser = Parser("vitrify", "Take a trained model to an embedded NPU and prove every step.")
    parser.usage = "vitrify COMMAND ..."
    rows = (f"  {name:<10}{_summary(command)}" for name, command in COMMANDS.items())
    parser.epilog = "\n".join(["commands:", *rows, "", "`vitrify COMMAND --help` shows the options of a command.", "",
                               *STATUSES])
    parser.add_argument("--version", action="version", version=f"vitrify {__version__}")
    if not arguments:
        parser.print_help()
        raise SystemExit(running.WRONG_CALL)
    parser.parse_args(arguments)
    raise WrongCallError("no command is named", "see `vitrify --help`")


def _meant(word: str) -> str:
    """What the user may have meant by a command that there is not, and where to look."""
    near = suggestion(word, COMMANDS)
    listed = f"the commands are {', '.join(COMMANDS)}; see `vitrify --help`"
    return f"perhaps `vitrify {near}`; {listed}" if near else listed


def _summary(command: Command) -> str:
    return cleandoc(command.__doc__ or "").split("\n\n")[0].replace("\n", " ").rstrip(".")


def _terminated(number: int, frame: FrameType | None) -> NoReturn:
    """End as on Ctrl-C, so that nothing half-written stays behind."""
    raise KeyboardInterrupt


if __name__ == "__main__":
    main()
