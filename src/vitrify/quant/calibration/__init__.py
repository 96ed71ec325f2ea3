"""What is observed while samples run, and the ranges that are made of it."""
