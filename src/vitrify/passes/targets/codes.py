"""Codes of one meaning in several families of chips, for fixes that help in all of them."""

from __future__ import annotations

UNSUPPORTED = ("ethos-u.unsupported-operator", "neutron.unsupported-operator", "neutron.unknown-operator",
               "vip8000.unsupported-operator", "vip8000.unknown-operator", "ara.unknown-operator")
"""The NPU lacks the operator, or nothing public says that it has it."""

FLOAT = ("ethos-u.float-border", "ethos-u.float-tensor", "neutron.float-border", "neutron.float-tensor")
"""Floats where the NPU takes integers."""
