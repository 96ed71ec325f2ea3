"""VeriSilicon's VIP8000 of the i.MX 8M Plus: which nodes its TFLite delegate takes, and compiles at the first run."""

from vitrify.targets.vip8000.operators import basis, operators, row, settle, variant

__all__ = ["basis", "operators", "row", "settle", "variant"]
