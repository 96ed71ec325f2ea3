"""Scaling channels against each other, exactly in float, so that one scale for a tensor serves all of them."""
