"""Conformance of the functional model of the NPU: small models, and what makes streams of them."""
