"""Where time and memory go: measured on this machine, or estimated for a chip; never both in one column."""
