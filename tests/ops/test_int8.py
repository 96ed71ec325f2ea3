"""The int8 rules hold in LiteRT: what they allow runs and computes the same, what they forbid does not."""

import numpy as np
import ops_cases_elementwise
import ops_cases_shape
import ops_cases_window
import pytest
from integer_runs import in_litert
from ops_harness import Case, Int8Case, f32, ints, is_float, model_of, run_in_children

import vitrify.ops as ops
from vitrify.ir import Model, Quantization
from vitrify.ir.operator import REGISTRY
from vitrify.ops.activation import LONG_ROW
from vitrify.ops.checking import check_node
from vitrify.ops.evaluate import evaluate_graph
from vitrify.tflite import to_bytes

CASES = ops_cases_elementwise.CASES | ops_cases_shape.CASES | ops_cases_window.CASES
REAL = {label: case for label, case in CASES.items() if is_float(next(filter(is_float, case.inputs), None))}
RULED = {label: case for label, case in REAL.items() if case.op.int8 is not None}
REFUSED = {case.op.name: case for case in REAL.values() if case.op.int8 is None and case.op.int8_problem}

BEYOND_A_STEP = ("RESIZE_BILINEAR",)
"""Interpolation places its pixels with 10 bits, so that it may lie beyond a step from the real result."""
WRONG_REFERENCE = ("SUM",)
"""Operators whose reference kernel is wrong for int8; ``check`` says so."""


@pytest.fixture(scope="module")
def outcomes():
    """One child process runs all models, each in a fork, as a wrong one may abort."""
    cases = {label: Int8Case(case) for label, case in RULED.items() if case.op.name not in WRONG_REFERENCE}
    return cases, dict(zip(cases, run_in_children([case.job() for case in cases.values()]), strict=True))


