"""The processes of a sweep: each measures the cells of one size after the other, and each cell is kept at once."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from threading import Lock
from typing import Any

import msgspec

from vitrify.core.errors import VitrifyError
from vitrify.core.isolation import Worker
from vitrify.core.progress import ProgressCallback
from vitrify.pipeline.quantizing.search.kept import Kept
from vitrify.pipeline.sweeping.cells import WORK, Task
from vitrify.pipeline.sweeping.grid import Setting, Size
from vitrify.results import CellRow

Place = tuple[Size, Setting]


class Cells:
    """What was found so far, by size and setting; safe to be told by several threads."""

    def __init__(self, places: Sequence[Place], kept: Kept, told: ProgressCallback) -> None:
        self.names = {place: f"{place[0]}, {place[1]}" for place in places}
        self.found = {place: msgspec.convert(kept[name], CellRow) for place, name in self.names.items() if name in kept}
        self._kept, self._told, self._lock = kept, told, Lock()
        told(len(self.found), len(self.names))

    def missing(self, size: Size, settings: Sequence[Setting]) -> tuple[Setting, ...]:
        """Return the settings of a size of which nothing is known."""
        return tuple(setting for setting in settings if (size, setting) not in self.found)

    def keep(self, size: Size, cell: dict[str, Any]) -> None:
        """Take in a cell; it is in the file when this returns."""
        setting = Setting(cell["precision"], cell["memory_mode"], cell["arena_bytes"])
        with self._lock:
            self._kept.add(self.names[size, setting], cell)
            self._take(size, setting, msgspec.convert(cell, CellRow))

    def give_up(self, task: Task, error: VitrifyError) -> None:
        """Let what is missing of a size tell why; it is not kept, since the next call may have more luck."""
        first = error.findings[0]
        with self._lock:
            for setting in self.missing(task.size, task.settings):
                self._take(task.size, setting, CellRow(
                    size=str(task.size), height=task.size.height, width=task.size.width, precision=setting.precision,
                    memory_mode=setting.memory_mode, arena_bytes=setting.arena_bytes, problem=first.headline,
                    code=first.code))

    def _take(self, size: Size, setting: Setting, row: CellRow) -> None:
        self.found[size, setting] = row
        self._told(len(self.found), len(self.names))

    def in_order(self) -> list[CellRow]:
        """Return all cells in the order of the grid."""
        return [self.found[place] for place in self.names]


def measure(tasks: Sequence[Task], cells: Cells, count: int) -> None:
    """Measure the tasks with ``count`` processes at once; one that dies gives its size a reason and costs no other."""
    if not tasks:
        return
    workers = [Worker("a size of the sweep") for _ in range(min(count, len(tasks)))]
    idle: SimpleQueue[Worker] = SimpleQueue()
    for worker in workers:
        idle.put(worker)

    def one(task: Task) -> None:
        worker = idle.get()
        try:
            worker.call(WORK, task, what=f"{Path(task.source).name} at {task.size}",
                        on_progress=lambda cell: cells.keep(task.size, cell))
        except VitrifyError as error:
            cells.give_up(task, error)
        finally:
            idle.put(worker)

    pool = ThreadPoolExecutor(len(workers))
    try:
        for future in as_completed([pool.submit(one, task) for task in tasks]):
            future.result()
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        for worker in workers:
            _kill(worker)
        raise
    finally:
        pool.shutdown()
        for worker in workers:
            worker.close()


def _kill(worker: Worker) -> None:
    """End a child that a thread waits for; what it started ends with it."""
    if worker.pid is not None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(worker.pid, signal.SIGKILL)
