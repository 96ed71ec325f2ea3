from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from board_trees import shared_facts

from vitrify.boards import Facts

FactsOf = Callable[[str, str], Facts]


@pytest.fixture(scope="session")
def release_facts(tmp_path_factory: pytest.TempPathFactory) -> FactsOf:
    """The facts of a table's release, asked by the real probe in a tree of its files."""
    folder: Path = tmp_path_factory.mktemp("releases")
    return lambda table, release: shared_facts(table, release, folder)
