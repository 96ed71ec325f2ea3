"""Commands from functions: the annotations of a function's parameters become its command line.

    def convert(model: Annotated[Path, Argument("MODEL", "The model's file.")],
                quiet: Annotated[bool, Option("-q", "--quiet", help="Show no progress.")] = False) -> int:
        '''Convert a model.'''

Made of argparse, since every start of the program pays for what stands here: typer and what it brings takes 0.2 s.
"""

from __future__ import annotations

import argparse
import math
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import Enum
from inspect import cleandoc, signature
from pathlib import Path
from typing import Annotated, Any, NamedTuple, NoReturn, get_args, get_origin, get_type_hints

Command = Callable[..., int]


class Argument(NamedTuple):
    """A word that stands by its place; a list takes all there are, at least one. One with a default may be left out."""

    metavar: str
    help: str


class Option:
    """A word with a name. A parameter that is a bool is a flag, one that is a list may be given again and again."""

    def __init__(self, *names: str, help: str, metavar: str | None = None, min: float | None = None,
                 is_file: bool = False) -> None:
        self.names = names
        self.help = help
        self.metavar = metavar
        self.min = min
        self.is_file = is_file


class WrongCallError(Exception):
    """The call itself is wrong; ``usage`` is what to look at."""

    def __init__(self, message: str, usage: str) -> None:
        super().__init__(message)
        self.usage = usage


class Parser(argparse.ArgumentParser):
    """Raises where argparse would print and leave the program."""

    def __init__(self, program: str, description: str) -> None:
        super().__init__(prog=program, description=description, allow_abbrev=False, formatter_class=_Formatter)
        self.valued: set[str] = set()
        """The long names of the options that take a value."""

    def _print_message(self, message: str, file: Any = None) -> None:
        """Let the program see what goes wrong in writing, which argparse hides."""
        (file or sys.stdout).write(message)

    def error(self, message: str) -> NoReturn:
        """Say what is wrong with the call."""
        mark, _, words = message.partition("unrecognized arguments: ")
        known = [name for name in self._option_string_actions if name.startswith("--")]
        near = "" if mark or not words.startswith("--") else suggestion(words.split()[0].partition("=")[0], known)
        raise WrongCallError(message, f"{f'perhaps {near}; ' if near else ''}see `{self.prog} --help`")


def suggestion(word: str, known: Iterable[str]) -> str:
    """Return the known word that was probably meant, or nothing."""
    from difflib import get_close_matches

    words = list(known)
    begun = [name for name in words if word.strip("-") and name.startswith(word.lower())]
    return next(iter(begun or get_close_matches(word.lower(), words, n=1)), "")


class _Formatter(argparse.RawDescriptionHelpFormatter):
    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=32)


def parser_of(name: str, function: Command) -> Parser:
    """Return the parser of a command."""
    parser = Parser(f"vitrify {name}", cleandoc(function.__doc__ or ""))
    hints = get_type_hints(function, include_extras=True)
    for parameter in signature(function).parameters.values():
        kind, declared = _declaration(hints[parameter.name])
        if isinstance(declared, Argument):
            spared = parameter.default is not parameter.empty
            parser.add_argument(parameter.name, metavar=declared.metavar, help=declared.help, type=_reader(kind),
                                nargs="+" if get_origin(kind) is list else "?" if spared else None,
                                default=_spared(parameter.default) if spared else None)
            shown = f"[{declared.metavar}]" if spared else declared.metavar
            before = parser.usage or f"{parser.prog} [options]"
            parser.usage = f"{before} {shown}{' ...' * (get_origin(kind) is list)}"
        else:
            _add_option(parser, parameter.name, kind, declared, parameter.default)
    return parser


def parse(name: str, function: Command, words: Sequence[str]) -> int:
    """Read the words after a command's name and run it.

    Raises:
        WrongCallError: they do not fit.
        SystemExit: help was asked for and has been printed.
    """
    parser = parser_of(name, function)
    return function(**vars(parser.parse_intermixed_args(list(_joined(words, parser.valued)))))


