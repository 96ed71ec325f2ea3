"""Judges a board by its chip's table: what is missing, what does not fit together, what that causes, what to do.

The release is told by the kernel, since that is what boots; each other part is held against it. What a board does not
tell is not judged, and a kernel that no row has is told as such.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from vitrify.boards.facts import Facts, order
from vitrify.boards.tables import Row, Table
from vitrify.core.findings import Finding, Severity
from vitrify.core.words import bytes_text

_LEAST_MEMORY = 128 << 20
_LEAST_DISK = 64 << 20
_PATCH = 2      # numbers of a version that have to be equal for one release


class Part(NamedTuple):
    """One line of the answer: what the board has, what fits, and whether it is well."""

    name: str
    found: str
    fits: str
    state: str


class Judged(NamedTuple):
    """What a board is. ``row`` is the release by its kernel, ``exact`` whether the table has just that."""

    row: Row
    exact: bool
    parts: list[Part]
    findings: list[Finding]


def judge(facts: Facts, table: Table) -> Judged:
    """Hold a board against the table of its chip."""
    row, exact = table.row_of(facts.kernel)
    parts = [Part("kernel", facts.text("kernel") or "not told", row.kernel, "ok" if exact else "unknown")]
    findings = [*_release(facts, table, row, exact)]
    for name, component in table.components.items():
        seen, fits = component.seen(facts), row.versions.get(name, "")
        state = "unknown" if not seen or not fits or not exact else "ok" if seen == fits else component.severity
        if seen or fits:
            title = component.title if component.bytes else f"{component.title}, version"
            parts.append(Part(title, seen or "not told", fits or "not in our table", state))
    findings += _mixed(facts, table, row) if exact else []
    for need in table.needs:
        if need.since and order(facts.kernel) < order(need.since):
            continue
        absent = need.is_absent(facts)
        state = "unknown" if absent is None else need.severity if absent else "ok"
        names = {True: "absent", None: "not told", False: "there"}
        parts.append(Part(need.name, names[absent], " or ".join(need.any), state))
        if absent:
            findings.append(Finding(
                code="doctor.missing", severity=Severity(need.severity), where=" or ".join(need.any),
                headline=f"the board has no {need.name}{need.cause_in(facts)}",
                why=f"{need.causes} ({need.source})", help=need.help))
    findings += [*_silicon(facts, table), *_memory(facts, table), *_room(facts), *_governor(facts)]
    parts += _amounts(facts)
    return Judged(row, exact, parts, findings)


def _release(facts: Facts, table: Table, row: Row, exact: bool) -> Iterator[Finding]:
    if not facts.kernel:
        yield Finding(code="doctor.release-unknown", severity=Severity.WARNING,
                      headline="the board does not tell its kernel, so its release is not known",
                      help="run the probe again and take over all that it prints")
    elif not exact:
        first, last = table.rows[0].release, table.rows[-1].release
        yield Finding(
            code="doctor.release-unknown", severity=Severity.WARNING, where=f"kernel {facts.text('kernel')}",
            headline=f"kernel {facts.kernel} is not in our table; the nearest release that is known is {row.release}",
            why=f"the table of {table.title} has {len(table.rows)} releases from {first} to {last}; which compiler "
                f"fits another, we do not know",
            help="look the versions up in the release notes of the board's image, and try a small model first")


def _mixed(facts: Facts, table: Table, row: Row) -> Iterator[Finding]:
    """Parts of another release than the kernel's; all of one other release are told at once."""
    seen = {name: component.seen(facts) for name, component in table.components.items()}
    wrong = {name: version for name, version in seen.items()
             if version and row.versions.get(name) and version != row.versions[name]}
    judged = [name for name, version in seen.items() if version and row.versions.get(name)]
    others = [other for other in table.rows if other is not row and len(judged) > 1 and len(wrong) == len(judged)
              and all(other.versions.get(name) == seen[name] for name in judged)]
    if others:
        yield Finding(
            code="doctor.other-kernel", severity=Severity.ERROR, where=f"kernel {facts.text('kernel')}",
            headline=f"the kernel is of {row.release}, the libraries are of {others[0].release}",
            why="kernel driver, firmware and libraries are released together; mixed, inferences fail or all runs on "
                "the CPU", help=f"write the whole image of {others[0].release} or of {row.release}")
    for name, version in wrong.items():
        component = table.components[name]
        homes = [other.release for other in table.rows if other.versions.get(name) == version]
        home = f"belongs to {' or '.join(homes)}" if homes else "is in none of the releases that we know"
        yield Finding(
            code="doctor.mixed-release", severity=Severity(component.severity), where=component.title,
            headline=f"{component.title} {version} {home}; {row.release}, whose kernel runs, has {row.versions[name]}",
            why=component.causes, help=f"install {component.title} {row.versions[name]} of {row.release}, or write its "
                                       f"whole image")


