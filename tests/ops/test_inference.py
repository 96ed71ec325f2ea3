"""Shape inference: what it refuses and in which words, and properties over random shapes."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from ops_harness import Case, f32, i32, ints, model_of, run, scalar

import vitrify.ops as ops
from scale import examples
from vitrify.core.errors import ModelError, UnsupportedError
from vitrify.ir import DType, Tensor
from vitrify.ops import Padding

REFUSALS = {
    "conv_channels": (Case(ops.Conv2D(), f32(1, 4, 4, 3), f32(2, 3, 3, 4)), "weights for 4 input channels, x has 3"),
    "conv_groups": (Case(ops.Conv2D(), f32(1, 4, 4, 4), f32(3, 3, 3, 2)), "3 output channels, not a multiple of its 2"),
    "conv_rank": (Case(ops.Conv2D(), f32(4, 4, 3), f32(2, 3, 3, 3)), "needs 4 dimensions in input 0, got 3"),
    "conv_window": (Case(ops.Conv2D(padding=Padding.VALID), f32(1, 2, 2, 3), f32(2, 3, 3, 3)), "window of 3 over 2"),
    "conv_bias": (Case(ops.Conv2D(), f32(1, 4, 4, 3), f32(2, 3, 3, 3), f32(3)), "3 biases for 2 output channels"),
    "conv_missing": (Case(ops.Conv2D(), f32(1, 4, 4, 3), None), "needs its input 1, which is left out"),
    "conv_stride": (Case(ops.Conv2D(stride_h=0), f32(1, 4, 4, 3), f32(2, 3, 3, 3)), "positive taps, stride"),
    "depthwise_channels": (Case(ops.DepthwiseConv2D(), f32(1, 4, 4, 3), f32(1, 3, 3, 4)), "not a multiple of the 3"),
    "transposed_size": (Case(ops.TransposeConv(stride_h=2, stride_w=2), ints(1, 7, 8, 2), f32(2, 3, 3, 3),
                             f32(1, 3, 4, 3)), r"would bring to \[4, 4\], not to the \[3, 4\]"),
    "add_shapes": (Case(ops.Add(), f32(2, 3), f32(4)), r"cannot broadcast \[2, 3\] and \[4\]"),
    "add_types": (Case(ops.Add(), f32(2, 3), i32(2, 3)), "one element type, got float32 and int32"),
    "add_count": (Case(ops.Add(), f32(2, 3)), "takes 2 inputs, got 1"),
    "reshape": (Case(ops.Reshape(), f32(2, 3), ints(4, -1)), r"cannot bring 6 elements \[2, 3\] to \[4, -1\]"),
    "reshape_two_free": (Case(ops.Reshape(), f32(2, 3), ints(-1, -1)), "cannot bring 6 elements"),
    "reshape_negative": (Case(ops.Reshape(), f32(2, 3), ints(-2, -3)), "cannot bring 6 elements"),
    "transpose": (Case(ops.Transpose(), f32(2, 3), ints(0, 0)), r"the order \[0, 0\] for 2 axes"),
    "squeeze": (Case(ops.Squeeze(squeeze_dims=(1,)), f32(1, 3)), "which are not all 1"),
    "concat": (Case(ops.Concatenation(axis=1), f32(2, 3), f32(3, 3)), r"cannot join float32\[3,3\] to float32\[2,3\]"),
    "split": (Case(ops.Split(num_splits=2), scalar(1), f32(2, 3)), "an axis of 3 into 2 equal parts"),
    "split_v": (Case(ops.SplitV(num_splits=2), f32(2, 3), ints(1, 1), scalar(1)), r"into 2 parts of \[1, 1\]"),
    "slice": (Case(ops.Slice(), f32(4), ints(3), ints(2)), "outside of"),
    "strided_shrink": (Case(ops.StridedSlice(shrink_axis_mask=1), f32(4), ints(4), ints(5), ints(1)), "out of bounds"),
    "strided_step": (Case(ops.StridedSlice(), f32(4), ints(0), ints(4), ints(0)), r"strides \[0\]"),
    "reduce_axis": (Case(ops.Mean(), f32(2, 3), ints(2)), "axis 2, outside of 2 dimensions"),
    "fully_connected": (Case(ops.FullyConnected(), f32(2, 3), f32(4, 5)), "rows of 5, which 6 elements"),
    "batch_matmul": (Case(ops.BatchMatMul(), f32(2, 3), f32(4, 5)), "multiplies 2x3 by 4x5"),
    "gather_batch": (Case(ops.Gather(axis=0, batch_dims=1), f32(2, 3), ints([[0], [1]])), "1 batch axes for axis 0"),
    "pad": (Case(ops.Pad(), f32(2, 3), ints([[1, 1]])), "for 2 axes"),
    "mirror": (Case(ops.MirrorPad(mode=0), f32(2, 3), ints([[2, 0], [0, 0]])), "mirrors"),
    "space_to_depth": (Case(ops.SpaceToDepth(block_size=2), f32(1, 3, 4, 1)), "cannot cut 3x4 into blocks of 2"),
    "resize": (Case(ops.ResizeBilinear(), f32(1, 3, 4, 1), ints(0, 2)), r"positive height and width, got \[0, 2\]"),
    "prelu": (Case(ops.Prelu(), f32(1, 3), f32(2, 3)), "does not broadcast to"),
    "lstm": (Case(ops.UnidirectionalSequenceLSTM(), f32(1, 5, 3), None, f32(4, 2), None, None, None, f32(4, 4)),
             r"weights \[4,2\] and \[4,4\] for inputs of 3"),
}


@pytest.mark.parametrize(("case", "message"), REFUSALS.values(), ids=REFUSALS.keys())
def test_refuses(case, message):
    with pytest.raises(ModelError, match=message) as refusal:
        case.op.infer(case.tensors())
    assert case.op.kind in str(refusal.value)
    assert all(f"[{','.join(map(str, g.array.shape))}]" in refusal.value.findings[0].where for g in case.inputs if g)


def test_a_shape_computed_at_run_time_is_not_done_yet():
    shape = Tensor("shape", DType.INT32, (2,))
    with pytest.raises(UnsupportedError, match="takes its new shape from 'shape', which is computed at run time"):
        ops.Reshape().infer([Tensor("x", DType.FLOAT32, (2, 3)), shape])


@pytest.mark.parametrize("op", [ops.ReadVariable(), ops.Custom(custom_code="Mine")])
def test_unknown_outputs_are_said_to_be(op):
    with pytest.raises(UnsupportedError, match=f"output shape of {op.kind}"):
        op.infer([])
    with pytest.raises(UnsupportedError, match=f"{op.kind} has no numpy reference"):
        op.evaluate([])


def test_bits_keep_their_type_until_the_output_names_another():
    x = Tensor("x", DType.FLOAT32, (2, 3))
    assert ops.Bitcast().infer([x]) == [x.type]
    with pytest.raises(UnsupportedError, match="BITCAST has no numpy reference"):
        ops.Bitcast().evaluate([])


EVALUATIONS = {
    "pow": (Case(ops.Pow(), i32(3), ints(1, -1, 2)), "a negative integer power"),
    "gather": (Case(ops.Gather(), f32(3), ints(1, 3)), "an index outside of 3 elements"),
    "gather_nd": (Case(ops.GatherND(), f32(3, 2), ints([[2, 2]])), r"an index outside of \[3, 2\]"),
    "scatter_nd": (Case(ops.ScatterND(), ints([[5]]), f32(1), ints(3)), r"an update outside of \[3\]"),
    "embedding": (Case(ops.EmbeddingLookup(), ints(4), f32(3, 2)), "an id outside of the table"),
    "add_count": (Case(ops.Add(), f32(2), None), "needs its input 1"),
}


@pytest.mark.parametrize(("case", "message"), EVALUATIONS.values(), ids=EVALUATIONS.keys())
def test_refuses_values(case, message):
    with pytest.raises(ModelError, match=message):
        case.op.evaluate(case.arrays)


shapes = st.lists(st.integers(1, 4), min_size=0, max_size=4).map(tuple)


@settings(max_examples=examples(60), deadline=None)
@given(shapes, st.data())
def test_broadcasting_is_the_runtimes(shape, data):
    start = data.draw(st.integers(0, len(shape)))
    other = tuple(data.draw(st.sampled_from([1, extent])) for extent in shape[start:])
    one = tuple(data.draw(st.sampled_from([1, extent])) for extent in shape)
    case = Case(ops.Sub(), f32(*one), f32(*other, seed=5))
    (inferred,) = case.op.infer(case.tensors())
    (answer,) = run(model_of(case), [g.array for g in case.inputs])
    np.testing.assert_array_equal(case.op.evaluate(case.arrays)[0], answer)
    assert inferred.shape == answer.shape


@settings(max_examples=examples(120), deadline=None)
@given(st.lists(st.integers(1, 6), min_size=1, max_size=4).map(tuple), st.data())
def test_strided_slices_are_the_runtimes(shape, data):
    rank = len(shape)
    bounds = st.lists(st.integers(-8, 8), min_size=rank, max_size=rank)
    begin, end = data.draw(bounds), data.draw(bounds)
    strides = data.draw(st.lists(st.sampled_from([-3, -2, -1, 1, 2, 3]), min_size=rank, max_size=rank))
    masks = {name: data.draw(st.integers(0, 2**rank - 1)) for name in ("begin_mask", "end_mask", "shrink_axis_mask")}
    for i, extent in enumerate(shape):
        if masks["shrink_axis_mask"] >> i & 1:     # one index within the axis; the runtime wants a step forward there
            begin[i], strides[i] = begin[i] % extent, 1
    case = Case(ops.StridedSlice(**masks), f32(*shape), ints(*begin), ints(*end), ints(*strides))
    (inferred,) = case.op.infer(case.tensors())
    (ours,) = case.op.evaluate(case.arrays)
    assert ours.shape == inferred.shape
    if ours.size:                                  # the runtime gives no tensor for an empty one
        (answer,) = run(model_of(case), [case.inputs[0].array])
        np.testing.assert_array_equal(ours, answer)


@settings(max_examples=examples(60), deadline=None)
@given(st.integers(1, 12), st.integers(1, 5), st.integers(1, 4), st.integers(1, 3), st.sampled_from(Padding))
def test_windows_are_the_runtimes(size, taps, stride, dilation, padding):
    op = ops.DepthwiseConv2D(padding=padding, stride_h=stride, stride_w=stride, dilation_h_factor=dilation)
    assume(stride == 1 or dilation == 1)
    case = Case(op, f32(1, size, 6, 2), ints([[[[1.0, 2.0]]] * taps], dtype=np.float32))
    if padding is Padding.VALID and (taps - 1) * dilation + 1 > size:
        with pytest.raises(ModelError, match="window of"):
            op.infer(case.tensors())
        return
    (answer,) = run(model_of(case), [case.inputs[0].array])
    np.testing.assert_allclose(op.evaluate(case.arrays)[0], answer, rtol=1e-5, atol=1e-5)
