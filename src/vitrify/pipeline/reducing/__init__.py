"""`reduce`: the smallest model that still fails, with all that is needed to repeat it."""
