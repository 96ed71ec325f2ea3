"""The options that commands share, each described once, and the reading of their values."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from vitrify.cli.arguments import Argument, Option
from vitrify.core.errors import UsageError

if TYPE_CHECKING:
    from vitrify.pipeline.options import ConvertOptions, DataOptions, QuantizeOptions

AUTO = "auto"
NONE: list[str] = []
"""The default of a repeatable option; the parser copies it."""


class Layout(Enum):
    """Where channels stand in the model's inputs and outputs."""

    NHWC = "nhwc"
    NCHW = "nchw"


class Integer(Enum):
    """The element type of the inputs and outputs."""

    INT8 = "int8"
    UINT8 = "uint8"
    INT16 = "int16"


class Outputs(Enum):
    """What becomes of an output that joins parts of very different range."""

    SPLIT = "split"
    NORMALIZE = "normalize"
    KEEP = "keep"


class Calibrator(Enum):
    """How a range is taken from the values seen."""

    MIXED = "mixed"
    MINMAX = "minmax"
    PERCENTILE = "percentile"
    LEAST_ERROR = "least-error"
    MOVING_AVERAGE = "moving-average"
    ENTROPY = "entropy"


class Effort(Enum):
    """How much is done for quality."""

    FAST = "fast"
    BALANCED = "balanced"
    BEST = "best"


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


ModelArgument = Annotated[Path, Argument(
    "MODEL", help="The model: .onnx, .tflite, PyTorch's .pt2 or .pt, Keras' .keras or .h5, a SavedModel folder.")]
ShapeOption = Annotated[list[str], Option(
    "--shape", metavar="NAME=N,N,...",
    help="Fix the shape of an input: images=1,3,320,320, or without a name when there is one input. Repeatable.")]
DimOption = Annotated[list[str], Option(
    "--dim", metavar="NAME=N", help="Fix a named dimension in every input that has it: batch=1. Repeatable.")]
ValueOption = Annotated[list[str], Option(
    "--value", metavar="NAME=V[,V...]",
    help="Put a constant in the place of an input of an ONNX model, such as a sample rate. Repeatable.")]
TrustOption = Annotated[bool, Option(
    "--trust", help="Load a model that runs code of its own, such as a pickled PyTorch module: only one whose origin "
                    "you know.")]
IntegerModelArgument = Annotated[Path, Argument(
    "MODEL", help="The model: an int8 .tflite file, or an .onnx file that is quantized already.")]
LayoutOption = Annotated[Layout, Option("--io-layout", help="Layout of the file's inputs and outputs.")]
DataOption = Annotated[Path | None, Option(
    "--data", metavar="PATH",
    help="A folder of pictures, recordings (.wav), .npy, .npz or .safetensors files, one such file, a list of them "
         "(.txt, .json), or a folder with a folder for each input.")]
SamplesOption = Annotated[str | None, Option(
    "--samples", metavar="N", help="Use at most N samples of the data; auto: as many as move the ranges.")]
RandomOption = Annotated[bool, Option(
    "--random-calibration", help="Calibrate on random values. The result runs, but its answers mean nothing.")]
RandomInputsOption = Annotated[bool, Option("--random-inputs", help="Compare on random values.")]
MeanOption = Annotated[str | None, Option(
    "--mean", metavar="M[,M,M]", help="Subtracted from the pixels, which are scaled to 0..1 [default: 0].")]
StdOption = Annotated[str | None, Option("--std", metavar="S[,S,S]", help="Then divided by this [default: 1].")]
FitOption = Annotated[Fit | None, Option("--fit", help="How pictures are brought to the input's size "
                                                       "[default: stretch].")]
ColorOption = Annotated[Color | None, Option("--color", help="Order of the channels [default: rgb].")]
PrepareOption = Annotated[list[str], Option(
    "--prepare", metavar="WHAT=V", help="How files become inputs besides: scale, pad, interpolation, crop_fraction of "
                                        "pictures; layout=nhwc or nchw of arrays; rate, hop, resample of recordings. "
                                        "Repeatable.")]
