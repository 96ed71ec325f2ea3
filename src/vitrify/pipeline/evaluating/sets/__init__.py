"""Samples with their labels, in the forms in which people have them: a file for each form, found by being there."""
