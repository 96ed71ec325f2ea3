"""Rows for the elementwise families."""

import numpy as np
from ops_harness import Case, Given, boolean, f32, fixed, i32, ints, scalar

import vitrify.ops as ops
from vitrify.ops import Activation

UNARY = {
    **{op.name.lower(): Case(op(), f32(2, 3, 5)) for op in (
        ops.Abs, ops.Neg, ops.Square, ops.Exp, ops.Sin, ops.Cos, ops.Floor, ops.Ceil, ops.Round, ops.Sign,
        ops.ZerosLike)},
    **{op.name.lower(): Case(op(), f32(2, 3, 5, low=0.1, high=9)) for op in (ops.Sqrt, ops.Rsqrt, ops.Log)},
    "abs_int32": Case(ops.Abs(), i32(7)),
    "neg_int32": Case(ops.Neg(), i32(7)),
    "round_halves": Case(ops.Round(), Given(np.array([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5], np.float32))),
}

ACTIVATION = {
    **{op.name.lower(): Case(op(), f32(2, 4, 5, low=-8, high=8)) for op in (
        ops.Relu, ops.Relu6, ops.ReluN1To1, ops.Relu0To1, ops.HardSwish)},
    "elu": Case(ops.Elu(), f32(2, 4, 5), rtol=1e-6, atol=1e-7),
    "logistic": Case(ops.Logistic(), f32(2, 4, 5, low=-8, high=8)),
    "logistic_tails": Case(ops.Logistic(), f32(64, low=-95, high=95), rtol=1e-5),
    "tanh": Case(ops.Tanh(), f32(2, 4, 5)),
    "leaky_relu": Case(ops.LeakyRelu(alpha=0.1), f32(2, 4, 5)),
    "prelu": Case(ops.Prelu(), f32(1, 4, 5, 3), fixed(f32(1, 1, 3, low=0))),
    "gelu": Case(ops.Gelu(), f32(2, 4, 5), atol=1e-6),
    "gelu_tanh": Case(ops.Gelu(approximate=True), f32(2, 4, 5), atol=1e-6),
    "softmax": Case(ops.Softmax(beta=1.0), f32(2, 9, low=-8, high=8)),
    "softmax_4d": Case(ops.Softmax(beta=0.5), f32(1, 3, 2, 7)),
    "log_softmax": Case(ops.LogSoftmax(), f32(2, 9, low=-8, high=8), atol=2e-6),
    "l2_normalization": Case(ops.L2Normalization(), f32(1, 3, 4, 8)),
    "local_response": Case(ops.LocalResponseNormalization(radius=2, bias=1.0, alpha=0.2, beta=0.7), f32(1, 3, 4, 8)),
    "fake_quant": Case(ops.FakeQuant(min=-1.1, max=1.7, num_bits=8), f32(50), atol=1e-6),
}

_PAIRS = {"same": ((2, 3, 4), (2, 3, 4)), "channel": ((1, 4, 5, 3), (3,)), "both": ((1, 4, 1, 3), (2, 1, 5, 1)),
          "scalar": ((2, 3), ())}
