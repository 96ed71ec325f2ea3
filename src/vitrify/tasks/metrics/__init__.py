"""Scoring what was found: a file for each kind of answer, found by being there."""
