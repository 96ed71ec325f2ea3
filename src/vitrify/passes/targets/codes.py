"""Codes of one meaning in several families of chips, for fixes that help in all of them."""

from __future__ import annotations

UNSUPPORTED = ("ethos-u.unsupported-operator", "neutron.unsupported-operator", "neutron.unknown-operator",
               "vip8000.unsupported-operator")
"""The NPU lacks the operator, or nothing public says that it has it."""

FLOAT = ("ethos-u.float-border", "ethos-u.float-tensor", "neutron.float-border", "neutron.data-type")
"""Floats where the NPU takes integers."""