SeedOption = Annotated[int, Option("--seed", help="Seed of random values.")]
IoOption = Annotated[Integer, Option("--io", help="Element type of the file's inputs and outputs.")]
OutputsOption = Annotated[Outputs, Option(
    "--outputs", help="split: an output that joins parts of very different range becomes several. "
                 "normalize: its parts are scaled to -1..1, and back by what runs the file. keep: it stays one.")]
CalibratorOption = Annotated[Calibrator | None, Option(
    "--calibrator", help="How ranges are taken (default: as the recipe says).")]
LeastDbOption = Annotated[float | None, Option(
    "--least-db", metavar="DB", help="SQNR that every output is to keep on the samples; where 8 bits keep less, "
                                     "operators compute with 16-bit activations, as few as do.")]
RecipeOption = Annotated[Path | None, Option(
    "--recipe", metavar="FILE", help="What is quantized how, as TOML.")]
AnalyzeOption = Annotated[bool, Option(
    "--analyze", help="Give each operator its own error, and what it costs the outputs.")]
TargetQualityOption = Annotated[str, Option(
    "--target-quality", metavar="GOAL", help="Let as few operators as reach it compute with 16-bit activations: "
                                             "'sqnr>=35', 'cosine>=0.999', 'top1>=99', 'detections>=98'.")]
MetricOption = Annotated[str, Option(
    "--metric", metavar="METRIC", help="The same by what may be lost of a metric: top1, detections, agreement, "
                                      "cosine.")]
MaxDropOption = Annotated[float | None, Option(
    "--max-drop", metavar="X", help="How much of the metric's best value may be lost [default: 0.5].")]
BudgetOption = Annotated[float | None, Option(
    "--budget-ms", metavar="MS", help="The most that an inference may take on the target, by its compiler's estimate.")]
JobsOption = Annotated[int, Option("--jobs", metavar="N", help="Candidates of the search that are tried at once.")]
ForTargetOption = Annotated[str, Option(
    "--target", metavar="NAME", help="The chip that --budget-ms is meant for; alone, the one whose time is told.")]
AnewOption = Annotated[bool, Option(
    "--anew", help="Quantize a TFLite file again that is quantized in full or in part: its integers become real values "
                   "first.")]
FixOption = Annotated[bool, Option(
    "--fix", help="Rewrite what the target takes in another form, prove each rewrite, and write the file with -o.")]
FixOnlyOption = Annotated[list[str], Option(
    "--fix-only", metavar="NAME[,NAME]", help="Apply these fixes and no others. Repeatable.")]
ApproximateOption = Annotated[list[str], Option(
    "--approximate", metavar="NAME[,NAME]", help="Apply these fixes too, which change values. Repeatable.")]
SearchOption = Annotated[bool, Option(
    "--search", help="Try settings of the compiler and exact rewrites of the model; keep what is estimated fastest.")]
SearchSecondsOption = Annotated[float | None, Option(
    "--search-seconds", metavar="S", min=0.0, help="About how long to search (default: 60).")]
SizeOption = Annotated[list[str], Option(
    "--size", metavar="N[,N]",
    help="Sizes of the picture: FROM:TO:STEP, N, or HEIGHTxWIDTH (default: the model's own). Repeatable.")]
PrecisionOption = Annotated[list[str], Option(
    "--precision", metavar="P[,P]", help="int8, int16x8 or all (default: int8). Repeatable.")]
MemoryModeOption = Annotated[list[str], Option(
    "--memory-mode", metavar="M[,M]", help="Vela's memory modes, or all (default: the target's own). Repeatable.")]
ArenaOption = Annotated[list[str], Option(
    "--arena", metavar="N[,N]", help="On-chip memory to plan with, such as 384K (default: the target's). Repeatable.")]
PictureOption = Annotated[str, Option(
    "--input", metavar="NAME", help="The input whose size changes (default: every picture).")]
WorkersOption = Annotated[int, Option("--workers", metavar="N", help="Processes at once.")]
FolderOption = Annotated[Path | None, Option(
    "-o", "--output", metavar="DIR",
    help="The folder for the answer, and for what is found on the way (default: named after model and target).")]
