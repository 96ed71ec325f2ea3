"""Conformance of the functional model of the NPU: small models, the compilers and settings that make streams of them."""
