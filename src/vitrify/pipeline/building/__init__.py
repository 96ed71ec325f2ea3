"""`build`: the stages of the whole way, their cache and the folder that remembers the run."""
