"""Who does the batches: processes of this machine, or the workers of a Dask scheduler."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from queue import SimpleQueue
from typing import Any

from vitrify.core.errors import UsageError
from vitrify.core.isolation import Worker
from vitrify.pipeline.evaluating.batches import WORK, Batch, Plan, work

Take = Callable[[Batch, dict[str, Any]], None]
AHEAD = 2
"""Batches for each worker that wait or run: few enough for constant memory, enough to keep all busy."""
ANSWER_SECONDS = 20


def by_processes(plan: Plan, batches: Iterator[Batch], count: int, take: Take) -> None:
    """Do the batches with ``count`` processes; ``take`` is called here with what came of each.

    Raises:
        VitrifyError: a batch cannot be done, or its process died.
    """
    workers = [Worker("a batch of the evaluation") for _ in range(count)]
    idle: SimpleQueue[Worker] = SimpleQueue()
    for worker in workers:
        idle.put(worker)

    def one(batch: Batch) -> dict[str, Any]:
        worker = idle.get()
        try:
            found: dict[str, Any] = worker.call(WORK, plan, batch, what=f"samples from number {batch.first}")
            return found
        finally:
            idle.put(worker)

    pool = ThreadPoolExecutor(count)
    waiting: dict[Future[dict[str, Any]], Batch] = {}
    try:
        for batch in batches:
            waiting[pool.submit(one, batch)] = batch
            if len(waiting) >= count * AHEAD:
                _taken(waiting, take)
        while waiting:
            _taken(waiting, take)
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        for worker in workers:
            if worker.pid is not None:
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(worker.pid, signal.SIGKILL)
        raise
    finally:
        pool.shutdown()
        for worker in workers:
            worker.close()


def _taken(waiting: dict[Future[dict[str, Any]], Batch], take: Take) -> None:
    for future in wait(waiting, return_when=FIRST_COMPLETED).done:
        take(waiting.pop(future), future.result())


def by_scheduler(plan: Plan, batches: Iterator[Batch], address: str, take: Take) -> int:
    """Do the batches with the workers of a Dask scheduler; returns how many there are.

    Each worker needs this package, and the models and the data at the same places.

    Raises:
        UsageError: Dask is not installed, or nobody answers at the address.
        VitrifyError: a batch cannot be done.
    """
    try:
        from distributed import Client, as_completed
    except ImportError as error:
        raise UsageError.of("eval.dask", "a scheduler needs the package 'distributed'", where="--scheduler",
                            help="pip install 'vitrify[dask]', on the machines of the workers too") from error
    try:
        client = Client(address, timeout=ANSWER_SECONDS, set_as_default=False)
    except (OSError, ValueError, TimeoutError) as error:
        raise UsageError.of("eval.scheduler", f"no Dask scheduler answers at {address}", where="--scheduler",
                            why=str(error), help="start one: dask scheduler, and dask worker ADDRESS on each machine"
                            ) from error
    with client:
        count = max(1, len(client.scheduler_info(n_workers=-1)["workers"]))
        waiting: dict[Any, Batch] = {}
        done = as_completed(loop=client.loop)
        for batch in _first(batches, count * AHEAD):
            _submit(client, plan, batch, waiting, done)
        for future in done:
            take(waiting.pop(future), future.result())
            future.release()
            for batch in _first(batches, 1):
                _submit(client, plan, batch, waiting, done)
    return count


def _submit(client: Any, plan: Plan, batch: Batch, waiting: dict[Any, Batch], done: Any) -> None:
    future = client.submit(work, plan, batch, pure=False)
    waiting[future] = batch
    done.add(future)


def _first(batches: Iterator[Batch], count: int) -> Sequence[Batch]:
    found = []
    for _ in range(count):
        batch = next(batches, None)
        if batch is None:
            break
        found.append(batch)
    return found
