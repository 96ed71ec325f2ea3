"""Quantizing in memory: a model goes in, a model with its verdict comes out."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from pathlib import Path

from msgspec import structs

from vitrify.core.files import temporary_folder
from vitrify.core.progress import Silent
from vitrify.ir import Ledger, Model
from vitrify.pipeline.calls import feed_of
from vitrify.pipeline.options import DataOptions, QuantizeOptions
from vitrify.pipeline.quantizing.making import Job, make
from vitrify.pipeline.resources import Meter
from vitrify.pipeline.rows import ledger_rows
from vitrify.pipeline.steps import import_findings
from vitrify.quant.recipe import Recipe
from vitrify.results import QuantizeResult


@dataclass
class QuantizedModel(Model):
    """A quantized model with the verdict on it, and the recipe that made it.

    ``result`` is what ``vitrify quantize --json`` prints; ``result.ok`` is false where the answers are not good.
    """

    result: QuantizeResult = field(default_factory=QuantizeResult)
    recipe: Recipe = field(default_factory=Recipe)


def quantize_in_memory(model: Model, data: DataOptions, feed: object, options: QuantizeOptions,
                       recipe: Recipe | None) -> QuantizedModel:
    """Quantize a float model that is in memory; it is not changed.

    Args:
        model: the float model.
        data: which samples, and how files become inputs.
        feed: samples that Python code gives, None where they are files.
        options: what is asked for besides the recipe.
        recipe: one that Python code made.

    Raises:
        VitrifyError: the model or the data does not do.
    """
    from vitrify import tflite
    from vitrify.passes import to_integer_forms
    from vitrify.quant.copying import copy_model

    meter, chosen, ledger = Meter(), options.effective(recipe), Ledger()
    goal = options.goal(base=recipe)
    to_integer_forms(source := copy_model(model), ledger, steps=chosen.in_steps)
    with temporary_folder() as folder:
        path = folder / "float.tflite"
        given = data if feed is None else structs.replace(data, feed=feed_of(feed, folder / "kept", data))
        tflite.write(source, path)
        job = Job(data=given, recipe=chosen, goal=goal, jobs=options.jobs, analyze=options.analyze,
                  source=Path(model.source or model.main.name or "model"))
        file = folder / "int8.tflite"
        made = make(source, path, file, job, Silent())
        made.ledger = [*ledger_rows(ledger), *made.ledger]
        made.findings = [*import_findings(source), *made.findings]
        result = made.result(file, meter, recipe=str(options.recipe or ""))
    result.command, result.output = "quantize", ""
    held = {f.name: getattr(made.model, f.name) for f in fields(Model)}
    return QuantizedModel(**held, result=result, recipe=made.recipe)
