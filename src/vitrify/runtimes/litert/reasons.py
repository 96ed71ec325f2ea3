"""What LiteRT says when it refuses a model, and what can be said where it says nothing."""

from __future__ import annotations

import math
from typing import Any


def reason(error: Exception, interpreter: Any) -> str:
    """LiteRT's words; where there are none, the largest tensor, which is what usually cannot be had."""
    text = str(error).strip()
    if text:
        return text
    try:
        found = max(interpreter.get_tensor_details(), key=_bytes, default=None)
    except (ValueError, RuntimeError):
        found = None
    if found is None:
        return "it gives no reason"
    return (f"it gives no reason; the largest tensor, '{found['name']}' {[int(d) for d in found['shape']]}, takes "
            f"{_bytes(found):,} bytes, and a process may have too little memory for it")


def _bytes(details: dict[str, Any]) -> int:
    return math.prod(int(d) for d in details["shape"]) * int(getattr(details["dtype"], "itemsize", 0) or
                                                             details["dtype"]().itemsize)
