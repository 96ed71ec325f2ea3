"""The recipe: what is quantized how, as data that a person can read, edit and keep as TOML."""

from __future__ import annotations

import fnmatch
import tomllib
from pathlib import Path
from typing import Any, Literal

import msgspec

from vitrify.core.errors import UsageError
from vitrify.core.files import look, write_atomically
from vitrify.core.findings import Finding
from vitrify.quant.efforts import EFFORTS, Effort

Calibrator = Literal["mixed", "minmax", "percentile", "least-error", "moving-average", "entropy"]
IoType = Literal["int8", "uint8", "int16", "float32"]
Weights = Literal["per-axis", "per-tensor"]
Rounding = Literal["nearest", "compensated", "learned"]
Activations = Literal["int8", "int16"]
Trials = Literal["none", "ranges", "all"]


MOST_DB = 100.0
"""What 16 bits can keep at most, about."""

MOST_INPUTS = 4096
"""Above this a layer's moments alone are larger than most models."""


class Override(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Another choice for some nodes: those whose name matches ``name`` and whose operator is ``operator``.

    ``name`` is a pattern with ``*`` and ``?`` over node names, of the file or of the source model; empty matches all,
    as does an empty ``operator``. ``tensor`` is such a pattern over the names of inputs and of what nodes give, for
    ``calibrator`` and ``percentile`` alone. ``partition`` is a part of the model: a module's path
    (``encoder/layer.3``), which holds all names below it, or ``FIRST..LAST``, two node names and all between them in
    the file's order. ``nodes`` are names as they are. What is None here stays as the recipe says.
    ``activations = "float"`` makes an island: the nodes stay in float, between DEQUANTIZE and QUANTIZE.
    """

    name: str = ""
    operator: str = ""
    tensor: str = ""
    partition: str = ""
    nodes: tuple[str, ...] = ()
    calibrator: Calibrator | None = None
    percentile: float | None = None
    weights: Weights | None = None
    activations: Activations | Literal["float"] | None = None

    @property
    def given(self) -> dict[str, Any]:
        """What it chooses, by key."""
        return {key: value for key in CHOICES if (value := getattr(self, key)) is not None}

    def __post_init__(self) -> None:
        more = [key for key in ("weights", "activations") if getattr(self, key) is not None]
        if self.tensor and more:
            raise UsageError.of("recipe.tensor", f"an override of tensor '{self.tensor}' gives {' and '.join(more)}, "
                                "which nodes have",
                                help="a tensor has calibrator and percentile; name = \"...\" selects nodes")

    def matches(self, names: tuple[str, ...], operator: str, tensors: tuple[str, ...] | None = None) -> bool:
        """True for a node with these names and this operator, and for one of ``tensors``, when they are asked for."""
        if self.tensor and not any(fnmatch.fnmatchcase(t, self.tensor) for t in tensors or ()):
            return False
        named = not self.name or any(fnmatch.fnmatchcase(n, self.name) for n in names)
        inside = not self.partition or any(is_below(n, self.partition) for n in names)
        listed = not self.nodes or any(n in self.nodes for n in names)
        return named and inside and listed and (not self.operator or self.operator.upper() == operator.upper())


CHOICES = ("calibrator", "percentile", "weights", "activations")
"""The keys of an override that choose something; the others select."""


def is_below(name: str, path: str) -> bool:
    """True for a name at or below a module's path, whether its parts are joined by dots or slashes."""
    whole, part = (text.strip("/").replace("/", ".") for text in (name, path))
    return whole == part or whole.startswith(part + ".")


class Recipe(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is quantized how.

    effort: what the keys in the table of efforts are where they are not given.
    calibrator: how a range is found from what was observed. ``mixed`` takes ``percentile`` for the large maps of the
        first layers and ``minmax`` elsewhere; ``minmax`` takes all that was seen; ``percentile`` leaves out the
        outermost values on both sides, so that ``percentile`` per cent stay; ``least-error`` takes the range with the
        least error of rounding and clipping together, large errors weighing more (in the third power);
        ``moving-average`` lets each sample move the range a little, so that single outliers count for little;
        ``entropy`` takes the range whose 256 levels tell most of how the values are spread.
    weights, fully_connected_weights: one scale per output channel, or one for the whole tensor. Runtimes for small
        devices of before 2024 read only the first scale of a FULLY_CONNECTED: ``per-tensor`` is for them.
    activations: ``int16`` lets operators that have such a kernel compute with 16-bit activations and int8 weights, at
        about half the speed on an Ethos-U65; inputs and outputs of the file keep their types. Some compute so
        in any case: softmax over long rows, quotients, and what whole numbers are made of.
    wide_until: so do all operators up to the one of this name, in the file's order.
    least_db: the SQNR in dB that every output is to keep on the calibration samples. Where 8 bits keep less,
        ``wide_until`` is chosen so that as few operators as possible compute in 16 bits. 0: not asked.
    norms: ``int16`` lets normalizations, and the sums of layers that they read, compute with 16 bits where the products
        with weights do not; ``int8`` does not.
    faint: ``int16`` lets a layer compute with 16 bits whose input varies so little beside its range that rounding it to
        8 bits would drown what the layer looks for; ``int8`` does not.
    states: ``int16`` lets the gates and sums compute with 16 bits that carry a state from an input of the model to an
        output, as streaming models have them; ``int8`` does not.
    input_type, output_type: the element type of the file's own inputs and outputs.
    outputs: ``split`` takes outputs that join parts of very different range apart; ``normalize`` scales the parts to
        -1..1 and keeps one output, which is to be multiplied by the factors in the metadata; ``keep`` leaves them.
    split_levels: an output is taken apart when a part would be left with fewer of the 256 levels.
    score_error: the most that a score above 0.25 of a detector may be off on the calibration samples. Where 8 bits are
        further off, ``wide_until`` is chosen so that fewer operators than all compute in 16 bits, if that is enough.
        0: not asked.
    sequences: ``whole`` keeps an LSTM one operator, with 8-bit input and output and 16-bit cells; ``steps`` writes it
        out step by step, all in the width of ``activations``, which in 8 bits takes an NPU about half the time;
        ``auto`` is whole in 8 bits, and in steps where ``activations`` are ``int16``.
    host_bits: of the outputs that the host computes with, as it does to decode boxes; their last layers compute with
        activations of as many bits.
    rounding: ``compensated`` rounds the weights of a layer so that their errors cancel in its output, as far as the
        calibration samples tell how its inputs vary together; ``learned`` then goes over them again, one weight at a
        time, as long as that lessens the error; ``nearest`` rounds each by itself.
    rounding_inputs: layers with more inputs for each output are rounded to the nearest: others would take long.
    weight_clipping: search the scale of each channel's weights for the least error, cutting a few of them.
    equalize: scale channels against each other, exactly in float, where one scale serves them badly.
    trials: compare other calibrators (``ranges``), and roundings too (``all``), on the calibration samples, and take
        what keeps the outputs best; the recipe that is saved holds what was taken. ``ranges`` compares only where
        samples differ so much in range that it matters.
    bias_correction: correct each bias by the mean error that rounding the weights brings to its channel.
    target_quality: a goal such as ``sqnr>=35``: as few operators as reach it compute with 16-bit activations. The
        recipe that is saved names those operators, and asks for no search.
    metric, max_drop: the same by what may be lost of a metric, ``top1``, ``detections``, ``agreement`` or ``cosine``.
    budget_ms, target: the most that an inference may take on a chip, by its compiler's estimate. 0: not asked.
    """

    calibrator: Calibrator = "mixed"
    percentile: float = 99.99
    weights: Weights = "per-axis"
    fully_connected_weights: Weights = "per-axis"
    activations: Activations = "int8"
    wide_until: str = ""
    least_db: float = 0.0
    norms: Activations = "int16"
    faint: Activations = "int16"
    states: Activations = "int16"
    input_type: IoType = "int8"
    output_type: IoType = "int8"
    outputs: Literal["split", "normalize", "keep"] = "split"
    split_levels: int = 32
    score_error: float = 0.0
    sequences: Literal["auto", "whole", "steps"] = "steps"
    host_bits: Literal[8, 16] = 16
    effort: Effort = "balanced"
    rounding: Rounding = "compensated"
    rounding_inputs: int = 200
    weight_clipping: bool = True
    equalize: bool = False
    trials: Trials = "ranges"
    bias_correction: bool = True
    target_quality: str = ""
    metric: str = ""
    max_drop: float = 0.5
    budget_ms: float = 0.0
    target: str = ""
    overrides: tuple[Override, ...] = ()

    def __post_init__(self) -> None:
        percentiles = [self.percentile, *(o.percentile for o in self.overrides if o.percentile is not None)]
        wrong = [p for p in percentiles if not 50 < p <= 100]
        if wrong:
            raise UsageError.of("recipe.percentile", f"percentile must be above 50 and at most 100, got {wrong[0]:g}")
        if not 0 <= self.least_db <= MOST_DB:
            raise UsageError.of("recipe.least_db", f"least_db must be in 0..{MOST_DB:g}, got {self.least_db:g}")
        if not 0 <= self.score_error <= 1:
            raise UsageError.of("recipe.score_error", f"score_error must be in 0..1, got {self.score_error:g}")
        if not 0 <= self.rounding_inputs <= MOST_INPUTS:
            raise UsageError.of("recipe.rounding_inputs", f"rounding_inputs must be in 0..{MOST_INPUTS}, got "
                                f"{self.rounding_inputs}")
        if not 1 <= self.split_levels <= 256:
            raise UsageError.of("recipe.split_levels", f"split_levels must be in 1..256, got {self.split_levels}")
        if self.least_db and (self.target_quality or self.metric):
            raise UsageError.of("recipe.goals", f"least_db = {self.least_db:g} and "
                                f"{self.target_quality or self.metric} are two goals", help="leave one of them out")

    @property
    def without_goal(self) -> Recipe:
        """The same recipe, asking for no search."""
        return msgspec.structs.replace(self, **{key: _DEFAULTS[key] for key in GOAL})

    @property
    def in_steps(self) -> bool:
        """True when LSTMs are written out step by step."""
        return self.sequences == "steps" or (self.sequences == "auto" and self.activations == "int16")

    def override(self, names: tuple[str, ...], operator: str, tensors: tuple[str, ...] | None = None) -> Override:
        """Return what holds for a node, or for one of its tensors: the overrides that match, later ones first."""
        chosen = Override()
        for rule in self.overrides:
            if rule.matches(names, operator, tensors):
                chosen = msgspec.structs.replace(chosen, **rule.given)
        return chosen


GOAL = ("target_quality", "metric", "max_drop", "budget_ms", "target")
"""The keys that say what a search is to reach."""

_DEFAULTS = dict(zip(Recipe.__struct_fields__, Recipe.__struct_defaults__, strict=True))


def load_recipe(path: Path | str, effort: Effort | None = None) -> Recipe:
    """Read a recipe from a TOML file; an ``effort`` takes the place of the file's.

    Raises:
        UsageError: the file cannot be read, is not TOML, or has unknown keys or values; says where.
    """
    source = Path(path)
    look(source)
    try:
        return parse_recipe(source.read_text(encoding="utf-8"), effort)
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError.of("recipe.read", f"cannot read the recipe {source}: {error}", where=str(source)) from error
    except UsageError as error:
        raise UsageError([msgspec.structs.replace(f, where=f.where or str(source)) for f in error.findings]) from error


def parse_recipe(text: str, effort: Effort | None = None) -> Recipe:
    """Read a recipe from TOML text; an ``effort`` takes the place of the text's.

    Raises:
        UsageError: not TOML, or unknown keys or values.
    """
    try:
        given = tomllib.loads(text)
        chosen = {"effort": effort} if effort is not None else {}
        return msgspec.convert({**EFFORTS.get(effort or str(given.get("effort")), {}), **given, **chosen}, Recipe)  # type: ignore[call-overload]
    except tomllib.TOMLDecodeError as error:
        raise UsageError.of("recipe.toml", f"the recipe is not TOML: {error}") from error
    except msgspec.ValidationError as error:
        known = ", ".join(Recipe.__struct_fields__)
        raise UsageError(Finding(code="recipe.value", headline=f"the recipe is wrong: {error}",
                                 help=f"keys are {known}; an [[overrides]] table has "
                                      f"{', '.join(Override.__struct_fields__)}")) from error


def format_recipe(recipe: Recipe) -> str:
    """Return the recipe as TOML text that reads back to the same recipe."""
    plain = msgspec.to_builtins(recipe)
    lines = [f"{key} = {_toml(value)}" for key, value in plain.items() if key != "overrides"]
    for rule in plain["overrides"]:
        lines += ["", "[[overrides]]", *(f"{k} = {_toml(v)}" for k, v in rule.items() if v not in (None, "", ()))]
    return "\n".join(lines) + "\n"


def save_recipe(recipe: Recipe, path: Path | str) -> None:
    """Write the recipe as TOML, whole or not at all."""
    write_atomically(path, format_recipe(recipe).encode(errors="backslashreplace"))


def override_line(**given: object) -> str:
    """One override as a line of a recipe, for messages: what they tell to write works as it stands."""
    return f"overrides = [{{{', '.join(f'{key} = {_toml(value)}' for key, value in given.items())}}}]"


def _toml(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return msgspec.json.encode(value).decode()
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_toml, value))}]"
    return repr(value)