def _silicon(facts: Facts, table: Table) -> Iterator[Finding]:
    revision = facts.text("soc.revision")
    if table.silicon and order(revision) and order(revision) < order(table.silicon.least):
        yield Finding(
            code="doctor.silicon", severity=Severity.WARNING, where="/sys/devices/soc0/revision",
            headline=f"the chip has revision {revision}; its NPU wants {table.silicon.least} ({table.silicon.name})",
            why=f"{table.silicon.causes} ({table.silicon.source})",
            help=f"use a board with {table.silicon.name} silicon")


def _memory(facts: Facts, table: Table) -> Iterator[Finding]:
    total, least = facts.kilobytes("memory.CmaTotal"), table.memory.cma_least_bytes
    if total is not None and (total < least or total == 0):
        yield Finding(
            code="doctor.cma", severity=Severity.WARNING, where="/proc/meminfo, CmaTotal",
            headline=f"{bytes_text(total)} of contiguous memory are reserved"
                     + (f"; the stock image has {bytes_text(least)}" if least else ""),
            why=f"{table.memory.cma_causes} ({table.memory.cma_source})" if least else
                "the NPU's buffers come from it: none can be had",
            help="set cma=960M on the kernel's command line, or the size of linux,cma in the device tree")


def _room(facts: Facts) -> Iterator[Finding]:
    for name, title, least in (("memory.MemAvailable", "memory", _LEAST_MEMORY), ("disk.root", "disk", _LEAST_DISK)):
        free = facts.kilobytes(name)
        if free is not None and free < least:
            yield Finding(
                code="doctor.board-room", severity=Severity.WARNING,
                headline=f"{bytes_text(free)} of {title} are free on the board; a model with its runtime wants about "
                         f"{bytes_text(least)}", why="the board may end the program that runs the model")


def _governor(facts: Facts) -> Iterator[Finding]:
    governor = facts.text("governor")
    if governor and governor != "performance":
        yield Finding(code="doctor.governor", severity=Severity.INFO,
                      headline=f"the CPU's clock is governed by '{governor}'",
                      why="what runs on the CPU takes a different time at each measurement",
                      where="/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor",
                      help="for measurements: echo performance > "
                           "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")


def _amounts(facts: Facts) -> list[Part]:
    wanted = {"memory free": "memory.MemAvailable", "contiguous memory": "memory.CmaTotal",
              "contiguous memory free": "memory.CmaFree", "disk free": "disk.root"}
    found = {title: facts.kilobytes(name) for title, name in wanted.items()}
    return [Part(title, bytes_text(size), "", "info") for title, size in found.items() if size is not None]


def judge_compiler(version: str, table: Table, row: Row, what: str) -> Finding | None:
    """Hold a compiler's version against the release's; None when they fit, or nothing is known.

    Args:
        what: what has the version, such as ``model.tflite was compiled with``.
    """
    fits, compiler = table.compiler_of(row), table.compiler
    if compiler is None or not fits or not version or version == fits:
        return None
    help = compiler.command.format(version=fits)
    headline = f"{what} {compiler.title} {version}; {row.release} has {fits}"
    if order(version)[:_PATCH] == order(fits)[:_PATCH]:
        return Finding(code="doctor.compiler-version", severity=Severity.INFO, headline=headline,
                       why=compiler.same or "they differ in the last number only")
    is_newer = order(version) > order(fits)
    causes = compiler.newer_causes if is_newer else compiler.older_causes
    return Finding(code="doctor.compiler-version", severity=Severity(compiler.newer if is_newer else compiler.older),
                   headline=headline, why=f"{causes} ({compiler.source})", help=help)
