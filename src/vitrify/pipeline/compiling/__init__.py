"""`compile`: a target's own compiler, and the search for its best settings."""
