"""`recipes`: the recipes that come along, and what each is for."""

from __future__ import annotations

import tomllib

from vitrify.results import RecipeRow, RecipesResult


def list_recipes(name: str = "") -> RecipesResult:
    """Return the recipes that come along, or the one that is named.

    Raises:
        UsageError: there is none of this name.
    """
    from vitrify.quant.presets import preset_names, preset_summary, preset_text

    return RecipesResult(name=name, recipes=[
        RecipeRow(name=one, description=preset_summary(one), sets=tomllib.loads(preset_text(one)),
                  toml=preset_text(one)) for one in ([name] if name else preset_names())])
