"""Lays a board's files out in a folder, as the probe finds them on a real one."""

from __future__ import annotations

import os
import subprocess
from functools import cache
from pathlib import Path

from vitrify.boards import Facts, Table, probe_script, read_probe
from vitrify.boards.tables import Row

DEVICES = {"imx93": "/dev/ethosu0", "imx95": "/dev/neutron0", "imx8mp": "/dev/galcore"}
CHIPS = {"imx93": ("i.MX93", "1.1", "fsl,imx93"), "imx95": ("i.MX95", "2.0", "fsl,imx95"),
         "imx8mp": ("i.MX8MP", "1.1", "fsl,imx8mp")}


def write(root: Path, path: str, data: str | bytes = "") -> Path:
    """Write a file below ``root``."""
    file = root / path.lstrip("/")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(data.encode() if isinstance(data, str) else data)
    return file


def lay_out(root: Path, table: Table, row: Row, versions: dict[str, str] | None = None,
            without: tuple[str, ...] = ()) -> Path:
    """Lay out a board of a release. ``versions`` replace the release's own; ``without`` names parts that it needs."""
    chip, revision, compatible = CHIPS[table.target]
    write(root, "/etc/os-release", f'ID=fsl-imx\nNAME="NXP i.MX Release Distro"\nPRETTY_NAME="{row.release}"\n')
    write(root, "/proc/sys/kernel/osrelease", f"{row.kernel}-lts-next-g1234abcd\n")
    for name, value in (("soc_id", chip), ("revision", revision), ("family", "Freescale i.MX")):
        write(root, f"/sys/devices/soc0/{name}", f"{value}\n")
    write(root, "/proc/device-tree/compatible", f"{compatible}-evk\0{compatible}\0".encode())
    write(root, "/proc/meminfo", "MemTotal: 2000000 kB\nMemAvailable: 1500000 kB\nCmaTotal: 983040 kB\n"
                                 "CmaFree: 900000 kB\n")
    write(root, "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "performance\n")
    packages = []
    for name, version in {**row.versions, **(versions or {})}.items():
        component = table.components.get(name)
        if component is None:
            continue
        if component.bytes:
            write(root, component.bytes, b"x" * int(version))
        elif component.folder:
            (root / f"usr/bin/tensorflow-lite-{version}/examples").mkdir(parents=True)
        elif component.python:
            (root / f"usr/lib/python3.12/site-packages/{component.python[0].replace('-', '_')}-{version}.dist-info"
             ).mkdir(parents=True)
        else:
            packages.append(f"Package: {component.packages[0]}\nVersion: {version}-r0\nStatus: install ok installed\n")
    write(root, "/var/lib/opkg/status", "\n".join(packages))
    for need in table.needs:
        if need.name not in without:
            path = need.any[0].removesuffix("*")
            if path == "/dev/dma_heap":
                write(root, f"{path}/linux,cma")
            elif not (root / path.lstrip("/")).exists():
                write(root, path, b"\x7fELF")
    for need in table.needs:
        if need.name in without:
            for path in need.any:
                (root / path.lstrip("/").removesuffix("*")).unlink(missing_ok=True)
    return root


def probed(root: Path, shell: tuple[str, ...] = ("/bin/sh", "-s")) -> str:
    """Run the probe on a tree with the system's shell, as a board does."""
    done = subprocess.run(shell, input=probe_script(), capture_output=True, text=True, timeout=60,
                          env={**os.environ, "VITRIFY_PROBE_ROOT": str(root)})
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def facts_of(root: Path) -> Facts:
    """What the probe finds in a tree."""
    return read_probe(probed(root))


@cache
def shared_facts(table_name: str, release: str, folder: Path) -> Facts:
    """The facts of a release's own tree, laid out once."""
    from vitrify.boards import tables

    table = tables()[table_name]
    row = next(one for one in table.rows if one.release == release)
    return facts_of(lay_out(folder / table_name / release, table, row))
