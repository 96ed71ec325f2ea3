"""`sweep`: one model over sizes, precisions and memory modes of a target."""
