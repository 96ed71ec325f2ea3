"""Numpy kernels that are too long to stand in an operator's class."""
