"""What a model is for, as far as its outputs tell: recognising, decoding and drawing them."""
