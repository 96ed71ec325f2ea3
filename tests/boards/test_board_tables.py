"""The compatibility tables: each row, each mixture of two rows, each missing part gives the right answer."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from board_trees import facts_of, lay_out, write

from vitrify.boards import Facts, judge, table_of, tables
from vitrify.boards.facts import order
from vitrify.boards.judging import judge_compiler
from vitrify.boards.tables import Component
from vitrify.boards.tables.__main__ import page
from vitrify.core.findings import Severity
from vitrify.targets import base as targets

ROWS = [(table.target, row.release) for table in tables().values() for row in table.rows]
NEEDS = [(table.target, need.name) for table in tables().values() for need in table.needs]
FactsOf = Callable[[str, str], Facts]


def row_of(target: str, release: str):  # type: ignore[no-untyped-def]
    return next(row for row in tables()[target].rows if row.release == release)


def with_version(facts: Facts, component: Component, version: str) -> Facts:
    """The same board with another version of one part, told as the probe tells it."""
    told = dict(facts.told)
    if component.bytes:
        told[f"file:{component.bytes}"] = version
        return Facts(told)
    if component.folder:
        told = {name: value for name, value in told.items() if not name.startswith(f"{component.folder}:")}
        told[f"{component.folder}:{version}"] = "there"
    elif component.python:
        told = {name: value for name, value in told.items() if not name.startswith("python:")}
        told[f"python:{component.python[0].replace('-', '_')}-{version}.dist-info"] = "there"
    else:
        told[f"package:{component.packages[0]}"] = f"{version}-r0"
    return Facts(told)


@pytest.mark.parametrize(("target", "release"), ROWS)
def test_a_board_of_one_release_is_well(target: str, release: str, release_facts: FactsOf) -> None:
    facts = release_facts(target, release)
    table = table_of(facts)
    assert table is not None
    assert table.target == target
    assert facts.whole
    judged = judge(facts, table)
    assert judged.findings == []
    assert judged.exact
    assert judged.row.release == release
    assert all(part.state in ("ok", "info", "unknown") for part in judged.parts)
    for name, version in judged.row.versions.items():
        if name in table.components:
            assert table.components[name].seen(facts) == version, name


@pytest.mark.parametrize(("target", "base"), ROWS)
def test_each_part_of_each_other_release_is_named(target: str, base: str, release_facts: FactsOf) -> None:
    table, own = tables()[target], row_of(target, base)
    facts = release_facts(target, base)
    for foreign in table.rows:
        for name, component in table.components.items():
            mine, theirs = own.versions.get(name), foreign.versions.get(name)
            if not theirs or foreign is own:
                continue
            found = [f for f in judge(with_version(facts, component, theirs), table).findings
                     if f.code == "doctor.mixed-release"]
            if not mine or mine == theirs:
                assert found == [], (foreign.release, name)
                continue
            assert [f.where for f in found] == [component.title], (foreign.release, name)
            (finding,) = found
            assert finding.severity is Severity(component.severity)
            assert all(text in finding.headline for text in (theirs, mine, base)), finding
            assert any(row.release in finding.headline for row in table.rows if row.versions.get(name) == theirs)
            assert finding.why
            assert mine in finding.help


@pytest.mark.parametrize(("target", "base"), ROWS)
def test_a_kernel_of_each_other_release_is_told_as_such(target: str, base: str, release_facts: FactsOf) -> None:
    table, own = tables()[target], row_of(target, base)
    facts = release_facts(target, base)
    seen = {name: component.seen(facts) for name, component in table.components.items()}
    for foreign in table.rows:
        judged = judge(Facts({**facts.told, "kernel": f"{foreign.kernel}-lts"}), table)
        shared = [name for name in seen if seen[name] and foreign.versions.get(name)]
        differing = [name for name in shared if seen[name] != foreign.versions[name]]
        codes = [f.code for f in judged.findings]
        assert codes.count("doctor.mixed-release") == len(differing), foreign.release
        whole = all(own.versions.get(name) == seen[name] for name in shared)
        expected = whole and len(shared) > 1 and len(differing) == len(shared)
        assert ("doctor.other-kernel" in codes) is expected, foreign.release
        for finding in judged.findings:
            if finding.code == "doctor.other-kernel":
                assert f"the kernel is of {foreign.release}" in finding.headline
                assert finding.severity is Severity.ERROR


@pytest.mark.parametrize(("target", "need"), NEEDS)
def test_each_missing_part_is_named(target: str, need: str, tmp_path: Path) -> None:
    table = tables()[target]
    wanted = next(one for one in table.needs if one.name == need)
    row = table.rows[-1]
    judged = judge(facts_of(lay_out(tmp_path, table, row, without=(need,))), table)
    (finding,) = judged.findings
    assert finding.code == "doctor.missing"
    assert need in finding.headline
    assert finding.severity is Severity(wanted.severity)
    assert wanted.causes in finding.why
    assert finding.help == wanted.help
    assert [part.found for part in judged.parts if part.name == need] == ["absent"]


@pytest.mark.parametrize(("target", "need"), NEEDS)
def test_each_other_name_of_a_part_serves(target: str, need: str, tmp_path: Path) -> None:
    table = tables()[target]
    wanted = next(one for one in table.needs if one.name == need)
    for number, path in enumerate(wanted.any):
        root = lay_out(tmp_path / str(number), table, table.rows[0], without=(need,))
        write(root, path.replace("*", "_14x14"), b"\x7fELF")
        assert [f for f in judge(facts_of(root), table).findings if f.code == "doctor.missing"] == []


@pytest.mark.parametrize(("target", "need"), NEEDS)
def test_what_a_board_does_not_tell_is_not_missing(target: str, need: str, release_facts: FactsOf) -> None:
    table = tables()[target]
    wanted = next(one for one in table.needs if one.name == need)
    told = {name: value for name, value in release_facts(target, table.rows[-1].release).told.items()
            if not any(name.partition(":")[2].startswith(path.removesuffix("*")) for path in wanted.any)}
    judged = judge(Facts(told, None), table)
    assert [f.code for f in judged.findings] == []
    assert [part.state for part in judged.parts if part.name == need] == ["unknown"]


@pytest.mark.parametrize("target", tables())
@pytest.mark.parametrize(("kernel", "nearest"), [("4.1.0", 0), ("99.1.0", -1)])
def test_a_kernel_that_no_row_has_names_the_nearest(target: str, kernel: str, nearest: int,
                                                    release_facts: FactsOf) -> None:
    table = tables()[target]
    told = {**release_facts(target, table.rows[0].release).told, "kernel": f"{kernel}-custom"}
    judged = judge(Facts(told), table)
    assert not judged.exact
    (finding,) = [f for f in judged.findings if f.code == "doctor.release-unknown"]
    assert kernel in finding.headline
    assert "not in our table" in finding.headline
    assert table.rows[nearest].release in finding.headline
    assert not [f for f in judged.findings if f.code == "doctor.mixed-release"]      # nothing is held against a guess


def test_a_kernel_between_two_rows_takes_the_one_before() -> None:
    row, exact = tables()["imx93"].row_of("6.6.30")
    assert (row.release, exact) == ("LF6.6.23-2.0.0", False)


COMPILERS = [(table.target, row.release) for table in tables().values() for row in table.rows if table.compiler_of(row)]


@pytest.mark.parametrize(("target", "release"), COMPILERS)
def test_a_compiler_of_each_other_release_is_judged(target: str, release: str) -> None:
    table, row = tables()[target], row_of(target, release)
    compiler, fits = table.compiler, table.compiler_of(row)
    assert compiler is not None
    for version in {*filter(None, map(table.compiler_of, table.rows)), "5.2.0", "1.0.0", "3.1.3"}:
        finding = judge_compiler(version, table, row, "m.tflite was compiled with")
        if version == fits:
            assert finding is None
            continue
        assert finding is not None
        assert finding.code == "doctor.compiler-version"
        assert all(text in finding.headline for text in (version, fits, release)), finding
        if order(version)[:2] == order(fits)[:2]:
            assert finding.severity is Severity.INFO
            continue
        newer = order(version) > order(fits)
        assert finding.severity is Severity(compiler.newer if newer else compiler.older)
        assert (compiler.newer_causes if newer else compiler.older_causes) in finding.why
        assert fits in finding.help


@pytest.mark.parametrize(("facts", "code"), [
    ({"soc.revision": "1.1"}, "doctor.silicon"), ({"memory.CmaTotal": "655360"}, "doctor.cma"),
    ({"memory.CmaTotal": "0"}, "doctor.cma"), ({"governor": "schedutil"}, "doctor.governor"),
    ({"disk.root": "4000"}, "doctor.board-room"), ({"memory.MemAvailable": "60000"}, "doctor.board-room")])
def test_what_else_is_wrong_is_told(facts: dict[str, str], code: str, release_facts: FactsOf) -> None:
    table = tables()["imx95"]
    told = {**release_facts("imx95", table.rows[-1].release).told, **facts}
    (finding,) = judge(Facts(told), table).findings
    assert finding.code == code
    assert finding.help or finding.why


def test_tables_are_sound() -> None:
    for table in tables().values():
        assert table.target in targets.names()
        assert [row.kernel for row in table.rows] == sorted((row.kernel for row in table.rows), key=order)
        assert len({row.kernel for row in table.rows}) == len(table.rows)
        column = {table.compiler.column} if table.compiler else set()
        for row in table.rows:
            assert row.source
            assert set(row.versions) <= set(table.components) | column
            assert row.release.startswith(f"LF{row.kernel}-")
        for component in table.components.values():
            assert component.causes
        for need in table.needs:
            assert need.causes
            assert need.help
            assert need.source


def test_the_page_has_the_tables_of_the_data() -> None:
    text = (Path(__file__).parents[2] / "docs" / "boards.md").read_text()
    assert text == page(text), "run: python -m vitrify.boards.tables docs/boards.md"
    assert all(row.release in text for table in tables().values() for row in table.rows)


@pytest.mark.parametrize(("target", "path", "data", "said"), [
    ("imx93", "/proc/modules", "ethosu 16384 0 - Live 0x0\n", ""), ("imx93", "", "", "module ethosu is not loaded"),
    ("imx95", "", "", "no node called neutron"),
    ("imx95", "/proc/device-tree/soc/imx95-neutron@4ab00004/status", "okay\0", ""),
    ("imx8mp", "", "", "module galcore is not loaded"), ("imx8mp", "/proc/modules", "galcore 1 0 - Live 0x0\n", "")])
def test_why_a_device_is_absent_is_told_where_the_board_tells(target: str, path: str, data: str, said: str,
                                                              tmp_path: Path) -> None:
    table = tables()[target]
    root = lay_out(tmp_path, table, table.rows[-1], without=("NPU device",))
    if path:
        write(root, path, data)
    facts = facts_of(root)
    (finding,) = judge(facts, table).findings
    assert finding.headline.startswith("the board has no NPU device")
    assert (said in finding.headline) if said else finding.headline == "the board has no NPU device"
    (partial,) = judge(Facts(facts.told, None), table).findings
    assert partial.headline == "the board has no NPU device"
