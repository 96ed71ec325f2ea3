"""Write the reference pages out of the code: commands, Python, JSON output, operators, passes, targets.

    python scripts/reference_docs.py FOLDER
"""

from __future__ import annotations

import inspect
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

import vitrify
from vitrify import ops, results
from vitrify.ir import LedgerEntry
from vitrify.passes import base, tables
from vitrify.passes.targets import catalogue
from vitrify.pipeline.explaining import all_codes, explain
from vitrify.targets import Target, load, names
from vitrify.targets.rules import known
from vitrify.targets.rules.tables import NOTHING_PUBLIC
from vitrify.tflite import schema


def commands_page() -> Iterator[str]:
    """Yield `--help` of every command."""
    yield "# Commands\n"
    program = str(Path(sys.executable).parent / "vitrify")
    for command in results.RESULTS:
        text = subprocess.run([program, command, "--help"], capture_output=True, text=True, check=True,
                              env={**os.environ, "COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb"}).stdout
        yield f"## vitrify {command}\n\n```text\n{text.strip()}\n```\n"


def json_page() -> Iterator[str]:
    """Yield the schema of each command's JSON output."""
    yield "# JSON output\n"
    yield ("With `--json` a command prints one object to standard output. Its schemas are generated from the types "
           "that the commands fill.\n")
    for command, kind in results.RESULTS.items():
        schema = json.dumps(msgspec.json.schema(kind), indent=2)
        yield f"## {command}\n\n??? note \"Schema\"\n\n" + "\n".join(
            f"    {line}" for line in ["```json", *schema.split("\n"), "```"]) + "\n"


def python_page() -> Iterator[str]:
    """Yield the signature and the documentation of every public function and class."""
    yield "# Python\n"
    yield "```python\nimport vitrify as vt\n```\n"
    public = [name for name in vitrify.__all__ if name != "__version__"]
    for name in sorted(public, key=lambda n: (inspect.isclass(getattr(vitrify, n)), n.lower())):
        found = getattr(vitrify, name)
        said = f"\n```python\n{_signature(name, found)}\n```\n" if inspect.isfunction(found) else ""
        yield f"## vitrify.{name}\n{said}\n```text\n{inspect.getdoc(found)}\n```\n"


def _signature(name: str, function: Callable[..., object]) -> str:
    """A function with a parameter in each line."""
    shown = inspect.signature(function)
    parts: list[str] = []
    for parameter in shown.parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY and "*" not in parts:
            parts.append("*")
        default = "" if parameter.default is parameter.empty else f" = {parameter.default!r}"
        parts.append(f"{parameter.name}: {parameter.annotation}{default}")
    return "\n".join([f"{name}(", *(f"    {part}," for part in parts), f") -> {shown.return_annotation}"])


def operators_page() -> Iterator[str]:
    """Yield a table of all operators that are described."""
    yield "# Operators\n"
    yield (f"{len(ops.REGISTRY)} TFLite operators are described: attributes, shape inference, numpy reference. All "
           "others are read, kept and written unchanged.\n")
    yield "| operator | what it gives | int8 |\n|---|---|---|"
    for name, kind in sorted(ops.REGISTRY.items()):
        summary = (inspect.getdoc(kind) or "").split("\n")[0].replace("|", "\\|")
        yield f"| {name} | {summary} | {'yes' if kind.int8 is not None else 'no kernel'} |"


def passes_page() -> Iterator[str]:
    """Yield each table of passes with their documentation."""
    yield "# Passes\n"
    seen: set[type[base.Pass]] = set()
    for title in ("CLEANUP", "PATTERNS", "LAYOUT", "FUSION"):
        for kind in getattr(tables, title, ()):
            if kind not in seen:
                seen.add(kind)
                yield f"## {kind.__name__}\n\nTable {title}.\n\n```text\n{inspect.getdoc(kind)}\n```\n"
    yield f"Every run of a pass adds a line to the ledger: {', '.join(LedgerEntry.__struct_fields__)}.\n"


