"""Registers the eIQ Neutron SDK; what drives it is imported when it is needed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from vitrify.backends.base import Compiled, CompilerOptions, Installation, NpuPart, backend
from vitrify.core.findings import Finding
from vitrify.ir import Graph, Model
from vitrify.targets.base import Target


@backend
class Neutron:
    """NXP's converter for the eIQ Neutron NPUs; the user brings it."""

    name = "neutron"
    title = "eIQ Neutron SDK"
    ending = "_neutron.tflite"
    must_verify = True

    def installations(self, options: CompilerOptions = CompilerOptions()) -> list[Installation]:
        """Return the SDKs that were found, the one to use first."""
        from vitrify.backends.neutron.installed import find_sdks

        return [Installation(compiler=self.title, version=sdk.version, place=sdk.place, found_by=sdk.found_by)
                for sdk in find_sdks(options.where)]

    def missing(self, path: Path, target: Target, options: CompilerOptions = CompilerOptions()) -> Finding:
        """Say that there is no SDK, and how the file is compiled with one."""
        from vitrify.backends.neutron.findings import not_installed

        return not_installed(path, target, options.where)

    def check(self, path: Path, target: Target, options: CompilerOptions = CompilerOptions()) -> Compiled:
        """Convert and keep nothing (see ``backends.base.Backend``)."""
        from vitrify.backends.neutron.compiling import convert_model

        return convert_model(path, target, None, options)

    def compile(self, path: Path, target: Target, output: Path,
                options: CompilerOptions = CompilerOptions()) -> Compiled:
        """Convert and write ``output`` (see ``backends.base.Backend``)."""
        from vitrify.backends.neutron.compiling import convert_model

        return convert_model(path, target, output, options)

    def parts(self, source: Graph, compiled: Model) -> list[NpuPart]:
        """Return the Neutron graphs that can be traced to nodes of the source."""
        from vitrify.backends.neutron.result import place_nodes

        return [NpuPart(one.node, one.inputs, one.outputs, tuple(one.nodes))
                for one in place_nodes(source, compiled).graphs if one.outputs]

    def run(self, compiled: Path, target: Target, samples: Sequence[Sequence[Any]],
            options: CompilerOptions = CompilerOptions()) -> list[list[Any]] | None:
        """Return the output tensors for the samples' input tensors; None where the SDK has no runner."""
        from vitrify.backends.neutron.installed import find_sdks
        from vitrify.backends.neutron.running import run_converted

        found = find_sdks(options.where)
        if not found or not found[0].runner:
            return None
        return run_converted(found[0].runner, found[0].libraries, compiled, target.accelerator, samples)
