"""The page of a run: everything is there, nothing is loaded, nothing breaks out."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import msgspec
import pytest
from report_example import HOSTILE, example, example_folder, profiled

from vitrify.report.page.charts import MOST_BARS, Bar, bars
from vitrify.report.page.html import FOLDER, fill, render_profile, render_report, write_report
from vitrify.report.page.markup import Html, table, tag
from vitrify.results import ProfileResult, RunRecord

NEVER_CLOSED = ("br", "img", "input", "meta")
OF_PROFILE = ["advice", "times", "operators", "roofline", "memory", "arena", "mapping"]
SECTIONS = ["pictures", "findings", *OF_PROFILE, "quality", "analysis", "placement", "model", "interface", "ledger",
            "calibration", "stages", "reproduce"]


class Page(HTMLParser):
    """Reads a page: its elements, its text, and whether every element is closed where it was opened."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.open: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, name: str, attributes: list[tuple[str, str | None]]) -> None:
        self.elements.append((name, dict(attributes)))
        if name not in NEVER_CLOSED:
            self.open.append(name)

    def handle_startendtag(self, name: str, attributes: list[tuple[str, str | None]]) -> None:
        self.elements.append((name, dict(attributes)))

    def handle_endtag(self, name: str) -> None:
        assert self.open.pop() == name

    def handle_data(self, data: str) -> None:
        self.text.append(data)


@pytest.fixture
def text(tmp_path: Path) -> str:
    return render_report(example(), example_folder(tmp_path))


def test_every_section_is_there_and_linked(text: str) -> None:
    page = Page(text)
    assert page.open == []
    assert [a["id"] for name, a in page.elements if name == "h2"] == SECTIONS
    assert [a["href"] for name, a in page.elements if name == "a"] == ["#main", *(f"#{name}" for name in SECTIONS)]


def test_nothing_is_loaded(text: str) -> None:
    page = Page(text)
    assert not re.search(r"https?://|//[a-z]+\.|@import|url\(", text)
    for name, attributes in page.elements:
        for key in ("src", "href", "srcset", "action", "data", "poster"):
            value = attributes.get(key) or "#"
            assert value.startswith(("data:image/png;base64,", "#")), (name, key, value)
        assert name not in ("link", "iframe", "object", "embed", "base")
    policy = next(a["content"] for name, a in page.elements if a.get("http-equiv") == "Content-Security-Policy")
    assert policy is not None
    assert policy.startswith("default-src 'none'; img-src data:;")


def test_hostile_names_stay_text(text: str) -> None:
    page = Page(text)
    assert not [a for _, a in page.elements if any(key.startswith("on") for key in a)]
    assert [name for name, _ in page.elements if name in ("script", "style")] == ["style", "script", "script"]
    assert sum(part.count(HOSTILE) for part in page.text) > 20
    assert [name for name, a in page.elements if name == "img"].count("img") == 4
    assert len([name for name, _ in page.elements if name == "main"]) == 1


def embedded(text: str) -> bytes:
    """Return the data in a page, as its script reads it."""
    return text.split('id="data">')[1].split("</script>")[0].encode()


def test_the_data_is_there_once_and_whole(tmp_path: Path) -> None:
    profile = profiled()
    page = render_profile(profile)
    assert msgspec.convert(json.loads(embedded(page))["profile"], ProfileResult) == profile
    record = example()
    held = json.loads(embedded(render_report(record, example_folder(tmp_path))))
    assert msgspec.convert(held["run"], RunRecord) == record
    assert sorted(held) == ["graph", "run", "source"]


def test_only_the_page_s_own_script_may_run(text: str) -> None:
    script = text.rsplit("<script>", 1)[1].split("</script>", 1)[0]
    assert f"script-src 'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'" in text
    assert "unsafe-inline" not in text.split("script-src", 1)[1].split('"', 1)[0]


def test_endless_names_are_not_repeated_in_pictures() -> None:
    name = "x" * 100_000
    page = render_profile(profiled(name))
    pictures = re.findall(r"<svg.*?</svg>", page)
    assert len(pictures) > 4
    assert max(map(len, pictures)) < 20_000
    assert len(page) < 100 * len(name)


def test_an_empty_profile_makes_a_page() -> None:
    page = Page(render_profile(ProfileResult()))
    assert [a["id"] for name, a in page.elements if name == "h2"] == ["method"]
    assert page.open == []


def test_a_profile_has_its_sections() -> None:
    page = Page(render_profile(profiled()))
    assert [a["id"] for name, a in page.elements if name == "h2"] == ["comparison", *OF_PROFILE, "placement", "method"]


def test_what_the_reader_must_see(text: str) -> None:
    words = " ".join(Page(text).text)
    for wanted in ("estimate", "4 to 7 ms", "Calibrated on random values", "31.5 dB", "not good", "2 partitions",
                   "all 30 aligned tensors", "float", "INT8", "-62.5 … 65", "1 sample",
                   "Transposes left", "the head", "tokens are mixed"):
        assert wanted in words, wanted


def test_an_empty_run_makes_a_page(tmp_path: Path) -> None:
    write_report(RunRecord(name="x", target="imx93", command=["vitrify"]), tmp_path, tmp_path / "report.html")
    page = Page((tmp_path / "report.html").read_text())
    assert [a["id"] for name, a in page.elements if name == "h2"] == ["reproduce"]


def test_style_knows_dark_and_print() -> None:
    style = (FOLDER / "page.css").read_text()
    assert "color-scheme: light dark" in style
    assert "@media print" in style
    used = set(re.findall(r"var\((--[a-z]+)\)", style))
    assert used <= set(re.findall(r"(--[a-z]+):", style))


@pytest.mark.parametrize(("template", "values", "wanted"), [
    ("a{{x}}b", {"x": "1"}, "a1b"),
    ("{{x}}{{y}}", {"x": "{{y}}", "y": "{{x}}"}, "{{y}}{{x}}"),
    ("plain", {}, "plain"),
])
def test_filling_looks_at_no_value_again(template: str, values: dict[str, str], wanted: str) -> None:
    assert fill(template, values) == wanted


@pytest.mark.parametrize(("made", "wanted"), [
    (tag("b", "<i>"), "<b>&lt;i&gt;</b>"),
    (tag("b", Html("<i>")), "<b><i></b>"),
    (tag("p", None, ["a", 1, tag("br")]), "<p>a1<br></p>"),
    (tag("i", class_="a", data_x='"', href=None), '<i class="a" data-x="&quot;"></i>'),
    (tag("rect", x=1), '<rect x="1"/>'),
    (table(("a", "#b"), [("<", 2)]), '<div class="scroll"><table><thead><tr><th scope="col">a</th>'
     '<th class="n" scope="col">b</th></tr></thead><tbody><tr><td>&lt;</td><td class="n">2</td></tr></tbody></table>'
     '</div>'),
])
def test_markup_escapes_what_is_not_markup(made: Html, wanted: str) -> None:
    assert made == wanted


def test_a_chart_of_many_tensors_keeps_the_worst() -> None:
    values = [Bar(f"t{index}", 50.0) for index in range(5000)]
    values[1234] = Bar("the bad one", 1.0)
    chart = bars(values, "dB", 10.0)
    assert chart.count("<rect") <= MOST_BARS
    assert "the bad one: 1.0 dB" in chart
    assert chart.count("poor") == 1
    assert bars([], "dB") == ""
