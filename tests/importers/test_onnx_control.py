"""If, Loop, Scan, sequences and optionals: settled at import, against ONNX Runtime."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx_makers import by_litert, by_runtime, saved, sqnr_db

from vitrify.core.errors import ModelError, UnsupportedError, VitrifyError
from vitrify.importers import load
from vitrify.passes import optimize

Array = np.ndarray[Any, np.dtype[Any]]


def parsed(text: str, opset: int = 17) -> onnx.ModelProto:
    """A model from the text form of a graph."""
    return onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : {opset}]>\n{text}')


def feeds(proto: onnx.ModelProto) -> dict[str, Array]:
    rng = np.random.default_rng(4)
    found = {}
    for value in proto.graph.input:
        shape = [d.dim_value for d in value.type.tensor_type.shape.dim]
        kind = value.type.tensor_type.elem_type
        noise = rng.uniform(-2, 2, shape)
        found[value.name] = np.asarray(noise > 0 if kind == onnx.TensorProto.BOOL else noise.astype(np.float32))
    return found


LOOPS = {
    "carried": """g (float[2,3] x) => (float[2,3] y) <int64 m = {4}, bool t = {1}, float[1] half = {0.5}> {
        y = Loop <body = b (int64 i, bool c, float[2,3] a) => (bool c2, float[2,3] a2) {
            c2 = Identity (c) s = Mul (a, half) a2 = Sub (s, x) }> (m, t, x) }""",
    "no condition": """g (float[2,3] x) => (float[2,3] y) <int64 m = {3}> {
        y = Loop <body = b (int64 i, bool c, float[2,3] a) => (bool c2, float[2,3] a2) {
            c2 = Identity (c) f = Cast <to = 1> (i) a2 = Add (a, f) }> (m, , x) }""",
    "scan output": """g (float[2,3] x) => (float[2,3] y, float[4,2,3] z) <int64 m = {4}, bool t = {1}> {
        y, z = Loop <body = b (int64 i, bool c, float[2,3] a) => (bool c2, float[2,3] a2, float[2,3] s) {
            c2 = Identity (c) a2 = Sin (a) s = Add (a2, x) }> (m, t, x) }""",
    "early exit": """g (float[2,3] x) => (float[2,3] y) <int64 m = {100}, bool t = {1}, int64 last = {5}> {
        y = Loop <body = b (int64 i, bool c, float[2,3] a) => (bool c2, float[2,3] a2) {
            c2 = Less (i, last) a2 = Sin (a) }> (m, t, x) }""",
    "while": """g (float[2,3] x) => (float[2,3] y, int64 n)
        <bool t = {1}, int64 zero = {0}, int64 one = {1}, int64 ten = {10}> {
        y, n = Loop <body = b (int64 i, bool c, float[2,3] a, int64 k) => (bool c2, float[2,3] a2, int64 k2) {
            two = Add (k, one) k2 = Add (two, k) c2 = Less (k2, ten) a2 = Neg (a) }> (, t, x, zero) }""",
    "no round": """g (float[2,3] x) => (float[2,3] y) <int64 m = {0}, bool t = {1}> {
        y0 = Loop <body = b (int64 i, bool c, float[2,3] a) => (bool c2, float[2,3] a2) {
            c2 = Identity (c) a2 = Sin (a) }> (m, t, x) y = Abs (y0) }""",
    "growing": """g (float[2,3] x) => (float[16,3] y) <int64 m = {3}, bool t = {1}> {
        y = Loop <body = b (int64 i, bool c, float[n,3] a) => (bool c2, float[k,3] a2) {
            c2 = Identity (c) a2 = Concat <axis = 0> (a, a) }> (m, t, x) }""",
    "trip count of a shape": """g (float[5,3] x) => (float[3] y)
        <bool t = {1}, int64[1] start = {0}, float[3] zeros = {0,0,0}> {
        s = Shape <start = 0, end = 1> (x) m = Squeeze (s)
        y = Loop <body = b (int64 i, bool c, float[3] a) => (bool c2, float[3] a2) {
            c2 = Identity (c) row = Gather <axis = 0> (x, i) a2 = Add (a, row) }> (m, t, zeros) }""",
    "loop in a loop": """g (float[2,3] x) => (float[2,3] y) <int64 m = {2}, bool t = {1}> {
        y = Loop <body = b (int64 i, bool c, float[2,3] a) => (bool c2, float[2,3] a2) {
            c2 = Identity (c)
            a2 = Loop <body = d (int64 j, bool e, float[2,3] p) => (bool e2, float[2,3] p2) {
                e2 = Identity (e) k = Add (i, j) f = Cast <to = 1> (k) q = Mul (p, f) p2 = Add (q, a) }> (m, t, a)
            }> (m, t, x) }""",
    "if in a loop": """g (float[2,3] x) => (float[2,3] y)
        <int64 m = {4}, bool t = {1}, int64 two = {2}, int64 zero = {0}> {
        y = Loop <body = b (int64 i, bool c, float[2,3] a) => (bool c2, float[2,3] a2) {
            c2 = Identity (c) r = Mod (i, two) even = Equal (r, zero)
            a2 = If (even) <then_branch = p () => (float[2,3] v) { v = Sin (a) },
                            else_branch = q () => (float[2,3] w) { w = Add (a, x) }> }> (m, t, x) }""",
    "state and scans": """g (float[2,3] s, float[5,3] x) => (float[2,3] y, float[5,2,3] z) {
        y, z = Scan <num_scan_inputs = 1, body = b (float[2,3] a, float[3] row) => (float[2,3] a2, float[2,3] out) {
            a2 = Add (a, row) out = Sin (a2) }> (s, x) }""",
    "scan backwards": """g (float[3] s, float[5,3] x) => (float[3] y, float[5,3] z) {
        y, z = Scan <num_scan_inputs = 1, scan_input_directions = [1], scan_output_directions = [1],
            body = b (float[3] a, float[3] row) => (float[3] a2, float[3] out) {
            h = Sin (a) a2 = Add (h, row) out = Identity (a2) }> (s, x) }""",
    "scan axes": """g (float[3] s, float[3,5] x, float[5,3] w) => (float[3] y, float[3,5] z) {
        y, z = Scan <num_scan_inputs = 2, scan_input_axes = [1, 0], scan_output_axes = [-1],
            body = b (float[3] a, float[3] row, float[3] v) => (float[3] a2, float[3] out) {
            h = Mul (v, row) a2 = Add (a, h) out = Sin (a2) }> (s, x, w) }""",
    "sequence grown in a loop": """g (float[2,3] x) => (float[8,3] y) <int64 m = {4}, bool t = {1}> {
        s = SequenceEmpty ()
        q = Loop <body = b (int64 i, bool c, seq(float[2,3]) a) => (bool c2, seq(float[2,3]) a2) {
            c2 = Identity (c) f = Cast <to = 1> (i) v = Add (x, f) a2 = SequenceInsert (a, v) }> (m, t, s)
        y = ConcatFromSequence <axis = 0> (q) }""",
    "sequence": """g (float[2,3] x, float[2,3] w) => (float[2,2,3] y, float[2,3] last, int64 n)
        <int64 first = {0}, int64 end = {-1}> {
        s = SequenceConstruct (x, w) d = Add (x, w) s3 = SequenceInsert (s, d, first) s2 = SequenceErase (s3, end)
        y = ConcatFromSequence <axis = 0, new_axis = 1> (s2) last0 = SequenceAt (s3, end) last = Abs (last0)
        n = SequenceLength (s3) }""",
    "split to sequence": """g (float[7,3] x) => (float[7,3] y, float[3] z) <int64 two = {2}, int64 at = {3}> {
        s = SplitToSequence (x, two) a = SequenceAt (s, at) e = SequenceErase (s) b = SequenceInsert (e, a, at)
        y0 = ConcatFromSequence <axis = 0> (b) y = Abs (y0)
        rows = SplitToSequence <keepdims = 0> (x) z0 = SequenceAt (rows, at) z = Abs (z0) }""",
    "split by sizes": """g (float[3,7] x) => (float[3,4] y) <int64[3] sizes = {2, 4, 1}, int64 at = {1}> {
        s = SplitToSequence <axis = 1> (x, sizes) y0 = SequenceAt (s, at) y = Abs (y0) }""",
    "sequence map": """g (float[6,3] x, float[3] w) => (float[6,3] y) <int64 two = {2}> {
        s = SplitToSequence (x, two)
        q = SequenceMap <body = b (float[2,3] a, float[3] v) => (float[2,3] c) { c = Mul (a, v) }> (s, w)
        y = ConcatFromSequence <axis = 0> (q) }""",
}


def compared(proto: onnx.ModelProto, folder: Path, **options: Any) -> Any:
    given = feeds(proto)
    path = saved(proto, folder)
    wanted = by_runtime(path, given)
    model = load(path, **options)
    optimize(model, input_layout="nchw", output_layout="nchw")
    got = by_litert(model, given)
    for name, values in wanted.items():
        assert got[name].size == values.size
        assert sqnr_db(got[name].reshape(values.shape), values) > 100, name
    return model


@pytest.mark.parametrize("name", LOOPS)
def test_rounds_and_lists(name: str, tmp_path: Path) -> None:
    compared(parsed(LOOPS[name]), tmp_path)


def test_scan_over_batches(tmp_path: Path) -> None:
    text = """g (float[2,3] s, float[2,5,3] x) => (float[2,3] y, float[2,5,3] z) {
        y, z = Scan <num_scan_inputs = 1, directions = [1], body = b (float[3] a, float[3] row)
            => (float[3] a2, float[3] out) { h = Sin (a) a2 = Add (h, row) out = Abs (a2) }> (, s, x) }"""
    compared(parsed(text, 8), tmp_path)


BRANCHES = {
    "known": ("""g (float[2,3] x) => (float[2,3] y) <bool t = {0}> {
        y = If (t) <then_branch = p () => (float[2,3] v) { v = Sin (x) },
                    else_branch = q () => (float[2,3] w) { w = Abs (x) }> }""", {"ABS": 1}),
    "known by folding": ("""g (float[2,3] x) => (float[2,3] y) <int64 zero = {0}, int64 two = {2}> {
        s = Shape (x) d = Gather (s, zero) t = Equal (d, two)
        y = If (t) <then_branch = p () => (float[2,3] v) { v = Sin (x) },
                    else_branch = q () => (float[2,3] w) { w = Abs (x) }> }""", {"SIN": 1}),
    "known by an operator that is not folded": ("""g (float[2,3] x) => (float[2,3] y)
        <float[1] a = {-3}, float zero = {0}> {
        b = Elu (a) c = Squeeze (b) t = Less (c, zero)
        y = If (t) <then_branch = p () => (float[2,3] v) { v = Sin (x) },
                    else_branch = q () => (float[2,3] w) { w = Transpose (x) }> }""", {"SIN": 1}),
    "constant branches": ("""g (float[2,3] x) => (float[2,3] y) <bool t = {1}> {
        f = If (t) <then_branch = p () => (float[1] v) { v = Constant <value = float[1] {2}> () },
                    else_branch = q () => (float[1] w) { w = Constant <value = float[1] {3}> () }>
        y = Mul (x, f) }""", {"MUL": 1}),
    "chosen at run time": ("""g (float[2,3] x, bool[1] t) => (float[2,3] y, float[2,3] z) {
        y, z = If (t) <then_branch = p () => (float[2,3] v, float[2,3] v2) { v = Sin (x) v2 = Identity (x) },
                       else_branch = q () => (float[2,3] w, float[2,3] w2) { w = Abs (x) w2 = Sin (x) }> }""",
                           {"SIN": 1, "ABS": 1, "SELECT_V2": 2}),
    "chosen by a computed condition": ("""g (float[2,3] x) => (float[2,3] y) <float zero = {0}> {
        m = ReduceSum <keepdims = 0> (x) t = Greater (m, zero)
        y = If (t) <then_branch = p () => (float[2,3] v) { v = Sin (x) },
                    else_branch = q () => (float[2,3] w) { w = Abs (x) }> }""",
                                       {"GREATER": 1, "SIN": 1, "ABS": 1, "SELECT_V2": 1}),
    "inner names shadow nothing": ("""g (float[2,3] x) => (float[2,3] y) <bool t = {1}> {
        u = If (t) <then_branch = p () => (float[2,3] v) { a = Sin (x) v = Neg (a) },
                    else_branch = q () => (float[2,3] w) { w = Abs (x) }>
        r = If (t) <then_branch = p () => (float[2,3] v) { a = Cos (u) v = Abs (a) },
                    else_branch = q () => (float[2,3] w) { w = Abs (x) }>
        y = Add (r, u) }""", {"SIN": 1, "COS": 1, "ABS": 1}),
}


@pytest.mark.parametrize("name", BRANCHES)
def test_branch(name: str, tmp_path: Path) -> None:
    text, wanted = BRANCHES[name]
    model = compared(parsed(text), tmp_path)
    found = Counter(n.op.kind for n in model.main)
    assert {kind: found[kind] for kind in wanted} == wanted
    assert not {"IF", "WHILE"} & found.keys()


def test_optional_with_a_value(tmp_path: Path) -> None:
    text = """g (float[2,3] x) => (float[2,3] y) {
        o = Optional (x) h = OptionalHasElement (o)
        y = If (h) <then_branch = p () => (float[2,3] v) { e = OptionalGetElement (o) v = Sin (e) },
                    else_branch = q () => (float[2,3] w) { w = Abs (x) }> }"""
    model = load(saved(parsed(text, 18), tmp_path))
    assert [n.op.kind for n in model.main] == ["SIN"]


def test_optional_without_a_value(tmp_path: Path) -> None:
    text = """g (float[2,3] x) => (float[2,3] y) {
        h = OptionalHasElement ()
        y = If (h) <then_branch = p () => (float[2,3] v) { v = Sin (x) },
                    else_branch = q () => (float[2,3] w) { w = Abs (x) }> }"""
    model = load(saved(parsed(text, 18), tmp_path))
    assert [n.op.kind for n in model.main] == ["ABS"]


def nodes(count: int, of: str = "x") -> str:
    return " ".join(f"n{of}{i} = Sin ({f'n{of}{i - 1}' if i else of})" for i in range(count))


REFUSED: dict[str, tuple[str, type[VitrifyError], str]] = {
    "large branches": (f"""g (float[2,3] x, bool t) => (float[2,3] y) {{
        y = If (t) <then_branch = p () => (float[2,3] v) {{ {nodes(70)} v = Sin (nx69) }},
                    else_branch = q () => (float[2,3] w) {{ w = Abs (x) }}> }}""",
                       UnsupportedError, "its condition 't' is computed at run time, from input 't'"),
    "branches of different shapes": ("""g (float[2,3] x, bool t) => (float[n,m] y) {
        y = If (t) <then_branch = p () => (float[n,m] v) { v = Transpose (x) },
                    else_branch = q () => (float[n,m] w) { w = Abs (x) }> }""",
                                     UnsupportedError, "its condition 't' is computed at run time, from input 't'"),
    "trip count at run time": ("""g (float[2,3] x, int64 m) => (float[2,3] y) <bool t = {1}> {
        y = Loop <body = b (int64 i, bool c, float[2,3] a) => (bool c2, float[2,3] a2) {
            c2 = Identity (c) a2 = Sin (a) }> (m, t, x) }""",
                               UnsupportedError, "its trip count 'm' is computed at run time, from input 'm'"),
    "condition of a round": ("""g (float[2,3] x) => (float[2,3] y) <int64 m = {9}, bool t = {1}, float big = {3}> {
        y = Loop <body = b (int64 i, bool c, float[2,3] a) => (bool c2, float[2,3] a2) {
            a2 = Add (a, x) s = ReduceSum <keepdims = 0> (a2) c2 = Less (s, big) }> (m, t, x) }""",
                             UnsupportedError, "the condition of round 1 is computed at run time, from input 'x'"),
    "endless": ("""g (float[2,3] x) => (float[2,3] y) <bool t = {1}> {
        y = Loop <body = b (int64 i, bool c, float[2,3] a) => (bool c2, float[2,3] a2) {
            c2 = Identity (c) a2 = Sin (a) }> (, t, x) }""",
                UnsupportedError, "unrolling its rounds of 2 nodes makes more than 20,000"),
    "many rounds": ("""g (float[2,3] x) => (float[2,3] y) <int64 m = {1000000000}, bool t = {1}> {
        y = Loop <body = b (int64 i, bool c, float[2,3] a) => (bool c2, float[2,3] a2) {
            c2 = Identity (c) a2 = Sin (a) }> (m, t, x) }""",
                    UnsupportedError, "unrolling 1000000000 rounds of 2 nodes makes more than 20,000"),
    "long scan": ("""g (float[9000,3] x) => (float[9000,3] y) {
        y = Scan <num_scan_inputs = 1, body = b (float[3] r) => (float[3] o) { h = Sin (r) o = Abs (h) }> (x) }""",
                  UnsupportedError, "unrolling 9000 rounds of 2 nodes makes more than 20,000"),
    "constants without end": ("""g (float[2,3] x) => (float[2,3] y)
        <int64 m = {60}, bool t = {1}, float[2,3] one = {1,1,1,1,1,1}> {
        big = Loop <body = b (int64 i, bool c, float[n,3] a) => (bool c2, float[k,3] a2) {
            c2 = Identity (c) a2 = Concat <axis = 0> (a, a) }> (m, t, one)
        s = ReduceSum (big) y = Add (x, s) }""", UnsupportedError, "constants of more than 16,777,216 elements"),
    "a branch that gives too little": ("""g (float[2,3] x) => (float[2,3] y) <bool t = {1}> {
        a, y = If (t) <then_branch = p () => (float[2,3] v) { v = Sin (x) },
                       else_branch = q () => (float[2,3] w) { w = Abs (x) }> }""",
                                       ModelError, "it has 2 outputs, and 1 values are made"),
    "a body that takes too much": ("""g (float[2,3] x) => (float[2,3] y) {
        s = SequenceConstruct (x, x)
        q = SequenceMap <body = b (float[2,3] a, float[2,3] v) => (float[2,3] c) { c = Mul (a, v) }> (s)
        y = ConcatFromSequence <axis = 0> (q) }""", ModelError, "its body takes 2 values, it has 1 inputs"),
    "missing operator in the body": ("""g (float[2,3] x) => (float[2,3] y) <int64 m = {4}, bool t = {1}> {
        y = Loop <body = b (int64 i, bool c, float[2,3] a) => (bool c2, float[2,3] a2) {
            c2 = Identity (c) a2 = Nonsense (a) }> (m, t, x) }""",
                                     UnsupportedError, "Nonsense is not supported: 1 node"),
    "scans of different lengths": ("""g (float[5,3] x, float[4,3] w) => (float[4,3] y) {
        y = Scan <num_scan_inputs = 2, body = b (float[3] r, float[3] v) => (float[3] o) { o = Add (r, v) }>
            (x, w) }""",
                                   ModelError, "do not fit each other"),
    "position outside": ("""g (float[2,3] x) => (float[2,3] y) <int64 at = {2}> {
        s = SequenceConstruct (x, x) y = SequenceAt (s, at) }""", ModelError, "position 2 of a sequence of 2"),
    "no element": ("""g (float[2,3] x) => (float[2,3] y) {
        s = SequenceEmpty () y = ConcatFromSequence <axis = 0> (s) }""", ModelError, "the sequence is empty"),
    "a tensor for a sequence": ("""g (float[2,3] x) => (float[2,3] y) {
        y = ConcatFromSequence <axis = 0> (x) }""", ModelError, "input 0 is no sequence"),
    "a sequence for a tensor": ("""g (float[2,3] x) => (float[2,3] y) {
        s = SequenceConstruct (x, x) y = Abs (s) }""", ModelError, "an input is a sequence or an optional"),
    "empty optional": ("""g (float[2,3] x) => (float[2,3] y) {
        y = OptionalGetElement () }""", ModelError, "the optional has no value"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusal(name: str, tmp_path: Path) -> None:
    text, error, message = REFUSED[name]
    with pytest.raises(error, match=message):
        load(saved(parsed(text, 18), tmp_path))


def test_help_names_the_option(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError) as caught:
        load(saved(parsed(REFUSED["large branches"][0]), tmp_path))
    assert "--value t=..." in caught.value.findings[0].help
