"""Published architectures as int8 graphs with random weights."""
