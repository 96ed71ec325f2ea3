"""The options that commands share, each described once, and the reading of their values."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from vitrify.core.errors import UsageError

DATA = "Data"
OUTPUT = "Output"


class Layout(Enum):
    """Where channels stand in the model's inputs and outputs."""

    NHWC = "nhwc"
    NCHW = "nchw"


class Integer(Enum):
    """The element type of the inputs and outputs."""

    INT8 = "int8"
    UINT8 = "uint8"


class Outputs(Enum):
    """What becomes of an output that joins parts of very different range."""

    SPLIT = "split"
    KEEP = "keep"


class Calibrator(Enum):
    """How a range is taken from the values seen."""

    MINMAX = "minmax"
    PERCENTILE = "percentile"


class Fit(Enum):
    """How a picture is brought to the size of the input."""

    STRETCH = "stretch"
    LETTERBOX = "letterbox"
    CROP = "crop"


class Color(Enum):
    """The order of the channels."""

    RGB = "rgb"
    BGR = "bgr"
    GRAY = "gray"


ModelArgument = Annotated[Path, typer.Argument(metavar="MODEL", show_default=False,
                                               help="The model's file: .onnx or .tflite.")]
ShapeOption = Annotated[list[str], typer.Option(
    "--shape", metavar="NAME=N,N,...", show_default=False,
    help="Fix the shape of an input: images=1,3,320,320, or without a name when there is one input. Repeatable.")]
LayoutOption = Annotated[Layout, typer.Option("--io-layout", help="Layout of the file's inputs and outputs.")]
DataOption = Annotated[Path | None, typer.Option(
    "--data", metavar="PATH", show_default=False, help="A folder of pictures, .npy or .npz files, or one such file.")]
SamplesOption = Annotated[int | None, typer.Option(
    "--samples", metavar="N", min=1, show_default=False, help="Use at most N samples of the data.")]
RandomOption = Annotated[bool, typer.Option(
    "--random-calibration", help="Calibrate on random values. The result runs, but its answers mean nothing.")]
RandomInputsOption = Annotated[bool, typer.Option("--random-inputs", help="Compare on random values.")]
MeanOption = Annotated[str, typer.Option(
    "--mean", metavar="M[,M,M]", help="Subtracted from the pixels, which are scaled to 0..1.")]
StdOption = Annotated[str, typer.Option("--std", metavar="S[,S,S]", help="Then divided by this.")]
FitOption = Annotated[Fit, typer.Option("--fit", help="How pictures are brought to the input's size.")]
ColorOption = Annotated[Color, typer.Option("--color", help="Order of the channels.")]
SeedOption = Annotated[int, typer.Option("--seed", help="Seed of random values.")]
IoOption = Annotated[Integer, typer.Option("--io", help="Element type of the file's inputs and outputs.")]
OutputsOption = Annotated[Outputs, typer.Option(
    "--outputs", help="split: an output that joins parts of very different range becomes several. keep: it stays one.")]
CalibratorOption = Annotated[Calibrator | None, typer.Option(
    "--calibrator", show_default=False, help="How ranges are taken (default: as the recipe says).")]
RecipeOption = Annotated[Path | None, typer.Option(
    "--recipe", metavar="FILE", show_default=False, help="What is quantized how, as TOML.")]
SaveRecipeOption = Annotated[Path | None, typer.Option(
    "--save-recipe", metavar="FILE", show_default=False, help="Write the recipe that was used.")]
TargetOption = Annotated[str, typer.Option("--target", metavar="NAME", help="The chip, for example imx93.")]
OutputOption = Annotated[Path | None, typer.Option(
    "-o", "--output", metavar="FILE", show_default=False,
    help="The file to write; one that exists is replaced (default: named after the model, in the current folder).")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object to standard output.")]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")]


def parse_shapes(texts: list[str]) -> dict[str, tuple[int, ...]]:
    """Read ``NAME=1,3,320,320``; a shape without a name stands under ''.

    Raises:
        UsageError: a text is no shape, or a name comes twice.
    """
    shapes: dict[str, tuple[int, ...]] = {}
    for text in texts:
        name, _, numbers = text.rpartition("=")
        try:
            shape = tuple(int(number) for number in numbers.split(","))
        except ValueError:
            shape = ()
        if not shape or min(shape) < 1:
            raise UsageError.of("call.shape", f"--shape {text!r} is no shape", where="--shape",
                                why="a shape is positive whole numbers with commas between",
                                help="write it like --shape images=1,3,320,320")
        if name in shapes:
            raise UsageError.of("call.shape", f"--shape names {name or 'the input'!r} twice", where="--shape")
        shapes[name] = shape
    return shapes


def parse_numbers(option: str, text: str) -> tuple[float, ...]:
    """Read one number, or one for each channel.

    Raises:
        UsageError: the text is not that.
    """
    try:
        numbers = tuple(float(number) for number in text.split(","))
    except ValueError:
        numbers = ()
    if len(numbers) not in (1, 3) or not all(abs(n) < 1e9 for n in numbers):
        raise UsageError.of("call.number", f"{option} {text!r} is neither one number nor three", where=option,
                            help=f"write it like {option} 0.5 or {option} 0.485,0.456,0.406")
    if option == "--std" and min(map(abs, numbers)) == 0:
        raise UsageError.of("call.number", "--std 0 would divide by zero", where=option)
    return numbers
