"""Tasks of sound in int8: where speech is, who speaks."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from int8_tasks import Array, Find, Measured, sides, task
from pretrained_sounds import between, mel_power, turns
from road_models import SILERO_FIXED, speech_frames

from vitrify.runtimes import open as open_model
from vitrify.runtimes.base import Runtime

STATE = (2, 1, 128)
EVERY = 15
FRAME = 512 / 16000


@task("silero_vad", "Silero VAD", SILERO_FIXED,
      "937 frames that agree with the labels, each side on its own state. Calibrated on each 15th frame",
      "at most 1 point less")
def vad(find: Find, folder: Path) -> Measured:
    """Speech or not, frame by frame."""
    source, frames = find(SILERO_FIXED), list(speech_frames(find))
    given, state = [], np.zeros(STATE, np.float32)
    with open_model(source) as running:
        for number, frame in enumerate(frames):
            if number % EVERY == 0:
                given.append({"input": frame, "state": state})
            state = running.run({"input": frame, "state": state})["stateN"]
    both = sides(source, given, folder)
    curves = [curve(side, frames) > 0.5 for side in (both.source, both.ours)]
    spoken = np.zeros(len(frames), bool)
    for begin, end, _ in turns(find):
        middle = (np.arange(len(frames)) + 0.5) * FRAME
        spoken |= (middle >= begin) & (middle < end)
    right = [float((one == spoken).mean()) for one in curves]
    alike = float((curves[0] == curves[1]).mean())
    return Measured(f"{right[0]:.1%}", f"{right[1]:.1%}; {alike:.1%} as in float", "", right[1] >= right[0] - 0.01)


def curve(side: Runtime, frames: list[Array]) -> Array:
    """The probability of each frame."""
    state, found = np.zeros(STATE, np.float32), []
    for frame in frames:
        outputs = side.run({"input": frame, "state": state})
        state = outputs["stateN"]
        found.append(float(outputs["output"].reshape(-1)[0]))
    return np.array(found)


def speaker(find: Find, folder: Path, **how: object) -> list[float]:
    """The cosine of each embedding with the float model's, for the long turns."""
    long = [(begin, end) for begin, end, _ in turns(find) if end - begin > 1.8]

    def mels(begin: float) -> dict[str, Array]:
        return {"input": mel_power(between(find, begin, begin + 1.6), 40)[:160].astype(np.float32)[None]}

    given = [mels(late) for begin, end in long for late in np.arange(begin, end - 1.7, 0.8)]
    both = sides(find("speaker_lstm/speaker_lstm.onnx"), given, folder, shapes={"input": (1, 160, 40)}, **how)
    cosines = []
    for begin, end in long:
        if end - begin > 2:
            before, after = both.first(mels(begin + 0.2))
            cosines.append(float(before[0] @ after[0] / np.linalg.norm(before) / max(np.linalg.norm(after), 1e-9)))
    return cosines


@task("speaker_lstm", "Speaker encoder, 3 LSTM layers", "speaker_lstm/speaker_lstm.onnx",
      "least cosine of 5 embeddings with the float model's", "0.99", met=False)
def speaker_int8(find: Find, folder: Path) -> Measured:
    """Powers over 90 dB in 8 bits."""
    found = speaker(find, folder)
    return Measured("", f"{min(found):.3f}", "", min(found) >= 0.99)


@task("speaker_lstm_int16", "the same, inputs and activations in 16 bits", "speaker_lstm/speaker_lstm.onnx",
      "least and mean cosine of 5 embeddings with the float model's", "0.99", met=False)
def speaker_int16(find: Find, folder: Path) -> Measured:
    """What 16 bits keep of them."""
    from vitrify.quant import Recipe

    found = speaker(find, folder, recipe=Recipe(activations="int16", input_type="int16"))
    return Measured("", f"{min(found):.3f}, mean {np.mean(found):.3f}", "", min(found) >= 0.99)