def fixes_page() -> Iterator[str]:
    """Yield what each fix of integer models does, wins and mends."""
    yield "# Fixes\n"
    yield ("`vitrify check --fix` rewrites an integer model so that more of it runs on the NPU. Each fix is proved: "
           "the model runs before and after in LiteRT's reference kernels on the same values, and a place that differs "
           "by more than its class allows is put back. Exact fixes run by default, others when they are named.\n")
    for one in catalogue():
        allowed = {0: "bit for bit", None: "an approximation, its error is measured"}.get(
            one.largest_lsb, f"off by {one.largest_lsb} step at most")
        yield f"## {one.name}\n\n{_sentence(one.says)} Wins: {one.wins}.\n"
        yield f"- exactness: {allowed}{'' if one.by_default else '; by name only'}"
        yield f"- operators: {', '.join(sorted(one.operators)) or 'the whole model'}"
        mended = ", ".join(f"`{code}`" for code in one.mends)
        also = "wherever it makes the model cheaper" if one.cheaper else ""
        yield f"- mends: {', and '.join(part for part in (mended, also) if part)}\n"


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def rules_page() -> Iterator[str]:
    """Yield every rule of every family, then the diagnoses."""
    yield "# Rules and diagnoses\n"
    yield ("`vitrify check` judges each node by these rules; `vitrify explain CODE` prints one. A rule says how it is "
           "known: *documented* by the compiler, *observed* with small models that were compiled, *inferred*, or "
           "*unknown*. Where the target's compiler is installed its result wins, and a difference is the finding "
           "`check.disagreement`.\n")
    rows = [row for code in all_codes() for row in explain(code).explanations if row.kind != "finding"]
    for family in sorted({load(name).family for name in names()}):
        chips = [name for name in names() if load(name).family == family]
        yield f"## Rules of {family}\n\nFor {', '.join(chips)}.\n"
        for row in rows:
            if row.kind == "rule" and set(row.targets) & set(chips):
                yield from _rule(row, chips)
    yield "## Diagnoses\n\nWhat is wrong with a file as a whole; each names the command that mends it.\n"
    for row in rows:
        if row.kind == "diagnosis":
            yield f"### {row.code}\n\nSound: {row.says}. Why: {row.why}.\n"
            if row.help:
                yield f"Mended by: `{row.help}`\n" if row.help.startswith("vitrify ") else f"{_sentence(row.help)}\n"


def _rule(row: results.ExplanationRow, chips: list[str]) -> Iterator[str]:
    facts = [("why", row.why), ("operators", ", ".join(row.operators) or "all"),
             ("targets", "all" if set(row.targets) == set(chips) else ", ".join(row.targets)), ("help", row.help),
             ("fix", row.fix), ("source", row.source), ("confidence", f"{row.confidence}, compiler {row.versions}")]
    yield f"### {row.code}\n\n{_sentence(row.says)}\n"
    yield from (f"- {name}: {text}" for name, text in facts if text)
    yield ""


def verdicts_page() -> Iterator[str]:
    """Yield for every operator of the schema what is known of it on the chips with closed compilers."""
    chips = [load(name) for name in names()]
    groups: dict[tuple[str, str], list[str]] = {}
    for chip in chips:
        if chip.family != "ethos_u":
            groups.setdefault((chip.family, chip.core), []).append(chip.name)
    yield "# Operators on chips with closed compilers\n"
    yield ("What is public about each operator of the TFLite schema: *yes*, the NPU takes it in some form (its limits "
           "are under [rules](rules.md)); *no*, it runs on the CPU; *unknown*, no public source says, and it is "
           "counted as the CPU's. In brackets how that is known, and a number for the source. Operators of the Ethos-U "
           "family are not here: their compiler is open, and `vitrify targets NAME` lists them.\n")
    sources: dict[str, int] = {}
    heads = [", ".join(found) for found in groups.values()]
    yield f"| operator | {' | '.join(heads)} |\n|---|{'---|' * len(heads)}"
    for operator in sorted({*schema.operators(), "CUSTOM"} - {""}):
        cells = []
        for found in groups.values():
            row = known(operator, load(found[0]))
            said = "unknown" if row.taken == "unknown" else f"{row.taken} ({row.confidence})"
            if row.source != NOTHING_PUBLIC:
                said += f" [{sources.setdefault(row.source, len(sources) + 1)}]"
            cells.append(said)
        yield f"| {operator} | {' | '.join(cells)} |"
    yield "\n## Sources\n"
    yield from (f"- [{number}] {source}" for source, number in sources.items())
    yield from _shares([(", ".join(found), load(found[0])) for found in groups.values()])


def _shares(groups: list[tuple[str, Target]]) -> Iterator[str]:
    """Count the verdicts by how they are known."""
    yield ("\n## How much is known\n\n| chips | taken | not taken | unknown | of those taken, inferred |\n"
           "|---|---:|---:|---:|---:|")
    for heading, chip in groups:
        rows = [known(operator, chip) for operator in ({*schema.operators(), "CUSTOM"} - {""})]
        count = Counter(row.taken for row in rows)
        inferred = sum(row.taken == "yes" and row.confidence == "inferred" for row in rows)
        yield f"| {heading} | {count['yes']} | {count['no']} | {count['unknown']} | {inferred} |"


def targets_page() -> Iterator[str]:
    """Yield the facts of each target with their sources."""
    yield "# Targets\n"
    for name in names():
        target = load(name)
        yield f"## {name}\n\n{target.title}: {target.npu}\n\n| fact | value | basis | source |\n|---|---|---|---|"
        for key, fact in target.facts.items():
            yield f"| `{key}` | {fact.value:g} | {fact.basis} | {fact.source} |"
        yield ""


def main() -> None:
    """Write all pages."""
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for page in (commands_page, python_page, json_page, operators_page, passes_page, fixes_page, rules_page,
                 verdicts_page, targets_page):
        text = "\n".join(page())
        (folder / f"{page.__name__.removesuffix('_page')}.md").write_text(text + "\n")


if __name__ == "__main__":
    main()
