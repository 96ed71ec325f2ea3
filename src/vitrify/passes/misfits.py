"""Nodes whose inputs do not fit their operator, looked for when a pass stumbles."""

from __future__ import annotations

import msgspec.structs

from vitrify.core.errors import ModelError, UnsupportedError
from vitrify.core.findings import Finding
from vitrify.ir import Model, Tensor


def misfits(model: Model) -> list[Finding]:
    """Ask every operator whether it can take its inputs; returns one finding for each that cannot.

    A file may hold such nodes as long as nothing computes with them, so this is not asked beforehand.
    """
    found: list[Finding] = []
    for graph in model.graphs:
        for node in graph:
            where = f"node '{node.name}' ({node.op.kind})"
            try:
                inferred = node.op.infer(node.inputs)
            except UnsupportedError:
                continue                    # a shape that is known at run time only, or an operator without a rule
            except ModelError as error:
                found += [msgspec.structs.replace(finding, where=f"{where}, {finding.where}".rstrip(", "))
                          for finding in error.findings]
                continue
            except TypeError:
                continue                    # an operator that is carried, not understood
            found += [_wrong_shape(where, tensor, fits.shape)
                      for tensor, fits in zip(node.outputs, inferred, strict=False) if tensor.shape != fits.shape]
    return found


def _wrong_shape(where: str, tensor: Tensor, shape: tuple[int, ...]) -> Finding:
    headline = f"'{tensor.name}' is said to be {list(tensor.shape)}, but its operator gives {list(shape)}"
    return Finding(code="passes.shape", headline=headline, where=where)
