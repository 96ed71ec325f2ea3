"""Rows for the recurrent families. States are variables, which start as zeros."""

import numpy as np
from ops_harness import Case, Given, f32, fixed

import vitrify.ops as ops
from vitrify.ops import Activation

DEPTH, CELLS, UNITS = 3, 5, 2


def weights(*shape: int, seed: int) -> Given:
    return fixed(f32(*shape, low=-0.7, high=0.7, seed=seed))


def state(*shape: int) -> Given:
    return Given(np.zeros(shape, np.float32), variable=True)


def direction(seed: int, *, units: int = CELLS, coupled: bool = False, peephole: bool = False) -> list[Given | None]:
    """The 17 weights of one direction; with a projection when ``units`` is not the number of cells."""
    gates: list[Given | None] = [weights(CELLS, DEPTH, seed=seed + i) for i in range(4)]
    gates += [weights(CELLS, units, seed=seed + 10 + i) for i in range(4)]
    gates += [weights(CELLS, seed=seed + 20 + i) if peephole else None for i in range(3)]
    gates += [weights(CELLS, seed=seed + 30 + i) for i in range(4)]
    gates += [weights(units, CELLS, seed=seed + 40), weights(units, seed=seed + 41)] if units != CELLS else [None, None]
    if coupled:
        gates[0] = gates[4] = gates[8] = gates[11] = None
    return gates


TANH = {"fused_activation_function": Activation.TANH}
LSTM = {
    label: Case(ops.UnidirectionalSequenceLSTM(time_major=major, cell_clip=clip, **TANH), f32(2, 4, DEPTH),
                *direction(100, units=units, coupled=coupled, peephole=peephole),
                state(4 if major else 2, units), state(4 if major else 2, CELLS), atol=1e-6, rtol=1e-5)
    for label, (major, clip, units, coupled, peephole) in {
        "lstm": (False, 0.0, CELLS, False, False), "lstm_time_major": (True, 0.0, CELLS, False, False),
        "lstm_clipped": (False, 0.2, CELLS, False, False), "lstm_projected": (False, 0.0, UNITS, False, False),
        "lstm_coupled": (False, 0.0, CELLS, True, False), "lstm_peephole": (False, 0.0, CELLS, False, True)}.items()
} | {
    f"lstm_both_ways_{'merged' if merged else 'apart'}": Case(
        ops.BidirectionalSequenceLSTM(time_major=True, merge_outputs=merged, **TANH), f32(4, 2, DEPTH),
        *direction(100), *direction(200), state(2, CELLS), state(2, CELLS), state(2, CELLS), state(2, CELLS),
        *[None] * 9, atol=1e-6, rtol=1e-5)
    for merged in (False, True)     # time first: with batches first the runtime reads memory it never wrote
} | {
    "lstm_step": Case(ops.LSTM(**TANH), f32(2, DEPTH), *direction(100), state(2, CELLS), state(2, CELLS),
                      atol=1e-6, rtol=1e-5),
}


def plain(seed: int) -> list[Given]:
    return [weights(UNITS, DEPTH, seed=seed), weights(UNITS, UNITS, seed=seed + 1), weights(UNITS, seed=seed + 2),
            state(2, UNITS)]


RNN = {
    "rnn_step": Case(ops.RNN(**TANH), f32(2, DEPTH), *plain(7), atol=1e-6),
    "rnn": Case(ops.UnidirectionalSequenceRNN(**TANH), f32(2, 4, DEPTH), *plain(7), atol=1e-6),
    "rnn_both_ways": Case(ops.BidirectionalSequenceRNN(**TANH), f32(2, 4, DEPTH), *plain(7), *plain(17), *[None] * 3,
                          atol=1e-6),
    "rnn_both_ways_merged": Case(ops.BidirectionalSequenceRNN(merge_outputs=True, **TANH), f32(2, 4, DEPTH), *plain(7),
                                 *plain(17), *[None] * 3, atol=1e-6),
    "svdf": Case(ops.SVDF(rank=2), f32(2, DEPTH), weights(6, DEPTH, seed=1), weights(6, 4, seed=2), weights(3, seed=3),
                 state(2, 24), atol=1e-6),
}

CASES = LSTM | RNN
