"""`quantize`: full-integer files, and all that is tried so that they keep the answer."""
