"""Makes folders that look like the SDK's, with the stand-in's programs in them, and models for them."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from vela_networks import Network

from neutron_stand_in.logs import MARK

TARGETS = ("imx943", "imx95", "imxrt700", "mcxn54x", "mcxn94x")
_SCRIPT = """#!/bin/sh
case "$1" in
--version) echo "{version}"; echo "{mark}";;
--show-targets) echo "Supported targets:"; for one in {targets}; do echo "  $one"; done;;
*) exec {call} "$@";;
esac
"""
_PROGRAMS = Path(__file__).with_name("programs.py")


def make_sdk(folder: Path, *, runner: bool = True, **settings: Any) -> Path:
    """Make an SDK that behaves as ``settings`` say (see ``programs``)."""
    (folder / "bin").mkdir(parents=True)
    (folder / "lib").mkdir()
    (folder / "settings.json").write_text(json.dumps(settings))
    for name in ("neutron-converter", *(("neutron-runner",) if runner else ())):
        program = folder / "bin" / name
        program.write_text(_SCRIPT.format(
            version="neutron-converter" if settings.get("mode") == "no-version" else
            f"neutron-converter version {settings.get('version', '3.1.3')}+0X1a2b3c4d", mark=MARK,
            targets=" ".join(settings.get("targets", TARGETS)),
            call=f'"{sys.executable}" "{_PROGRAMS}" {name} "{folder}/settings.json"'))
        program.chmod(0o755)
    return folder


def five_graphs(path: Path, size: int = 8, graphs: int = 5) -> Path:
    """A model that the stand-in cuts into ``graphs`` Neutron graphs."""
    net = Network(1, size, size, 8)
    x = net.x
    for number in range(graphs):
        x = net.conv(net.conv(x, 8, 3, name=f"conv{number}a"), 8, 1, name=f"conv{number}b")
        x = x if number == graphs - 1 else net.gather(x, f"gather{number}")
    return net.save(path, x)
