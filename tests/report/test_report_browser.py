"""The page in a real browser: its script runs, narrows the table, and nothing that a model's author wrote is run."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from report_example import example, example_folder

from vitrify.report.page.html import write_report

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
TYPED = """
<script>
const search = document.querySelector('.tools[data-table=verdicts] input');
search.value = 'CONV_2D';
search.dispatchEvent(new Event('input'));
</script>
"""


@pytest.mark.browser
@pytest.mark.slow
@pytest.mark.skipif(BROWSER is None, reason="no Chromium is installed")
def test_the_page_works_in_a_browser(tmp_path: Path) -> None:
    assert BROWSER is not None
    page = tmp_path / "report.html"
    write_report(example(), example_folder(tmp_path), page)
    page.write_text(page.read_text().replace("</body>", f"{TYPED}</body>"))
    quiet = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
             "--disable-component-update", "--enable-logging=stderr", "--v=0"]
    done = subprocess.run([BROWSER, *quiet, f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom", page.as_uri()],
                          capture_output=True, text=True, timeout=120)
    assert "1 of 3" in done.stdout                                  # the verdicts, narrowed
    assert "30 of 30" in done.stdout                                # the tensors
    assert len(re.findall(r'<tr hidden="">', done.stdout)) == 2
    assert "CONSOLE" not in done.stderr, done.stderr                # no script error, nothing refused by the policy