BINARY = {
    **{f"{op.name.lower()}_{label}": Case(op(), f32(*a), f32(*b, low=0.5, seed=7))
       for label, (a, b) in _PAIRS.items() for op in (ops.Add, ops.Sub, ops.Mul, ops.Div, ops.Maximum, ops.Minimum,
                                                      ops.SquaredDifference, ops.FloorDiv, ops.FloorMod)},
    **{f"add_{act.name.lower()}": Case(ops.Add(fused_activation_function=act), f32(4, 9, low=-9, high=9), f32(4, 9))
       for act in (Activation.RELU, Activation.RELU6, Activation.RELU_N1_TO_1)},
    "mul_relu6": Case(ops.Mul(fused_activation_function=Activation.RELU6), f32(4, 9, low=-9, high=9), f32(9)),
    "pow": Case(ops.Pow(), f32(3, 4, low=0.1), f32(3, 4)),
    "pow_int": Case(ops.Pow(), i32(9, low=1, high=5), i32(9, low=0, high=4)),
    "add_int32": Case(ops.Add(), i32(3, 4), i32(4, seed=1)),
    "sub_int64": Case(ops.Sub(), i32(3, 4, dtype=np.int64), i32(4, seed=1, dtype=np.int64)),
    "mul_int32": Case(ops.Mul(), i32(3, 4), i32(4, seed=1)),
    "div_int32": Case(ops.Div(), i32(30), i32(30, low=1, high=7, seed=1)),
    "div_int32_negative": Case(ops.Div(), i32(30), i32(30, low=-7, high=-1, seed=1)),
    "floor_div_int32": Case(ops.FloorDiv(), i32(30), i32(30, low=-7, high=-1, seed=1)),
    "floor_mod_int32": Case(ops.FloorMod(), i32(30), i32(30, low=-7, high=-1, seed=1)),
    "maximum_int32": Case(ops.Maximum(), i32(3, 4), i32(4, seed=1)),
    "bitwise_xor": Case(ops.BitwiseXor(), i32(3, 4), i32(4, seed=1)),
    "right_shift": Case(ops.RightShift(), i32(9), i32(9, low=0, high=5, seed=1)),
    "atan2": Case(ops.Atan2(), f32(3, 4), f32(3, 4, seed=1)),
    "add_n": Case(ops.AddN(), f32(3, 4), f32(3, 4, seed=1), f32(3, 4, seed=2)),
}

LOGIC = {
    **{f"{op.name.lower()}_{label}": Case(op(), i32(*a, low=-2, high=3), i32(*b, low=-2, high=3, seed=1))
       for label, (a, b) in _PAIRS.items() for op in (ops.Less, ops.LessEqual, ops.Greater, ops.GreaterEqual, ops.Equal,
                                                      ops.NotEqual)},
    **{f"{op.name.lower()}_float": Case(op(), f32(3, 4), f32(3, 4, seed=1)) for op in (
        ops.Less, ops.LessEqual, ops.Greater, ops.GreaterEqual, ops.Equal, ops.NotEqual)},
    "logical_and": Case(ops.LogicalAnd(), boolean(3, 4), boolean(3, 4, seed=1)),
    "logical_or": Case(ops.LogicalOr(), boolean(3, 4), boolean(4, seed=1)),
    "logical_not": Case(ops.LogicalNot(), boolean(3, 4)),
    "select": Case(ops.Select(), boolean(3, 4), f32(3, 4), f32(3, 4, seed=1)),
    "select_rows": Case(ops.Select(), boolean(3), f32(3, 4), f32(3, 4, seed=1)),
    "select_v2": Case(ops.SelectV2(), boolean(3, 1), f32(3, 4), f32(4, seed=1)),
    "where": Case(ops.Where(), fixed(boolean(3, 4))),
}

CONVERSION = {
    "cast_float_int": Case(ops.Cast(in_data_type=0, out_data_type=2), f32(9, low=-9, high=9)),
    "cast_int_float": Case(ops.Cast(in_data_type=2, out_data_type=0), i32(9)),
    "cast_float_bool": Case(ops.Cast(in_data_type=0, out_data_type=6), f32(9)),
    "cast_int64": Case(ops.Cast(in_data_type=2, out_data_type=4), i32(9)),
    "dequantize_half": Case(ops.Dequantize(), Given(f32(9).array.astype(np.float16), True)),
    "shape": Case(ops.Shape(out_type=2), f32(2, 3, 5)),
    "shape_int64": Case(ops.Shape(out_type=4), f32(2, 3, 5)),
    "rank": Case(ops.Rank(), f32(2, 3, 5)),
    "range": Case(ops.Range(), scalar(3), scalar(20), scalar(4)),
    "range_down": Case(ops.Range(), scalar(3.5, np.float32), scalar(-2, np.float32), scalar(-0.5, np.float32)),
    "fill": Case(ops.Fill(), ints(2, 3), scalar(1.5, np.float32)),
    "broadcast_args": Case(ops.BroadcastArgs(), ints(3, 1, 4), ints(2, 1)),
}

CASES = UNARY | ACTIVATION | BINARY | LOGIC | CONVERSION
