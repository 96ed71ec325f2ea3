"""The HTML page of a build or a profile: one file with everything in it, that needs no network."""
