"""The sections of a page, one subject each: results in, markup out."""
