"""Less of the same: what is known, unused, without effect, or there twice."""
