"""Recipes that come with the package, one file for each kind of model; `--preset NAME` takes one."""

from __future__ import annotations

from difflib import get_close_matches
from importlib.resources import files

from vitrify.core.errors import UsageError
from vitrify.quant.efforts import Effort
from vitrify.quant.recipe import Recipe, parse_recipe


def preset_names() -> list[str]:
    """The names of all presets."""
    return sorted(f.name.removesuffix(".toml") for f in files(__name__).iterdir() if f.name.endswith(".toml"))


def preset_text(name: str) -> str:
    """A preset as TOML, with comments that say what it is for.

    Raises:
        UsageError: there is none of this name.
    """
    if name not in preset_names():
        near = "".join(f"did you mean '{n}'? " for n in get_close_matches(name, preset_names(), 1))
        raise UsageError.of("recipe.preset", f"there is no preset '{name}'", where="--preset",
                            help=f"{near}presets are {', '.join(preset_names())}")
    return (files(__name__) / f"{name}.toml").read_text(encoding="utf-8")


def preset_summary(name: str) -> str:
    """What a preset is for: its file's first comment, in one line.

    Raises:
        UsageError: there is none of this name.
    """
    return " ".join(line.lstrip("# ") for line in preset_text(name).split("\n\n")[0].splitlines())


def load_preset(name: str, effort: Effort | None = None) -> Recipe:
    """The recipe of a preset.

    Raises:
        UsageError: there is none of this name.
    """
    return parse_recipe(preset_text(name), effort)


def preset_table() -> list[str]:
    """The list in Markdown, for the documentation: each file's first comment."""
    lines = ["| preset | for |", "|---|---|"]
    for name in preset_names():
        lines.append(f"| `{name}` | {preset_summary(name)} |")
    return lines
