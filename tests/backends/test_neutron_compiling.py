"""The adapter of the Neutron converter, driven with a stand-in that behaves well, and in every way badly."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path

import pytest
from neutron_stand_in.making import five_graphs, make_sdk

from vitrify import tflite
from vitrify.backends.base import Compiled, CompilerOptions, driver_of, find, names
from vitrify.backends.neutron.installed import VARIABLE, find_sdks
from vitrify.core.errors import ModelError, TargetError, UsageError, VitrifyError
from vitrify.core.findings import Severity
from vitrify.core.isolation import Worker
from vitrify.targets import load

CHIP = load("imx95")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return five_graphs(tmp_path_factory.mktemp("model") / "m.tflite", graphs=3)


@pytest.fixture(autouse=True)
def _nothing_installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


def compiled(model: Path, sdk: Path, output: Path, **more: object) -> Compiled:
    driver = driver_of(CHIP)
    assert driver is not None
    return driver.compile(model, CHIP, output, CompilerOptions(where=str(sdk), **more))         # type: ignore[arg-type]


def test_backends_are_found_by_their_folders() -> None:
    assert {"neutron", "vela"} <= set(names())
    assert all(getattr(find(name), "name", "") == name for name in names())
    assert find("no-such-backend") is None


def test_every_target_names_a_backend_or_builds_at_run_time() -> None:
    assert find(load("imx93").backend) is find("vela")
    assert find(CHIP.backend) is find("neutron")


def test_every_node_has_a_verdict_from_the_file(model: Path, tmp_path: Path) -> None:
    got = compiled(model, make_sdk(tmp_path / "sdk", version="3.2.0"), tmp_path / "out.tflite",
                   options={"optimization-level": "OOpt", "force-determinism": ""})
    places = {v.node: v.placement for v in got.placement.verdicts}
    assert places == {node.name: "cpu" if node.op.kind == "GATHER" else "npu" for node in tflite.read(model).main}
    assert got.placement.npu_partitions == 3
    assert (got.compiler, got.version, got.maker) == ("neutron-converter", "3.2.0", "neutron-converter 3.2.0")
    assert got.options == ("--optimization-level", "OOpt", "--force-determinism")
    assert '"--optimization-level", "OOpt", "--force-determinism"' in got.log
    assert got.estimate is not None
    assert got.estimate.npu_ms == 3.17
    assert got.statistics["graphs"] == 3
    assert "ratio" in " ".join(f.code for f in got.findings)
    assert not any(f.severity is Severity.ERROR for f in got.findings)
    assert (tmp_path / "out.tflite").stat().st_size > 0


SLOW = ("failing", "too-large", "wrong-target", "silent", "unknown release", "warning")
"""Cases that go the same way as others."""
ENDINGS = {      # how it misbehaves -> (code, words of the headline)
    "crashing": ("neutron.died", "died of SIGSEGV"),
    "failing": ("neutron.failed", "(status 3)"),
    "full": ("file.write", "no room"),
    "too-large": ("file.write", "no room"),
    "garbage": ("neutron.bad-output", "no TFLite model"),
    "no-output": ("neutron.no-output", "wrote no file"),
    "other-model": ("neutron.other-model", "is not the model: its outputs are"),
    "wrong-target": ("neutron.wrong-target", "converted for 'imx943', not for 'imx95'"),
}


@pytest.mark.parametrize("mode", [pytest.param(mode, marks=pytest.mark.slow) if mode in SLOW else mode
                                  for mode in ENDINGS])
def test_a_converter_that_fails_is_a_finding(mode: str, model: Path, tmp_path: Path) -> None:
    before = set(os.listdir(tempfile.gettempdir()))
    with pytest.raises(VitrifyError) as caught:
        compiled(model, make_sdk(tmp_path / "sdk", mode=mode), tmp_path / "out.tflite")
    code, words = ENDINGS[mode]
    (finding,) = caught.value.findings
    assert finding.code == code
    assert words in finding.headline
    assert "Traceback" not in str(finding)
    assert not (tmp_path / "out.tflite").exists()
    assert not [name for name in set(os.listdir(tempfile.gettempdir())) - before
                if name.startswith(f"vitrify-neutron-{os.getpid()}-")]


def test_a_hanging_converter_is_stopped_with_all_that_it_started(model: Path, tmp_path: Path) -> None:
    with pytest.raises(TargetError, match="took longer than 1 s and was stopped"):
        compiled(model, make_sdk(tmp_path / "sdk", mode="hanging"), tmp_path / "out.tflite", seconds=1.0)
    for _ in range(50):
        if not _running(str(tmp_path)):
            break
        time.sleep(0.1)
    assert _running(str(tmp_path)) == []


def _running(words: str) -> list[str]:
    """The command lines of processes that name ``words``."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
            found += [line] if words in line else []
    return found


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="orphans are taken on Linux")
def test_what_a_program_leaves_running_is_ended(tmp_path: Path) -> None:
    """Also in a session of its own, where no signal to the group reaches it."""
    program = ["sh", "-c", "setsid sleep 4711 >/dev/null 2>&1 & (setsid sleep 4712 &) & exit 5"]
    with Worker("a program") as worker:
        assert worker.call("vitrify.backends.neutron.child:run_program", program, str(tmp_path)) == 5
        assert _running("sleep 471") == []


