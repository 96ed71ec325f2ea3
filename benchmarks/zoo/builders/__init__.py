"""Builders of the zoo, a family per file; each function returns a module with fresh weights."""
