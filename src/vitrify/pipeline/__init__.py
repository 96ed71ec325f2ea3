"""The commands as functions, and `build`: named stages with a cache, in a folder that remembers the run."""
