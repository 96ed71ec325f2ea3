"""Rewrites of the float graph that its integer form needs."""
