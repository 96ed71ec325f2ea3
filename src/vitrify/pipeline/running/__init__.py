"""`run`: a model on a picture, a recording or an array, and what it found."""
