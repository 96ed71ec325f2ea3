"""Fewer RESHAPEs and cheaper TRANSPOSEs, without changing a value."""