@pytest.mark.parametrize("label", [label for label, case in RULED.items() if case.op.name not in WRONG_REFERENCE])
def test_ruled_operators_compute(label, outcomes):
    case, outcome = outcomes[0][label], outcomes[1][label]
    assert not isinstance(outcome, str), outcome
    for ours, theirs in zip(evaluate_graph(case.graph, case.arrays), outcome, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert case.node.op.name in BEYOND_A_STEP or case.error(outcome) <= 1.01
    assert not [f for f in check_node(case.node) if f.severity.value == "error"]


def _as_if_ruled(case):
    """Build the int8 form of a case whose operator has no rule, as if any scales were allowed."""
    kind = type(case.op)
    kind.int8 = ops.Add.int8
    try:
        return Int8Case(case)
    finally:
        del kind.int8


@pytest.fixture(scope="module")
def refusals():
    cases = {label: _as_if_ruled(case) for label, case in REFUSED.items()}
    return cases, dict(zip(cases, run_in_children([case.job() for case in cases.values()]), strict=True))


@pytest.mark.parametrize("label", REFUSED)
def test_operators_without_a_rule_fail(label, refusals):
    case, outcome = refusals[0][label], refusals[1][label]
    (found,) = check_node(case.node)
    assert found.code == "ops.no_int8"
    if case.node.op.int8_problem == "refuses int8":
        assert isinstance(outcome, str)
    else:
        assert isinstance(outcome, str) or case.error(outcome) > 2


SHARED = {case.op.name: case for case in RULED.values() if case.op.int8.same_scale}


@pytest.fixture(scope="module")
def unequal():
    cases = {name: Int8Case(case, output=Quantization.per_tensor(0.03, -20)) for name, case in SHARED.items()}
    return cases, dict(zip(cases, run_in_children([case.job() for case in cases.values()]), strict=True))


@pytest.mark.parametrize("name", SHARED)
def test_unequal_scales_are_found_and_do_go_wrong(name, unequal):
    case, outcome = unequal[0][name], unequal[1][name]
    assert "ops.unequal_scales" in {f.code for f in check_node(case.node)}
    assert isinstance(outcome, str) or case.error(outcome) > 10


FIXED = {case.op.name: case for case in RULED.values() if case.op.int8.output}


@pytest.mark.parametrize("name", FIXED)
def test_other_output_scales_are_refused(name):
    case = Int8Case(FIXED[name], output=Quantization.per_tensor(0.011, -3))
    (found,) = check_node(case.node)
    (outcome,) = run_in_children([case.job()])
    assert found.code == "ops.output_scale"
    assert "scale 0.011, zero point -3" in found.headline
    # TANH reads its output's scale, against the specification, which other runtimes follow.
    assert (isinstance(outcome, str) and "refused" in outcome) == (name != "TANH")


def _with_scales(case, inputs, output):
    built = Int8Case(case)
    for tensor in built.tensors:
        tensor.quantization = Quantization.per_tensor(inputs)
    if output:
        built.node.output.quantization = Quantization.per_tensor(output)
    return built


MULTIPLIERS = {"add": (ops.Add(), lambda scale: 2 * scale / 2**20), "sub": (ops.Sub(), lambda scale: 2 * scale / 2**20),
               "squared_difference": (ops.SquaredDifference(), lambda scale: (2 * scale) ** 2 / 2**14)}


@pytest.mark.parametrize(("op", "limit"), MULTIPLIERS.values(), ids=MULTIPLIERS.keys())
def test_the_smallest_output_scale(op, limit):
    case = Case(op, f32(3, 4), f32(3, 4, seed=1))
    exact = limit(float(np.float32(0.1)))
    highest = np.float32(exact) if float(np.float32(exact)) <= exact else np.nextafter(np.float32(exact), np.float32(0))
    bad = _with_scales(case, 0.1, float(highest))
    (found,) = check_node(bad.node)
    least = float(found.headline.rsplit(" ", 1)[1])
    good = _with_scales(case, 0.1, least)
    died, lives = run_in_children([bad.job(), good.job()])
    assert died == "died: SIGABRT"
    assert not isinstance(lives, str)
    assert not check_node(good.node)
    assert bad.node.output.name in found.help
    assert found.code == "ops.multiplier"


def test_comparison_at_scale_one():
    case = _with_scales(Case(ops.Less(), f32(3, 4), f32(3, 4, seed=1)), 1.0, None)
    assert run_in_children([case.job()]) == ["died: SIGABRT"]
    assert {f.code for f in check_node(case.node)} == {"ops.multiplier"}


def test_hard_swish_output_scale():
    bad, good = (_with_scales(Case(ops.HardSwish(), f32(3, 4)), 0.1, out) for out in (1e-4, 1e-3))
    refused, lives = run_in_children([bad.job(), good.job()])
    assert "refused" in refused
    assert not isinstance(lives, str)
    assert [f.code for f in check_node(bad.node)] == ["ops.multiplier"]
    assert not check_node(good.node)


@pytest.mark.parametrize("align", [False, True])
@pytest.mark.parametrize("half", [False, True])
def test_resize_flags(align, half):
    op = ops.ResizeBilinear(align_corners=align, half_pixel_centers=half)
    model = model_of(Case(op, f32(1, 8, 8, 2), ints(16, 16)))
    (outcome,) = run_in_children([(bytes(to_bytes(model)), [f32(1, 8, 8, 2).array])])
    findings = check_node(model.main.nodes[0])
    assert isinstance(outcome, str) == bool(findings) == (align and half)


def _spoil(what, case):
    node, rule = case.node, case.node.op.int8
    weights, bias = node.input(rule.weight), node.optional(rule.bias)
    if what == "ops.weight_zero_point":
        weights.quantization = Quantization.per_axis(weights.quantization.scale, weights.quantization.axis,
                                                     np.full(len(weights.quantization.scale), 3))
    elif what == "ops.weight_axis":
        weights.quantization = Quantization.per_axis(weights.quantization.scale, (weights.quantization.axis + 1) % 2)
    elif what == "ops.bias_scale":
        bias.quantization = Quantization.per_axis(bias.quantization.scale * np.float32(1.5), 0)
    elif what == "ops.per_axis":
        node.output.quantization = Quantization.per_axis(np.full(node.output.shape[-1], 0.02, np.float32),
                                                         len(node.output.shape) - 1)


@pytest.mark.parametrize("label", ["conv_1x1", "depthwise_multiplier", "fully_connected", "transpose_conv_2x2"])
@pytest.mark.parametrize("code", ["ops.weight_zero_point", "ops.weight_axis", "ops.bias_scale", "ops.per_axis"])
def test_wrong_weights_and_biases_are_found(code, label):
    case = Int8Case(CASES[label])
    assert not check_node(case.node)
    _spoil(code, case)
    assert [f.code for f in check_node(case.node)] == [code]


@pytest.mark.parametrize(("label", "how"), [("conv_1x1", "refused"), ("depthwise_multiplier", "died: SIGSEGV")])
def test_convolutions_without_a_bias_are_found(label, how):
    case = Int8Case(Case(CASES[label].op, *CASES[label].inputs[:2]))
    assert [f.code for f in check_node(case.node)] == ["ops.no_bias"]
    kernels = "reference" if how == "refused" else "optimized"
    (outcome,) = in_litert([(Model(graphs=[case.graph]), case.arrays)], kernels)
    assert outcome.startswith(how)


def test_every_operator_with_a_rule_has_a_row():
    rows = {case.op.name for case in RULED.values()}
    missing = {name for name, cls in REGISTRY.items() if cls.int8 is not None} - rows
    assert missing == {"QUANTIZE"}       # its reference needs the scale, which only the tensor knows


def test_versions_of_grouped_and_plain_convolutions(outcomes):
    nodes = [case.node for case in outcomes[0].values() if case.node.op.name == "CONV_2D"]
    assert {node.op.version(node) for node in nodes} == {3, 6}


@pytest.mark.parametrize(("extent", "dies"), [(LONG_ROW - 1, False), (LONG_ROW, True), (1500, True)])
def test_softmax_over_long_rows(extent, dies):
    """Scores that are all alike: half a step for each, and a shift by more than 31 bits."""
    case = Int8Case(Case(ops.Softmax(beta=1.0), f32(1, extent)))
    (outcome,) = run_in_children([(case.job()[0], [np.zeros((1, extent), np.int8)])])
    assert isinstance(outcome, str) == dies
    assert [f.code for f in check_node(case.node)] == (["ops.long_softmax"] if dies else [])
