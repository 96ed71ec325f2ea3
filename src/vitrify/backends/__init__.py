"""Drivers of the outside compilers, one folder each. They run in child processes; what comes of them is a value."""
