"""Attention without TRANSPOSEs: each head computed on its own slice of the channels.

``lanes`` says per operator where a batch axis (the heads) stands in its tensors; ``region`` follows that axis from a
BATCH_MATMUL to the reshapes that split and join it; ``unroll`` copies the region once per head.
"""
