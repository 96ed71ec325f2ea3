"""Networks that listen: notes in music, who speaks, whether a sentence has ended."""

from __future__ import annotations

import numpy as np
from pretrained_sounds import between, last_seconds, mel_power, turns
from pretrained_table import LEAST_DB, Find, Pair, close, row
from road_models import notes

from vitrify.core.files import temporary_folder

PRESENT = 0.3
TONES = ((), (69,), (60, 64, 67), (45,), (57, 61, 64, 69))
"""MIDI numbers of the chords; the first sound is talk."""
TONES_DB = 50
NOTES_DB = f"; outputs to {LEAST_DB} dB or more for talk, {TONES_DB} dB or more for the pure tones"


def same_notes(find: Find, pair: Pair, output: str) -> str:
    """Every note in every frame, and those that were played among them."""
    with temporary_folder() as folder:
        notes(find, folder)
        sounds = np.load(folder / "sounds.npy")
    heard = 0
    for sound, tones in zip(sounds, TONES, strict=True):
        (taken,) = pair.source.interface.inputs
        before, after = pair.run({taken.name: sound[None]})
        for key in before:      # the logarithm of what lies between pure tones is that of roundings
            close(before[key], after[key], TONES_DB if tones else LEAST_DB)
        present = [outputs[output][0] > PRESENT for outputs in (before, after)]
        assert (present[0] == present[1]).all(), tones
        assert {tone - 21 for tone in tones} <= set(np.flatnonzero(present[1].mean(axis=0) > 0.5)), tones
        heard += len(tones)
    return f"the same notes in every frame, the {heard} that were played among them"


@row("basic_pitch", "Basic Pitch, ONNX", "basic_pitch/nmp.onnx", "notes in 4 chords and in talk")
def basic_pitch(find: Find, pair: Pair) -> str:
    """From ONNX."""
    return same_notes(find, pair, "StatefulPartitionedCall:1") + NOTES_DB


@row("basic_pitch_tflite", "Basic Pitch, TFLite", "basic_pitch/nmp.tflite", "notes in 4 chords and in talk")
def basic_pitch_tflite(find: Find, pair: Pair) -> str:
    """From TFLite."""
    return same_notes(find, pair, "note") + NOTES_DB


@row("speaker_lstm", "Speaker encoder, 3 LSTM layers", "speaker_lstm/speaker_lstm.onnx",
     "how alike 6 stretches of two speakers are")
def speaker(find: Find, pair: Pair) -> str:
    """The likeness of every two stretches of 1.6 seconds."""
    begins = [(begin, who) for begin, end, who in turns(find) if end - begin > 2]
    stretches = [(begin + late, who) for begin, who in begins for late in (0.2,)] + [(23.5, begins[-2][1])]
    embedded = []
    for begin, _ in stretches[:6]:
        mels = mel_power(between(find, begin, begin + 1.6), 40)[:160]
        outputs = pair.first({"input": mels.astype(np.float32)[None]})
        close(*outputs, 80)
        embedded.append([output[0] for output in outputs])
    alike = [side @ side.T for side in np.array(embedded).transpose(1, 0, 2)]
    assert np.allclose(alike[0], alike[1], atol=1e-4)
    assert alike[1].min() < 0.9
    return f"{len(embedded)} embeddings to 80 dB or more, every likeness within 0.0001"


@row("smart_turn", "Smart Turn v3.2, quantized with its own scales", "smart_turn/smart-turn-v3.2-cpu.onnx",
     "whether a turn of talk has ended, at its end and in its midst", shapes={"input_features": (1, 80, 800)})
def smart_turn(find: Find, pair: Pair) -> str:
    """The decision at the end and in the middle of each long turn."""
    decided = []
    for begin, end, _ in turns(find):
        for stop in (end, (begin + end) / 2):
            if end - begin > 1:
                before, after = pair.first({"input_features": last_seconds(between(find, begin, stop))})
                decided.append((float(before.reshape(-1)[0]), float(after.reshape(-1)[0])))
    sides = np.array(decided)
    same = ((sides > 0.5)[:, 0] == (sides > 0.5)[:, 1]).sum()
    assert same == len(sides), sides
    assert 0 < (sides[:, 1] > 0.5).sum() < len(sides)
    return f"{same} of {len(sides)} decisions the same"