def test_a_greedy_converter_is_stopped(model: Path, tmp_path: Path) -> None:
    with pytest.raises(TargetError) as caught:
        compiled(model, make_sdk(tmp_path / "sdk", mode="greedy"), tmp_path / "out.tflite", memory_bytes=1 << 29)
    assert caught.value.findings[0].code in ("neutron.failed", "process.memory")
    assert "MemoryError" in caught.value.findings[0].headline or "memory" in caught.value.findings[0].headline


TOLD = {         # how it behaves -> (code, words of the headline)
    "lying": ({"mode": "lying"}, "neutron.log-disagrees", "it speaks of 1 Neutron graphs, the file holds 3"),
    "silent": ({"mode": "silent"}, "neutron.no-statistics", "holds no statistics"),
    "mixed": ({"version": "3.1.3", "mode": "mixed"}, "neutron.version-mismatch", "says that it is 3.1.3, and 3.3.0"),
    "unknown release": ({"version": "1.0.0", "mode": "silent"}, "neutron.unknown-version", "release 1.0.0"),
    "no version": ({"version": "3.0.0", "mode": "no-version"}, "neutron.unknown-version", "does not say its version"),
    "warning": ({"mode": "warning"}, "neutron.warning", "WARNING: this line is made up"),
}


@pytest.mark.parametrize(("settings", "code", "words"), [
    pytest.param(*row, marks=pytest.mark.slow) if name in SLOW else row for name, row in TOLD.items()], ids=TOLD)
def test_a_converter_that_lies_is_told_and_its_file_counts(settings: dict[str, str], code: str, words: str, model: Path,
                                                           tmp_path: Path) -> None:
    got = compiled(model, make_sdk(tmp_path / "sdk", **settings), tmp_path / "out.tflite")
    finding = next(f for f in got.findings if f.code == code)
    assert words in finding.headline
    assert finding.severity is Severity.WARNING
    assert got.placement.npu_partitions == 3


def test_a_converter_without_the_chip_is_refused(model: Path, tmp_path: Path) -> None:
    with pytest.raises(TargetError, match=r"neutron-converter 3\.1\.3 has no target 'imx95'"):
        compiled(model, make_sdk(tmp_path / "sdk", targets=["mcxn54x", "mcxn94x"]), tmp_path / "out.tflite")


def test_words_without_a_chip_are_no_list_of_targets(model: Path, tmp_path: Path) -> None:
    sdk = make_sdk(tmp_path / "sdk", targets=["/opt/sdk3/bin/neutron-converter:", "line12:", "x86"])
    assert compiled(model, sdk, tmp_path / "out.tflite").placement.npu_partitions == 3


def test_nothing_on_the_npu_is_an_error_only_where_a_file_is_wanted(model: Path, tmp_path: Path) -> None:
    sdk = make_sdk(tmp_path / "sdk", cpu=["CONV_2D", "GATHER"])
    with pytest.raises(TargetError, match=r"no node of m\.tflite runs on"):
        compiled(model, sdk, tmp_path / "out.tflite")
    driver = driver_of(CHIP)
    assert driver is not None
    got = driver.check(model, CHIP, CompilerOptions(where=str(sdk)))
    assert got.findings[0].code == "neutron.nothing-placed"


def test_a_compiled_model_is_refused(model: Path, tmp_path: Path) -> None:
    sdk = make_sdk(tmp_path / "sdk")
    compiled(model, sdk, tmp_path / "once.tflite")
    with pytest.raises(ModelError, match="holds 3 NeutronGraph operators"):
        compiled(tmp_path / "once.tflite", sdk, tmp_path / "twice.tflite")


