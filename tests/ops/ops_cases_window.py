"""Rows for convolutions, matrix products, pools and resizing."""

from itertools import product

from ops_harness import Case, f32, fixed, ints

import vitrify.ops as ops
from vitrify.ops import Activation, Padding

BOTH = (Padding.SAME, Padding.VALID)


def weights(*shape: int, seed: int = 3):
    return fixed(f32(*shape, low=-1, high=1, seed=seed))


CONV = {
    **{f"conv_{p.name.lower()}_stride{s}_dilation{d}": Case(
        ops.Conv2D(padding=p, stride_h=s, stride_w=s, dilation_h_factor=d, dilation_w_factor=d),
        f32(1, 10, 9, 4), weights(5, 3, 3, 4), weights(5), atol=1e-5)
       for p, s, d in product(BOTH, (1, 2, 3), (1, 2)) if s == 1 or d == 1},
    "conv_uneven": Case(ops.Conv2D(stride_h=1, stride_w=2), f32(2, 7, 8, 3), weights(5, 3, 2, 3), weights(5),
                        atol=1e-5),
    "conv_grouped": Case(ops.Conv2D(), f32(1, 5, 6, 8), weights(6, 3, 3, 4), weights(6), atol=1e-5),
    "conv_relu6": Case(ops.Conv2D(fused_activation_function=Activation.RELU6), f32(1, 5, 6, 8), weights(6, 3, 3, 8),
                       weights(6), atol=1e-5),
    "conv_1x1": Case(ops.Conv2D(), f32(1, 5, 6, 8), weights(6, 1, 1, 8), weights(6), atol=1e-5),
    **{f"depthwise_{p.name.lower()}_stride{s}_dilation{d}": Case(
        ops.DepthwiseConv2D(padding=p, stride_h=s, stride_w=s, dilation_h_factor=d, dilation_w_factor=d),
        f32(1, 10, 9, 4), weights(1, 3, 3, 4), weights(4), atol=1e-5)
       for p, s, d in product(BOTH, (1, 2), (1, 2)) if s == 1 or d == 1},
    "depthwise_multiplier": Case(ops.DepthwiseConv2D(depth_multiplier=3), f32(1, 5, 6, 4), weights(1, 3, 5, 12),
                                 weights(12), atol=1e-5),
    "transpose_conv_same": Case(ops.TransposeConv(stride_h=2, stride_w=2), ints(1, 10, 12, 3), weights(3, 3, 3, 4),
                                f32(1, 5, 6, 4), atol=1e-5),
    "transpose_conv_odd": Case(ops.TransposeConv(stride_h=2, stride_w=2), ints(1, 9, 11, 3), weights(3, 3, 3, 4),
                               f32(1, 5, 6, 4), atol=1e-5),
    "transpose_conv_valid": Case(ops.TransposeConv(padding=Padding.VALID, stride_h=2, stride_w=3), ints(1, 11, 18, 3),
                                 weights(3, 3, 3, 4), f32(1, 5, 6, 4), weights(3), atol=1e-5),
    "transpose_conv_2x2": Case(ops.TransposeConv(padding=Padding.VALID, stride_h=2, stride_w=2), ints(1, 10, 12, 3),
                               weights(3, 2, 2, 4), f32(1, 5, 6, 4), weights(3), atol=1e-5),
    "conv_3d": Case(ops.Conv3D(stride_d=2), f32(1, 5, 6, 7, 3), weights(3, 2, 3, 3, 4), weights(4), atol=1e-5),
    "conv_3d_transpose": Case(ops.Conv3DTranspose(stride_d=2, stride_h=2, stride_w=2), ints(1, 6, 8, 10, 4),
                              weights(3, 2, 3, 4, 2), f32(1, 3, 4, 5, 2), weights(4), atol=1e-5),
}

MATMUL = {
    "fully_connected": Case(ops.FullyConnected(), f32(3, 8), weights(5, 8), weights(5), atol=1e-5),
    "fully_connected_no_bias": Case(ops.FullyConnected(), f32(3, 8), weights(5, 8), None, atol=1e-5),
    "fully_connected_flattens": Case(ops.FullyConnected(), f32(2, 2, 2, 4), weights(5, 8), weights(5), atol=1e-5),
    "fully_connected_keeps": Case(ops.FullyConnected(keep_num_dims=True), f32(2, 3, 8), weights(5, 8), weights(5),
                                  atol=1e-5),
    "fully_connected_relu": Case(ops.FullyConnected(fused_activation_function=Activation.RELU), f32(3, 8),
                                 weights(5, 8), weights(5), atol=1e-5),
    **{f"batch_matmul_{x:d}{y:d}": Case(ops.BatchMatMul(adj_x=x, adj_y=y), f32(2, *((4, 3) if x else (3, 4))),
                                        f32(2, *((5, 4) if y else (4, 5)), seed=1), atol=1e-5)
       for x, y in product((False, True), (False, True))},
    "batch_matmul_broadcast": Case(ops.BatchMatMul(), f32(3, 1, 4, 6), f32(2, 6, 5, seed=1), atol=1e-5),
}

POOL = {
    f"{op.name.lower()}_{p.name.lower()}_{k}x{k + 1}_stride{s}": Case(
        op(padding=p, filter_height=k, filter_width=k + 1, stride_h=s, stride_w=s), f32(1, 7, 8, 5), atol=1e-6)
    for op in (ops.AveragePool2D, ops.MaxPool2D, ops.L2Pool2D) for p in BOTH for k, s in ((2, 1), (3, 2))
}
POOL["average_pool_relu"] = Case(
    ops.AveragePool2D(filter_height=2, filter_width=2, fused_activation_function=Activation.RELU),
    f32(1, 6, 6, 3), atol=1e-6)

RESIZE = {
    f"{op.name.lower()}_{label}_{h}x{w}": Case(op(**flags), f32(1, 5, 6, 3), ints(h, w), atol=1e-6)
    for op in (ops.ResizeBilinear, ops.ResizeNearestNeighbor)
    for label, flags in {"plain": {}, "align": {"align_corners": True}, "half": {"half_pixel_centers": True}}.items()
    for h, w in ((10, 12), (3, 4), (7, 11), (1, 1))
} | {"nearest_both": Case(ops.ResizeNearestNeighbor(align_corners=True, half_pixel_centers=True), f32(1, 5, 6, 3),
                          ints(9, 11))}

CASES = CONV | MATMUL | POOL | RESIZE
