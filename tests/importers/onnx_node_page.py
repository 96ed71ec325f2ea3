"""The page that tells what became of ONNX's node tests."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any

HEAD = """# ONNX node tests

ONNX brings tests for each of its operators (`onnx.backend.test`, here those of onnx {version}, operator set {opset}).
This page says what becomes of them: each model is imported, cleaned up by the passes, written as TFLite and run in
LiteRT's reference kernels, and every output is compared with what ONNX demands, at the test's own tolerance. More is
allowed where the type at hand rounds more: two steps of bfloat16 where a test computes in it, and 2 to the power of -22
of an output's largest value. The largest float32 counts as infinite, as LiteRT's sums do not go beyond it. Inputs that
decide shapes or parameters, such as the axes of a reduction, are given as constants where the import asks for them, as
`--value` does.

It is generated and compared by a test. To write it anew:

    {command}

{passed} of {taken} tests passed ({share:.1%}), {refused} are refused with a reason, {failed} failed. Of those that
passed, {known} have a result that is known before anything runs. {left_out} tests are left out.
"""
COMMAND = "VITRIFY_WRITE_PAGES=1 pytest tests/importers/test_onnx_node_suite.py"


def page(found: dict[str, Any], version: str, opset: int) -> str:
    """The page as Markdown."""
    rows = found["rows"]
    counts = Counter(row["outcome"] for row in rows)
    head = HEAD.format(
        version=version, opset=opset, command=COMMAND, passed=counts["passed"], taken=len(rows),
        share=counts["passed"] / len(rows), refused=counts["refused"], failed=counts["failed"],
        known=sum(row["known"] for row in rows), left_out=len(found["left_out"]),
    )  # fmt: skip
    parts = [head, *_operators(rows), *_problems(rows, "refused", "Refused"), *_problems(rows, "failed", "Failed"),
             *_left_out(found["left_out"])]
    return "\n".join(parts) + "\n"


def _operators(rows: list[dict[str, Any]]) -> Iterator[str]:
    yield "## By operator\n\n| operator | passed | refused | failed |\n|---|---:|---:|---:|"
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for row in rows:
        counts[row["kind"]][row["outcome"]] += 1
    for kind, count in sorted(counts.items()):
        yield f"| {kind} | {count['passed']} | {count['refused'] or ''} | {count['failed'] or ''} |"


def _problems(rows: list[dict[str, Any]], outcome: str, title: str) -> Iterator[str]:
    problems = sorted((row["kind"], row["name"], row["reason"]) for row in rows if row["outcome"] == outcome)
    if problems:
        yield f"\n## {title}\n\n| operator | test | reason |\n|---|---|---|"
        for kind, name, reason in problems:
            yield f"| {kind} | `{name}` | {reason.replace('|', chr(92) + '|')} |"


def _left_out(tests: dict[str, str]) -> Iterator[str]:
    yield "\n## Left out\n\nThese are no programs of tensors with fixed shapes:\n"
    yield "| why | tests | which |\n|---|---:|---|"
    groups: dict[str, list[str]] = defaultdict(list)
    for name, reason in tests.items():
        groups[reason].append(name.removeprefix("test_"))
    for reason, names in sorted(groups.items()):
        yield f"| {reason} | {len(names)} | {', '.join(f'`{name}`' for name in sorted(names))} |"
