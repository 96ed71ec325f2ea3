"""The child's side: runs a compiler written in Python in this process, which may die of it. Imports nothing heavy."""

from __future__ import annotations

import contextlib
import ctypes
import os
import runpy
import sys
import traceback


def run_module(module: str, folder: str, arguments: list[str]) -> tuple[int, str]:
    """Do as ``python -m module`` with ``arguments`` in ``folder``; return its exit status and last message."""
    os.chdir(folder)
    sys.argv = [module, *arguments]
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
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
