"""The whole of `profile`: one model profiled, or two compared, judged by gates, and written for other tools."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec
from msgspec import structs

from vitrify.core.errors import UsageError
from vitrify.core.findings import Severity
from vitrify.core.progress import Reporter, Silent
from vitrify.pipeline.files import refuse_overlap
from vitrify.pipeline.options import ConvertOptions, DataOptions
from vitrify.pipeline.profiling.comparing import compare, is_profile, read_profile
from vitrify.pipeline.profiling.exporting import Export, write_exports
from vitrify.pipeline.profiling.profile import ProfileOptions, profile_model
from vitrify.profile.gates import gate_findings, judge_gate, parse_gate
from vitrify.results import ProfileResult


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked besides the profile: a comparison, gates, files; and whether options contradict each other.

    ``page`` makes the report, where one is among the files.
    """

    host: bool = False
    xnnpack: bool = False
    no_xnnpack: bool = False
    compare: Path | None = None
    fail_if: tuple[str, ...] = ()
    exports: Mapping[str, Path | None] = {}
    page: Export | None = None

    def check(self, options: ProfileOptions, data: DataOptions) -> None:
        """Refuse what contradicts itself.

        Raises:
            UsageError: it does.
        """
        pairs = (("--host", self.host, f"--target {options.target}", bool(options.target)),
                 ("--xnnpack", self.xnnpack, "--no-xnnpack", self.no_xnnpack),
                 ("--data", data.path is not None, "--random-inputs", data.random))
        for one, first, other, second in pairs:
            if first and second:
                raise UsageError.of("call.invalid", f"{one} and {other} contradict each other", where=f"{one}, {other}",
                                    help="give one of them; a measurement and an estimate are two profiles"
                                    if one == "--host" else "give one of them")


def profile_file(source: Path, options: ProfileOptions, asked: Asked, data: DataOptions, conversion: ConvertOptions,
                 reporter: Reporter | None = None) -> ProfileResult:
    """Profile ``source`` and do what else is asked.

    Raises:
        VitrifyError: a model cannot be read, or the call makes no sense.
    """
    shown = reporter or Silent()
    asked.check(options, data)
    gates = [parse_gate(text) for text in asked.fail_if]
    if asked.compare is None and any(gate.needs_other for gate in gates):
        first = next(gate for gate in gates if gate.needs_other)
        raise UsageError.of("profile.gate", f"--fail-if '{first.expression}' needs something to compare with",
                            where="--fail-if", help="add --compare B: a model, or the JSON of an earlier profile")
    outputs = {f"--{kind}": path for kind, path in asked.exports.items()} | {"--save-model": options.save}
    refuse_overlap(outputs, {"MODEL": source, "--compare": asked.compare}, data.path)
    other = None
    if asked.compare is not None and is_profile(asked.compare):
        other = read_profile(asked.compare)
    found = profile_model(source, options, data, conversion, shown)
    result = found.result
    if asked.compare is not None:
        other = other or profile_model(asked.compare, structs.replace(options, save=None), data, conversion, shown)
        result.comparison, told = compare(other, found)
        result.findings += told
    result.gates = [judge_gate(gate, result, None if other is None else other.result) for gate in gates]
    result.findings += gate_findings(result.gates)
    write_exports(result, asked.exports, asked.page)
    result.ok = all(finding.severity is not Severity.ERROR for finding in result.findings)
    return result
