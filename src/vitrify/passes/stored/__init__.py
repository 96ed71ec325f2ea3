"""Weights that a file stores in another form than the graph computes with: sparse, of 8 bits, in custom operators."""