def _joined(words: Sequence[str], valued: set[str]) -> Iterator[str]:
    """Yield the words as argparse takes them rightly: it holds ``-1,-1`` for an option, and stumbles over ``--``."""
    waiting = iter(words)
    for word in waiting:
        if word == "--":             # what follows are files, also when they look like options
            yield from (f"./{name}" if name.startswith("-") else name for name in waiting)
            return
        value = next(waiting, None) if word in valued else None
        if value is not None and re.match(r"-[\d.]", value):
            yield f"{word}={value}"
        else:
            yield from (word,) if value is None else (word, value)


def _declaration(hint: Any) -> tuple[Any, Argument | Option]:
    assert get_origin(hint) is Annotated, hint
    kind, declared = get_args(hint)
    plain = [part for part in get_args(kind) if part is not type(None)]
    optional = type(None) in get_args(kind)
    return (plain[0] if optional else kind), declared


def _add_option(parser: Parser, name: str, kind: Any, option: Option, default: Any) -> None:
    required = default is signature(_add_option).empty
    shown = option.help
    if default != "" and isinstance(default, (str, int, Enum)) and not isinstance(default, bool):
        shown += f" [default: {default.value if isinstance(default, Enum) else default}]"
    if required:
        shown += " [required]"
    if kind is bool:
        parser.add_argument(*option.names, dest=name, action="store_true", help=shown)
        return
    parser.valued |= {name for name in option.names if name.startswith("--")}
    more: dict[str, Any] = {"action": "append"} if get_origin(kind) is list else {"action": _Once}
    metavar = option.metavar
    if metavar is None:
        choices = isinstance(kind, type) and issubclass(kind, Enum)
        metavar = f"<{'|'.join(member.value for member in kind)}>" if choices else "N"
    parser.add_argument(*option.names, dest=name, metavar=metavar, help=shown.replace("%", "%%"), required=required,
                        type=_reader(kind, option.min, option.is_file),
                        default=[] if get_origin(kind) is list else None if required else _spared(default), **more)


class _Once(argparse.Action):
    """Stores a value, and refuses a second one, which would silently take the place of the first."""

    given = False

    def __call__(self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any,
                 option_string: str | None = None) -> None:
        if self.given:
            raise argparse.ArgumentError(self, "given twice")
        self.given = True
        setattr(namespace, self.dest, values)


def _spared(default: Any) -> Any:
    """The default of what may be left out: the function's own where it is an empty word, which none may write."""
    return argparse.SUPPRESS if default == "" else default


def _reader(kind: Any, least: float | None = None, is_file: bool = False) -> Callable[[str], Any]:
    """Return what makes a value of a word."""
    if get_origin(kind) is list:
        kind = get_args(kind)[0]
    if kind is int:
        return _integer(least)
    if kind is float:
        return _number(least)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return _choice(kind)
    if kind is Path:
        return _file if is_file else _path
    assert kind is str, kind
    return _word


def _word(word: str) -> str:
    if not word:
        raise argparse.ArgumentTypeError("an empty word says nothing")
    return word


def _path(word: str) -> Path:
    if not word:
        raise argparse.ArgumentTypeError("an empty word names no file")
    return Path(word)


def _file(word: str) -> Path:
    if word.endswith(("/", "/.")):
        raise argparse.ArgumentTypeError(f"{word} names a folder; name a file in it")
    if word == "-":
        raise argparse.ArgumentTypeError("- names no file, and standard output takes none; name a file")
    return _path(word)


def _integer(least: float | None) -> Callable[[str], int]:
    def read(word: str) -> int:
        try:
            value = int(word)
        except ValueError:
            raise argparse.ArgumentTypeError(f"{word!r} is no whole number") from None
        if least is not None and value < least:
            raise argparse.ArgumentTypeError(f"{value} is less than {least:g}")
        return value

    return read


def _number(least: float | None) -> Callable[[str], float]:
    def read(word: str) -> float:
        try:
            value = float(word)
        except ValueError:
            raise argparse.ArgumentTypeError(f"{word!r} is no number") from None
        if not math.isfinite(value):
            raise argparse.ArgumentTypeError(f"{word!r} is no finite number")
        if least is not None and value < least:
            raise argparse.ArgumentTypeError(f"{word} is less than {least:g}")
        return value

    return read


def _choice(kind: type[Enum]) -> Callable[[str], Enum]:
    def read(word: str) -> Enum:
        try:
            return kind(word)
        except ValueError:
            raise argparse.ArgumentTypeError(
                f"{word!r} is not one of {', '.join(member.value for member in kind)}") from None

    return read
