"""The child's side: runs Vela's command line in this process, which may die of it."""

from __future__ import annotations

import contextlib
import ctypes
import os
import runpy
import sys
import traceback


def run(folder: str, arguments: list[str]) -> tuple[int, str]:
    """Run ``python -m ethosu.vela`` with ``arguments`` in ``folder``; return its exit status and last message."""
    os.chdir(folder)
    sys.argv = ["vela", *arguments]
    try:
        runpy.run_module("ethosu.vela", run_name="__main__", alter_sys=True)
    except SystemExit as leaving:
        return _status(leaving.code)
    except MemoryError:
        raise
    except Exception as error:
        traceback.print_exc()
        return 1, f"{type(error).__name__}: {error}"
    finally:
        sys.stdout.flush()
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).fflush(None)      # the compiler's own C++ output; nobody flushes it for us
    return 0, ""


def _status(code: object) -> tuple[int, str]:
    if code is None or isinstance(code, int):
        return code or 0, ""
    return 1, str(code)
