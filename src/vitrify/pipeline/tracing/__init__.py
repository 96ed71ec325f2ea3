"""One tensor through all stages."""
