"""Build one model of the table and export it; runs as a child process in the zoo's own environment.

    python export.py NAME
"""

from __future__ import annotations

import contextlib
import importlib
import io
import sys
import warnings
from types import ModuleType

import numpy as np
import samples
import torch
from table import Entry, entries
from weights import settle

BATCHES, BATCH, KEPT = 2, 4, 3
"""Batches and samples per batch that statistics are measured on; samples kept for comparing."""


def import_torchvision() -> None:
    """Import torchvision, also beside a build of torch for which its compiled operators do not load.

    It then asks for two operators by name; the models of the zoo call neither.
    """
    try:
        importlib.import_module("torchvision")
    except RuntimeError:
        for name in ("nms", "qnms"):
            torch.library.define(f"torchvision::{name}", "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        importlib.import_module("torchvision")


def built(entry: Entry) -> torch.nn.Module:
    """Return the model as its library makes it."""
    torch.manual_seed(0)
    np.random.seed(0)
    net: torch.nn.Module = getattr(builder(entry), entry.builder.split(".")[1])(**entry.arguments)
    return net


def prepared(entry: Entry, net: torch.nn.Module) -> torch.nn.Module:
    """Return the model ready to export. A builder's file may have a ``finish`` for what comes after the statistics."""
    batches = [samples.draw(entry, BATCH, seed) for seed in range(1, BATCHES + 1)]
    net = settle(net, batches)
    finish = getattr(builder(entry), "finish", None)
    return finish(net, batches[0]) if finish else net


def builder(entry: Entry) -> ModuleType:
    """Return the file of builders that makes the model."""
    return importlib.import_module(f"builders.{entry.builder.split('.')[0]}")


def export(entry: Entry, net: torch.nn.Module) -> None:
    """Write the ONNX file aside and move it into place, with the sample inputs first: a file never stands alone."""
    kind, opset = entry.exporter.split("-")
    part = entry.onnx.with_suffix(".part")
    options = {"dynamo": True, "external_data": False} if kind == "dynamo" else {"dynamo": False}
    with torch.no_grad(), warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        torch.onnx.export(net, samples.draw(entry, 1, 1), str(part), opset_version=int(opset),
                          input_names=[i.name for i in entry.inputs], **options)
    kept = [samples.draw(entry, 1, 100 + k) for k in range(KEPT)]
    arrays = {i.name: np.stack([s[k].numpy() for s in kept]) for k, i in enumerate(entry.inputs)}
    np.savez(entry.samples, **arrays)
    part.replace(entry.onnx)


def main() -> None:
    """Build and export the model named on the command line."""
    torch.set_num_threads(1)
    import_torchvision()
    (entry,) = entries(sys.argv[1:2])
    export(entry, prepared(entry, built(entry)))


if __name__ == "__main__":
    main()
