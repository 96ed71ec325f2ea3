"""`profile`: where the time and the memory of a model go, on this machine or on a chip."""
