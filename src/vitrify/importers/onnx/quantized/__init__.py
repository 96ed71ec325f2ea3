"""Models that bring scales: found, and brought into the form that integer kernels take, before lowering."""
