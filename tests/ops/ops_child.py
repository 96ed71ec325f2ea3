"""Reads pickled (model, arrays) jobs, runs each in a fork, writes the pickled outcomes."""

import os
import pickle
import signal
import sys

import ai_edge_litert.interpreter  # noqa: F401  (loaded once, before the forks)
from ops_harness import run_bytes


def run_apart(data, arrays):
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        try:
            outcome = run_bytes(data, arrays)
        except (ValueError, RuntimeError) as error:
            outcome = f"refused: {error}"
        with os.fdopen(writer, "wb") as stream:
            pickle.dump(outcome, stream)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as stream:
        answer = stream.read()
    status = os.waitpid(child, 0)[1]
    if os.WIFSIGNALED(status):
        return f"died: {signal.Signals(os.WTERMSIG(status)).name}"
    return pickle.loads(answer)


if __name__ == "__main__":
    jobs = pickle.load(sys.stdin.buffer)
    outcomes = [run_apart(*job) for job in jobs]
    sys.stdout.buffer.write(pickle.dumps(outcomes))
