"""Silero VAD in every form it is published in, with its state carried over; a GRU that tells speakers apart."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from pretrained_table import TO_ROUNDING, Array, Find, Pair, close, row
from road_models import speech, speech_frames

from vitrify.verify.metrics import sqnr_db

FORMS = {
    "ifless": ("written out, opset 18", "silero_vad_op18_ifless.onnx", 16000),
    "openvino": ("fixed shapes", "silero_vad_openvino_16k.onnx", 0),
    "op15": ("opset 15, 12 If", "silero_vad_16k_op15.onnx", 16000),
    "half": ("float16", "silero_vad_half.onnx", 0),
    "both": ("25 If, at 16 kHz", "silero_vad.onnx", 16000),
    "both_8k": ("25 If, at 8 kHz", "silero_vad.onnx", 8000),
}
STATE = (2, 1, 128)
CHUNK = 32
CURVE_DB = 60
"""Of a curve's probabilities: each side goes on from its own state, so that roundings add up over half a minute."""


def frames(find: Find, rate: int) -> Iterator[Array]:
    """The recording's frames; at 8 kHz every second sample of it."""
    if rate != 8000:
        yield from speech_frames(find)
        return
    samples = np.concatenate([np.zeros(32, np.float32), speech(find)[::2]])
    for start in range(0, len(samples) - 288 + 1, 256):
        yield samples[None, start:start + 288]


def decided(curves: Array) -> str:
    """Compare two curves of probabilities; most of the recording is speech."""
    before, after = curves.T
    spoken = [curve > 0.5 for curve in (before, after)]
    assert (spoken[0] == spoken[1]).all()
    assert 0.65 < spoken[1].mean() < 0.85
    assert (sqnr_db(before, after) or 0) >= CURVE_DB
    return (f"all {len(curves)} decisions the same, {spoken[1].sum()} of them speech (65 to 85 %); probabilities to "
            f"{CURVE_DB} dB or more")


def streamed(find: Find, pair: Pair, rate: int) -> str:
    """Half a minute, each side on the state that itself carries."""
    states = [np.zeros(STATE, np.float32)] * 2
    curves = []
    for frame in frames(find, rate):
        found = [runtime.run({"input": frame, "state": state})
                 for runtime, state in zip((pair.source, pair.ours), states, strict=True)]
        states = [one["stateN"] for one in found]
        curves.append([float(one["output"].reshape(-1)[0]) for one in found])
    return decided(np.array(curves))


def enter(name: str) -> None:
    """One row for one form."""
    words, file, rate = FORMS[name]
    length = 288 if rate == 8000 else 576
    row(f"silero_{name}", f"Silero VAD, {words}", f"silero_vad/{file}", "speech or not, over half a minute",
        shapes={"input": (1, length), "state": STATE},
        values={"sr": rate} if rate else {})(lambda find, pair: streamed(find, pair, rate))


for form in FORMS:
    enter(form)


@row("silero_sequence", "Silero VAD, a sequence at a time", "silero_vad/silero_vad_16k_sequence.onnx",
     "speech or not, over half a minute", shapes={"input": (CHUNK, 576)})
def sequence(find: Find, pair: Pair) -> str:
    """Second by second, each side on the state that itself carries."""
    recording = np.concatenate(list(speech_frames(find)))
    states = [{n: np.zeros((1, 1, 128), np.float32) for n in "hc"}] * 2
    curves: list[Array] = []
    for start in range(0, len(recording) - CHUNK + 1, CHUNK):
        found = [runtime.run({"input": recording[start:start + CHUNK], **state})
                 for runtime, state in zip((pair.source, pair.ours), states, strict=True)]
        states = [{n: one[f"{n}n"] for n in "hc"} for one in found]
        curves.append(np.stack([one["speech_probs"].reshape(-1) for one in found], axis=1))
    return decided(np.concatenate(curves))


@row("vowels_gru", "GRU, trained on JapaneseVowels", "vowels_gru/vowels_gru.onnx", "speakers of 370 utterances",
     trained_here=True)
def vowels(find: Find, pair: Pair) -> str:
    """Who says each utterance."""
    utterances, speakers = spoken(find)
    named = []
    for utterance in utterances:
        outputs = pair.first({"input": utterance[None]})
        close(*outputs)
        named.append([int(output.argmax()) for output in outputs])
    right = (np.array(named) == speakers[:, None]).mean(axis=0)
    assert all(before == after for before, after in named)
    assert right[1] >= 0.9, right
    return (f"{right[0]:.1%} right before, {right[1]:.1%} after (at least 90%); the same speaker each time; "
            f"{TO_ROUNDING}")


def spoken(find: Find) -> tuple[Array, Array]:
    """The utterances for testing as float32[370,29,12], and their speakers."""
    lines = find("vowels_gru/JapaneseVowels_TEST.ts").read_text().splitlines()
    rows = [line.split(":") for line in lines[lines.index("@data") + 1:] if line.strip()]
    utterances = np.zeros((len(rows), 29, 12), np.float32)
    for index, one in enumerate(rows):
        for channel, values in enumerate(one[:-1]):
            numbers = [float(value) for value in values.split(",") if value != "?"]
            utterances[index, :len(numbers), channel] = numbers
    return utterances, np.array([int(one[-1]) - 1 for one in rows])
