"""A file for each family of outputs; what it registers is found by being there."""