@pytest.mark.parametrize("name", ["input", "--output", "target", "a b", "", "x;y"])
def test_options_that_vitrify_sets_are_not_passed_on(name: str, model: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no option to pass on"):
        compiled(model, make_sdk(tmp_path / "sdk"), tmp_path / "out.tflite", options={name: "x"})


def test_sdks_are_found_in_order_and_by_release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old, new = (make_sdk(tmp_path / name, version=version) for name, version in (("a", "3.0.1"), ("b", "3.1.2")))
    assert find_sdks() == []
    (tmp_path / "config" / "vitrify").mkdir(parents=True)
    (tmp_path / "config" / "vitrify" / "neutron.toml").write_text(f'sdks = ["{new}"]\n')
    monkeypatch.setenv(VARIABLE, str(old))
    assert [(sdk.version, sdk.found_by) for sdk in find_sdks()] == [
        ("3.0.1", f"${VARIABLE}"), ("3.1.2", str(tmp_path / "config" / "vitrify" / "neutron.toml"))]
    assert [sdk.version for sdk in find_sdks("3.1")] == ["3.1.2"]
    assert find_sdks("2.0") == []
    assert find_sdks(str(old / "bin" / "neutron-converter"))[0].version == "3.0.1"
    monkeypatch.delenv(VARIABLE)
    (tmp_path / "config" / "vitrify" / "neutron.toml").unlink()
    monkeypatch.setenv("PATH", f"{new / 'bin'}:{os.environ['PATH']}")
    assert [(sdk.version, sdk.found_by) for sdk in find_sdks()] == [("3.1.2", "$PATH")]


def test_a_place_without_an_sdk_is_a_wrong_call(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no eIQ Neutron SDK at"):
        find_sdks(str(tmp_path))


def test_a_broken_configuration_is_a_wrong_call(tmp_path: Path) -> None:
    (tmp_path / "config" / "vitrify").mkdir(parents=True)
    (tmp_path / "config" / "vitrify" / "neutron.toml").write_text("sdks = 3")
    with pytest.raises(UsageError, match="is no list of places"):
        find_sdks()


def test_libraries_of_the_sdk_are_on_the_path_of_its_programs(model: Path, tmp_path: Path) -> None:
    got = compiled(model, make_sdk(tmp_path / "sdk", version="3.0.0", mode="library"), tmp_path / "out.tflite")
    assert f"LD_LIBRARY_PATH: {tmp_path / 'sdk' / 'lib'}" in got.log


MODULE = '''"""A stand-in for the SDK's Python module, for tests only: it gives the model back, or fails."""
__version__ = "3.1.1"
class _Options: pass
class CompilationContext:
    def __init__(self):
        self.targetOpts, self.compilationOpts = None, _Options()
def getNeutronTarget(name):
    if name != "imx95":
        import os
        os.abort()                  # as the module does with a bad target
    return name
def convertModel(data, context):
    print("Neutron Converter Version: 3.1.1", vars(context.compilationOpts))
    if getattr(context.compilationOpts, "fail", False):
        raise RuntimeError("no schedule found")
    return data
'''


@pytest.mark.parametrize("package", [
    "neutron_converter.py", pytest.param("eiq_neutron_sdk/neutron_converter.py", marks=pytest.mark.slow),
    pytest.param("neutron_converter_SDK_26_03/neutron_converter.py", marks=pytest.mark.slow)])
def test_the_python_module_is_driven_in_a_child(package: str, model: Path, tmp_path: Path) -> None:
    path = tmp_path / "sdk" / package
    path.parent.mkdir(parents=True, exist_ok=True)
    if "/" in package:
        (path.parent / "__init__.py").write_text("")
    path.write_text(MODULE)
    driver = driver_of(CHIP)
    assert driver is not None
    how = CompilerOptions(where=str(tmp_path / "sdk"), options={"minNumOpsPerGraph": "1"})
    assert driver.installations(how)[0].version in ("3.1.1", "")
    got = driver.check(model, CHIP, how)
    assert got.findings[0].code == "neutron.nothing-placed"
    assert "'minNumOpsPerGraph': 1" in got.log
    failing = CompilerOptions(where=str(tmp_path / "sdk"), options={"fail": "true"})
    with pytest.raises(TargetError, match="RuntimeError: no schedule found") as caught:
        driver.check(model, CHIP, failing)
    assert "Traceback" not in str(caught.value)