RulesOnlyOption = Annotated[bool, Option(
    "--rules-only", help="Judge by the rules alone: neither LiteRT nor the target's compiler is asked.")]
EffortOption = Annotated[Effort | None, Option(
    "--effort", help="How much is done for quality (default: balanced); all keep 8 bits.")]
PresetOption = Annotated[str, Option(
    "--preset", metavar="NAME", help="A recipe that comes along: audio, cnn, detector, recurrent, transformer; "
                                       "`vitrify recipes` says what each is for.")]
SaveRecipeOption = Annotated[Path | None, Option(
    "--save-recipe", metavar="FILE", is_file=True, help="Write the recipe that was used.")]
NeutronSdkOption = Annotated[str, Option(
    "--neutron-sdk", metavar="PLACE", help="The eIQ Neutron SDK: its folder, the converter, a folder of Python "
                                           "packages, or one of several releases, such as 3.1.2.")]
NeutronOption = Annotated[list[str], Option(
    "--neutron-option", metavar="NAME[=V]", help="Passed on to neutron-converter: optimization-level=OOpt, "
                                                 "force-determinism. Repeatable.")]
IgnoreOpsOption = Annotated[str, Option(
    "--ignore-ops", metavar="KINDS", help="Operators that Vela is to leave on the CPU, as in SUM,SOFTMAX.")]
AsItIsOption = Annotated[bool, Option(
    "--as-it-is", help="Compile the file itself, also where Vela is known to compute it wrongly.")]
RecordedOption = Annotated[Path | None, Option(
    "--recorded", metavar="FILE", help="Inputs and outputs of the compiled file, recorded on a board (.npz): it is "
                                       "compared with its source.")]
ToleranceOption = Annotated[float | None, Option(
    "--tolerance-lsb", metavar="N", min=0.0, help="Steps that the compiled file's values may differ by [default: 2, or "
                                                  "twice what LiteRT's kernels differ by].")]
TargetOption = Annotated[str, Option("--target", metavar="NAME", help="The chip, for example imx93.")]
OutputOption = Annotated[Path | None, Option(
    "-o", "--output", metavar="FILE", is_file=True,
    help="The file to write; one that exists is replaced (default: named after the model, in the current folder).")]
JsonOption = Annotated[bool, Option("--json", help="Print one JSON object to standard output.")]
QuietOption = Annotated[bool, Option("--quiet", "-q", help="Show no progress.")]


def words(texts: list[str]) -> list[str]:
    """Read names with commas between."""
    return [word for text in texts for word in text.replace(" ", "").split(",") if word]


def conversion(shape: list[str], dim: list[str], value: list[str], trust: bool = False,
               layout: Layout = Layout.NHWC, anew: bool = False, task: str = "") -> ConvertOptions:
    """Read how the model is to be imported.

    Raises:
        UsageError: a shape, a dimension or a value is none.
    """
    from vitrify.pipeline.options import ConvertOptions

    return ConvertOptions(shapes=parse_shapes(shape), dims=parse_dims(dim), values=parse_values(value),
                          trust=trust, input_layout=layout.value, output_layout=layout.value, anew=anew,
                          task=task)


def data_options(path: Path | None, samples: str | None, random: bool, seed: int, fit: Fit | None, color: Color | None,
                 mean: str | None, std: str | None, prepare: list[str] = NONE) -> DataOptions:
    """Read which samples are to be used, and how files become inputs.

    Raises:
        UsageError: a value is none.
    """
    from vitrify.pipeline.options import DataOptions

    told = any(given is not None for given in (fit, color, mean, std)) or bool(prepare)
    options = DataOptions(
        path=path, samples=parse_samples(samples), enough=samples == AUTO, random=random, seed=seed,
        fit=(fit or Fit.STRETCH).value, color=(color or Color.RGB).value, mean=parse_numbers("--mean", mean or "0"),
        std=parse_numbers("--std", std or "1"), prepare=parse_prepare(prepare), told=told)
    if not prepare:
        return options
    from msgspec import structs

    how = options.how()
    return structs.replace(options, prepare={name: getattr(how, name) for name in options.prepare})


