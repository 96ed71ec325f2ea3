"""`doctor` of a board: over SSH, or from what its probe printed; held against the tables, a model and what is here."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from vitrify.boards import Facts, Judged, Table, judge, probe_script, read_probe, table_of, tables
from vitrify.boards.facts import version_in
from vitrify.boards.judging import judge_compiler
from vitrify.boards.login import Login
from vitrify.core.errors import DataError, TargetError, UsageError
from vitrify.core.findings import Finding, Severity
from vitrify.core.progress import Reporter
from vitrify.core.words import bytes_text, shell
from vitrify.pipeline.doctor.model import made_by, size_of
from vitrify.results import BoardRow, DoctorResult, PartRow

PROBE_SECONDS = 30.0
LARGEST_FILE = 16 << 20
_MAKERS = {"ethos-u": "imx93", "NeutronGraph": "imx95"}


class Questions(NamedTuple):
    """What is asked of a board besides: is it this target, does this model run on it, made by that version?"""

    target: str = ""
    model: Path | None = None
    compiled_with: str = ""


def print_probe() -> DoctorResult:
    """Return the script that runs on a board."""
    return DoctorResult(probe=probe_script())


def examine_board(login: Login, questions: Questions, reporter: Reporter) -> DoctorResult:
    """Ask a board over SSH and judge it.

    Raises:
        TargetError: it cannot be reached, or does not answer as a board does.
        UsageError: a question is wrong.
    """
    from vitrify.boards.ssh import connect

    _check(questions)
    reporter.stage(f"asking {login.shown}")
    with connect(login) as board:
        ran = board.run(["sh", "-s"], given=probe_script().encode(), seconds=PROBE_SECONDS)
    facts = read_probe(ran.text)
    if "probe" not in facts.told:
        said = " ".join((ran.text + ran.errors.decode("utf-8", "replace")).split())[:200]
        raise TargetError.of("doctor.no-answer", f"{login.shown} ran the probe, but did not answer as a board does",
                             where=login.shown, why=f"it said: {said}" if said else "it said nothing",
                             help=f"look whether `ssh {login.user}@{login.host} sh -c true` works there")
    return examine(facts, BoardRow(address=login.shown), questions)


def examine_file(path: Path, questions: Questions) -> DoctorResult:
    """Judge a board by what its probe printed.

    Raises:
        DataError: the file holds no answer of the probe.
        UsageError: it cannot be read, or a question is wrong.
    """
    _check(questions)
    size_of(path)
    with path.open("rb") as stream:
        text = _decoded(stream.read(LARGEST_FILE))
    facts = read_probe(text)
    if not facts.told:
        raise DataError.of("doctor.no-probe", f"{path} holds nothing that the probe prints", where=str(path),
                           help="`vitrify doctor --print-probe > probe.sh`, on the board `sh probe.sh > board.txt`, "
                                "then `vitrify doctor --from-file board.txt`")
    return examine(facts, BoardRow(file=str(path)), questions)


def examine(facts: Facts, row: BoardRow, questions: Questions) -> DoctorResult:
    """Judge a board by its facts."""
    table, findings = _table(facts, questions)
    row.told, row.whole = facts.told, facts.whole
    row.kernel = facts.text("kernel")
    row.system = facts.text("os.PRETTY_NAME") or facts.text("os.NAME")
    result = DoctorResult(board=row, findings=[*_partial(facts, row), *findings])
    if table is not None:
        judged = judge(facts, table)
        row.target, row.title, row.release, row.exact = table.target, table.title, judged.row.release, judged.exact
        row.source = judged.row.source
        row.compiler = table.compiler.title if table.compiler else ""
        row.compiler_version = table.compiler_of(judged.row)
        result.parts = [PartRow(name=p.name, found=p.found, fits=p.fits, state=p.state) for p in judged.parts]
        result.findings += judged.findings
        result.findings += _model(facts, table, judged, questions) if questions.model else _here(table, judged,
                                                                                                 questions)
    result.ok = not any(finding.severity is Severity.ERROR for finding in result.findings)
    return result


def _check(questions: Questions) -> None:
    """Refuse a target that there is not before anything is asked of a board."""
    from vitrify.targets import base as targets

    if questions.compiled_with and not version_in(questions.compiled_with):
        raise UsageError.of("call.version", f"--compiled-with {questions.compiled_with!r} is no version",
                            where="--compiled-with", help="write it like --compiled-with 3.12.0")
    if questions.model is not None:
        size_of(questions.model)
    known = {*targets.names(), *tables()}
    if questions.target and questions.target not in known:
        raise UsageError.of("target.unknown", f"unknown target '{questions.target}'",
                            help=f"use one of: {', '.join(sorted(known))}")


def _decoded(data: bytes) -> str:
    """Text of a terminal's log in any of the usual encodings."""
    for mark, encoding in ((b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"), (b"\xef\xbb\xbf", "utf-8-sig")):
        if data.startswith(mark):
            return data.decode(encoding, "replace")
    return data.decode("utf-8", "replace")


def _partial(facts: Facts, row: BoardRow) -> list[Finding]:
    if facts.whole:
        return []
    lost = "its end is missing" if facts.missing is None else f"{facts.missing} facts of it are missing"
    return [Finding(code="doctor.partial", severity=Severity.WARNING, where=row.file or row.address,
                    headline=f"the probe's answer is not whole: {lost}",
                    why="what is not told is not judged: a part that is missing on the board may be among it",
                    help="run it again as `sh probe.sh > board.txt` and copy the file")]


def _table(facts: Facts, questions: Questions) -> tuple[Table | None, list[Finding]]:
    """The table to judge by, and what is to be said of the chip."""
    own, wanted = table_of(facts), questions.target
    chip = facts.text("soc.soc_id") or facts.text("dt.model") or facts.text("dt.compatible")
    if own is not None and wanted and own.target != wanted:
        return own, [Finding(code="doctor.other-chip", headline=f"the board is an {own.title}, not {wanted}",
                             where=f"chip {chip}", why="a file that is compiled for another NPU does not run",
                             help=f"use --target {own.target}")]
    if own is not None:
        return own, []
    table = tables().get(wanted)
    told = f"the board's chip '{chip}' is none that we know" if chip else "the board does not tell its chip"
    if table is not None:
        return table, [Finding(code="doctor.chip-unknown", severity=Severity.WARNING, where="/sys/devices/soc0",
                               headline=f"{told}; it is judged as {table.title}, as asked")]
    return None, [Finding(code="doctor.chip-unknown", where="/sys/devices/soc0", headline=f"{told}; it is not judged",
                          why=f"there are tables for {', '.join(t.title for t in tables().values())}",
                          help=f"if it is one of them, say which: --target {', '.join(tables())}")]


def _model(facts: Facts, table: Table, judged: Judged, questions: Questions) -> list[Finding]:
    """Whether a file that is about to be deployed fits the board."""
    path = questions.model
    assert path is not None
    made = made_by(path)
    findings = []
    free = facts.kilobytes("memory.CmaFree")
    if free is not None and made.bytes > free:
        findings.append(Finding(
            code="doctor.model-size", severity=Severity.WARNING, where=str(path),
            headline=f"the file has {bytes_text(made.bytes)}; {bytes_text(free)} of contiguous memory are free",
            why="an NPU's constants and buffers are held in contiguous memory (inferred from the drivers' sources)",
            help="close what uses the camera or the display, or reserve more: cma=960M on the kernel's command line"))
    if not made.kinds:
        return [*findings, _not_compiled(path, table)]
    wrong = [kind for kind in made.kinds if _MAKERS[kind] != table.target]
    if wrong:
        return [*findings, Finding(
            code="doctor.model-other-chip", where=str(path),
            headline=f"the file holds operators '{', '.join(sorted(wrong))}' for another chip than {table.title}",
            why="its runtime does not know them, and the model does not start",
            help=f"compile the INT8 file for it: vitrify compile MODEL --target {table.target} -o OUT")]
    version = version_in(questions.compiled_with) or made.version
    if not version:
        fits = table.compiler_of(judged.row)
        name = table.compiler.title if table.compiler else "the compiler"
        return [*findings, Finding(
            code="doctor.model-version", severity=Severity.WARNING, where=str(path),
            headline=f"{path.name} does not say which {name} made it"
                     + (f"; {judged.row.release} has {fits}" if fits else ""),
            why="Vela's newer core and the Neutron converter write no version that we can read",
            help="say it with --compiled-with VERSION")]
    return [*findings, *_version(version, table, judged, f"{path.name} was compiled with")]


def _not_compiled(path: Path, table: Table) -> Finding:
    if table.compiler is None:
        return Finding(code="doctor.model-plain", severity=Severity.INFO, where=str(path),
                       headline=f"{path.name} is not compiled, as it has to be: the board's driver compiles it")
    online = " (its delegate can compile on the board too, which takes long at each start)" \
        if table.target == "imx93" else ""
    return Finding(code="doctor.model-plain", severity=Severity.WARNING, where=str(path),
                   headline=f"{path.name} is not compiled for an NPU: it runs on the board's CPU{online}",
                   help=f"vitrify compile {shell(path)} --target {table.target} -o OUT")


def _version(version: str, table: Table, judged: Judged, what: str) -> list[Finding]:
    """A compiler's version against the board's; only for a release that is known."""
    if not judged.exact or not table.compiler:
        return []
    if not table.compiler_of(judged.row):
        return [Finding(code="doctor.compiler-unknown", severity=Severity.WARNING, where=judged.row.release,
                        headline=f"which {table.compiler.title} fits {judged.row.release} is not in our table",
                        why=f"{what} {version}; the release's own version is not published where we looked",
                        help="look it up on the board: `vela --version`" if table.target == "imx93" else
                             "look it up in the release notes of the board's image")]
    found = judge_compiler(version, table, judged.row, what)
    return [found] if found else []


def _here(table: Table, judged: Judged, questions: Questions) -> list[Finding]:
    """What compiles for the chip on this machine, against the board."""
    from vitrify.backends.base import driver_of
    from vitrify.targets import base as targets

    if questions.compiled_with:
        return _version(version_in(questions.compiled_with), table, judged, "the file was compiled with")
    driver = driver_of(targets.load(table.target)) if table.target in targets.names() else None
    found = [one for one in driver.installations() if one.version] if driver is not None else []
    if not found:
        return []
    fits = table.compiler_of(judged.row)
    best = next((one for one in found if one.version == fits), found[0])
    told = _version(best.version, table, judged, "here is")
    weights = {Severity.ERROR: Severity.WARNING}      # nothing has been compiled yet
    return [Finding(code=f.code, headline=f.headline, severity=weights.get(f.severity, f.severity), where=f.where,
                    why=f.why, help=f.help) for f in told]
