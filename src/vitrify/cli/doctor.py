"""`vitrify doctor`: whether this machine, or a board, has what is needed, in versions that fit together."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

from vitrify.cli import options as o
from vitrify.cli.arguments import Option
from vitrify.cli.running import run_command
from vitrify.core.errors import UsageError
from vitrify.core.progress import Reporter
from vitrify.results import Result

BoardOption = Annotated[str, Option(
    "--board", metavar="[USER@]HOST[:PORT]", help="Ask this board over SSH; user root when none is named. A password "
                                                  "is taken from VITRIFY_BOARD_PASSWORD.")]
FromFileOption = Annotated[Path | None, Option(
    "--from-file", metavar="FILE", help="Judge a board by what the probe printed there.", is_file=True)]
PrintProbeOption = Annotated[bool, Option(
    "--print-probe", help="Print the script to run on a board; it only reads, and needs nothing but BusyBox.")]
IdentityOption = Annotated[Path | None, Option(
    "--identity", metavar="FILE", help="The private key to log in with [default: those of ~/.ssh and of the agent].")]
KnownHostsOption = Annotated[Path | None, Option(
    "--known-hosts", metavar="FILE", help="The host keys to trust [default: ~/.ssh/known_hosts].")]
BoardTargetOption = Annotated[str, Option(
    "--target", metavar="NAME", help="The chip that the board should have [default: as it says].")]
BoardModelOption = Annotated[Path | None, Option(
    "--model", metavar="FILE", help="The compiled model that is to run on it.", is_file=True)]
CompiledWithOption = Annotated[str, Option(
    "--compiled-with", metavar="VERSION", help="The version of the compiler that made the model, where it does not "
                                               "say it itself.")]


def doctor(board: BoardOption = "", from_file: FromFileOption = None, print_probe: PrintProbeOption = False,
           target: BoardTargetOption = "", model: BoardModelOption = None, compiled_with: CompiledWithOption = "",
           identity: IdentityOption = None, known_hosts: KnownHostsOption = None, json: o.JsonOption = False,
           quiet: o.QuietOption = False) -> int:
    """Say what is installed here, or on a board, and what does not fit together.

    Without --board and --from-file: this machine. With one of them: which compiler version fits the board, which parts
    are missing or of another release, what that causes, and what to do.
    """

    def work(reporter: Reporter) -> Result:
        from vitrify.pipeline import doctor as made

        _one_of(bool(board), from_file is not None, print_probe)
        asked = made.Questions(target, model, compiled_with)
        if print_probe:
            return made.print_probe()
        if from_file is not None:
            return made.examine_file(from_file, asked)
        if board:
            from vitrify.boards.login import PASSWORD, read_address

            login = read_address(board, identity, known_hosts, os.environ.get(PASSWORD))
            return made.examine_board(login, asked, reporter)
        if any(asked):
            raise UsageError.of("call.doctor", "--target, --model and --compiled-with are about a board",
                                help="name it with --board HOST, or give its probe's answer with --from-file FILE")
        return made.examine_here()

    return run_command("doctor", work, json=json, quiet=quiet)


def _one_of(*given: bool) -> None:
    if sum(given) > 1:
        raise UsageError.of("call.doctor", "--board, --from-file and --print-probe exclude each other")