def parse_samples(text: str | None) -> int | None:
    """Read a number of samples; None where there is no limit.

    Raises:
        UsageError: the text is neither a positive whole number nor ``auto``.
    """
    if text is None or text == AUTO:
        return None
    if not text.isdecimal() or int(text) < 1:
        raise UsageError.of("call.invalid", f"--samples {text!r} is neither a positive whole number nor {AUTO}",
                            where="--samples", help=f"write it like --samples 64 or --samples {AUTO}")
    return int(text)


def parse_prepare(texts: list[str]) -> dict[str, str]:
    """Read ``WHAT=VALUE``.

    Raises:
        UsageError: a text is not that, comes twice, or has an option of its own.
    """
    found: dict[str, str] = {}
    for text in texts:
        name, _, value = text.partition("=")
        if not name or not value or name in found or name in ("mean", "std", "fit", "color"):
            own = f"; --{name} is an option of its own" if name in ("mean", "std", "fit", "color") else ""
            raise UsageError.of("call.prepare", f"--prepare {text!r} is no name with a value, or comes twice{own}",
                                where="--prepare", help="write it like --prepare rate=16000 --prepare hop=8000")
        found[name] = value
    return found


def quantize_options(io: Integer, outputs: Outputs, calibrator: Calibrator | None, recipe: Path | None,
                     save_recipe: Path | None, least_db: float | None = None,
                     analyze: bool = False) -> QuantizeOptions:
    """Read what is asked of the quantizer."""
    from vitrify.pipeline.options import QuantizeOptions

    return QuantizeOptions(io=io.value, outputs=outputs.value, recipe=recipe, save_recipe=save_recipe,
                           calibrator=calibrator.value if calibrator else None, least_db=least_db, analyze=analyze)


def with_effort(options: QuantizeOptions, effort: Effort | None, preset: str) -> QuantizeOptions:
    """Add how much is to be done, and the recipe that comes along."""
    import msgspec

    return msgspec.structs.replace(options, effort=effort.value if effort else None, preset=preset)


def with_search(options: QuantizeOptions, target_quality: str, metric: str, max_drop: float | None,
                budget_ms: float | None, jobs: int, target: str = "") -> QuantizeOptions:
    """Add what is to be searched for.

    Raises:
        UsageError: it contradicts itself.
    """
    from msgspec import structs

    if jobs < 1:
        raise UsageError.of("search.jobs", f"--jobs must be 1 or more, got {jobs}")
    return structs.replace(options, target_quality=target_quality, metric=metric, max_drop=max_drop,
                           budget_ms=budget_ms, jobs=jobs, target=target)


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


def parse_dims(texts: list[str]) -> dict[str, int]:
    """Read ``NAME=1``.

    Raises:
        UsageError: a text is not that, or a name comes twice.
    """
    dims: dict[str, int] = {}
    for text in texts:
        name, _, number = text.rpartition("=")
        if not name or not number.isdecimal() or int(number) < 1:
            raise UsageError.of("call.dim", f"--dim {text!r} is no name with a positive whole number", where="--dim",
                                help="write it like --dim batch=1")
        if name in dims:
            raise UsageError.of("call.dim", f"--dim names {name!r} twice", where="--dim")
        dims[name] = int(number)
    return dims


def parse_values(texts: list[str]) -> dict[str, int | float | list[int | float]]:
    """Read ``NAME=16000``; several numbers become a list.

    Raises:
        UsageError: a text is not that.
    """
    values: dict[str, int | float | list[int | float]] = {}
    for text in texts:
        name, _, numbers = text.rpartition("=")
        try:
            found = [_number(number) for number in numbers.split(",")]
        except ValueError:
            found = []
        if not name or not found or name in values:
            raise UsageError.of("call.value", f"--value {text!r} is no name with numbers, or names an input twice",
                                where="--value", help="write it like --value sr=16000")
        values[name] = found[0] if len(found) == 1 else found
    return values


def _number(text: str) -> int | float:
    try:
        return int(text)
    except ValueError:
        return float(text)


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
