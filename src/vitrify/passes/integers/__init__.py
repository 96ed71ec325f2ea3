"""What is done only on the way to integers: operators in forms that have integer kernels."""
