"""Measurements of a board: read from a benchmark's own output or typed in, kept in the workspace, correcting estimates.
"""
