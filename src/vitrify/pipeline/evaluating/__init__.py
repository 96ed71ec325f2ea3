"""`eval`: forms of a model scored on one set of samples."""
