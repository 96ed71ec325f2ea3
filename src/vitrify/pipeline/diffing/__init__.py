"""`diff`: how two models differ."""
