"""What the commands can be told, as plain values that hash and travel."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from vitrify.backends.base import CompilerOptions
from vitrify.core.errors import UsageError
from vitrify.core.findings import Finding, Severity

if TYPE_CHECKING:
    from vitrify.data.feeds import Feed
    from vitrify.data.preprocess import Preprocess
    from vitrify.data.samples import Samples
    from vitrify.ir import Interface
    from vitrify.pipeline.quantizing.search.goal import Goal
    from vitrify.quant.recipe import Recipe

Layout = Literal["nhwc", "nchw"]
DEFAULT_RANDOM_SAMPLES = 16
MOST_MEAN, MOST_STD = 2.0, 4.0
"""Above these, mean and std of pictures in 0..1 make no sense."""


class ConvertOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How a model is imported: shapes by input name ('' for the only input), extents of named dimensions, constants in
    the place of inputs, whether code that the file holds may run, and the layout of the model's inputs and outputs.

    ``anew``: what a quantized TFLite file holds becomes real values first, so that it can be quantized again.
    ``task``: what the model is for, where its exporter does not say so or says another; its files remember it.
    """

    shapes: dict[str, tuple[int, ...]] = {}
    dims: dict[str, int] = {}
    values: dict[str, int | float | list[int | float]] = {}
    trust: bool = False
    input_layout: Layout = "nhwc"
    output_layout: Layout = "nhwc"
    anew: bool = False
    task: str = ""

    @property
    def sizes(self) -> dict[str, tuple[int, ...] | int]:
        """The shapes and the named dimensions, as importers and runtimes take them.

        Raises:
            UsageError: an input and a dimension of the same name are both given.
        """
        both = [name for name in self.dims if name in self.shapes]
        if both:
            name = both[0]
            one, other = f"--dim {name}={self.dims[name]}", f"--shape {name}={','.join(map(str, self.shapes[name]))}"
            raise UsageError.of("dim.conflict", f"{one} and {other} contradict each other: '{name}' is an input or a "
                                "dimension, not both", where=f"{one}, {other}", help="leave one of them out")
        return {**self.shapes, **self.dims}


class DataOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Which samples, and how files become inputs.

    ``samples`` is the most that are used, ``enough`` ends calibration when ranges no longer move. ``random``: no data,
    made-up values. ``feed`` holds samples that Python code gives. ``told`` says that how files become inputs was given
    and is not just the default; ``prepare`` holds what there is besides ``fit``, ``color``, ``mean`` and ``std``.
    """

    path: Path | None = None
    feed: Feed | None = None
    samples: int | None = None
    enough: bool = False
    random: bool = False
    seed: int = 0
    fit: str = "stretch"
    color: str = "rgb"
    mean: tuple[float, ...] = (0.0,)
    std: tuple[float, ...] = (1.0,)
    prepare: dict[str, Any] = {}
    told: bool = False

    @property
    def given(self) -> bool:
        """True when there is something to take samples from."""
        return self.random or self.path is not None or self.feed is not None

    def preprocess(self) -> dict[str, Any]:
        """The part that says how a file becomes an input."""
        return {"fit": self.fit, "color": self.color, "mean": list(self.mean), "std": list(self.std), **self.prepare}

    def how(self) -> Preprocess:
        """The same as the reader takes it.

        Raises:
            UsageError: there is no such thing to say, or not with that value.
        """
        from vitrify.data.preprocess import Preprocess

        try:
            return msgspec.convert(self.preprocess(), Preprocess, strict=False)
        except msgspec.ValidationError as error:
            raise UsageError.of("call.prepare", f"--prepare is wrong: {error}", where="--prepare",
                                help=f"there are {', '.join(Preprocess.__struct_fields__)}") from error

    def prepared_as(self, how: Preprocess) -> DataOptions:
        """The same data, made to inputs as ``how`` says."""
        plain = msgspec.to_builtins(how)
        basic = {name: tuple(value) if isinstance(value, list | tuple) else value
                 for name in ("fit", "color", "mean", "std") for value in (plain.pop(name),)}
        return msgspec.structs.replace(self, **basic, prepare=plain, told=True)

    def require(self, purpose: str) -> None:
        """Refuse to go on without data.

        Raises:
            UsageError: nothing was given, both data and random values were, or there is nothing at the path.
        """
        if self.path is not None and self.random:
            raise UsageError.of("call.data", "both data and random values were asked for",
                                help="give either --data or the option for random values")
        if self.given:
            return self.check()
        if purpose == "calibration":
            raise UsageError.of("data.none", "calibration needs samples, and none were given",
                               why="the ranges of the values come from samples like those of real use",
                               help="add --data FOLDER; --random-calibration goes without, its answers mean nothing")
        raise UsageError.of("data.none", "a comparison needs samples, and none were given",
                           help="add --data FOLDER, or --random-inputs")

    def check(self) -> None:
        """See to it, before any work, that there is something that can be read where the data is said to be.

        Raises:
            UsageError: there is not.
        """
        if self.path is not None:
            from vitrify.data.samples import require_place

            require_place(self.path)

    def findings(self, interface: Interface) -> list[Finding]:
        """Say what was taken otherwise than it stands there, and what looks wrong."""
        from vitrify.data.samples import told

        if self.random:
            return []
        if self.feed is not None:
            return self.feed.findings
        opened = self.open(interface)
        left = [msgspec.structs.replace(f, severity=Severity.WARNING) for f in opened.skipped]
        return [*self.unit_findings(), *left, *told(opened.files, interface.inputs)]

    def unit_findings(self) -> list[Finding]:
        """Warn of a mean or std that can only be meant for pixels of 0..255: pictures are scaled to 0..1 first."""
        small = max(map(abs, self.mean)) <= MOST_MEAN and max(map(abs, self.std)) <= MOST_STD
        if self.random or small or "scale" in self.prepare:
            return []
        scaled = all(0 < value < 1 for value in self.std)          # only the mean is in pixels then
        mean, std = (",".join(f"{value:.6g}" for value in values) for values in (
            [value / 255 for value in self.mean], self.std if scaled else [value / 255 for value in self.std]))
        given = f"mean {','.join(f'{v:g}' for v in self.mean)}, std {','.join(f'{v:g}' for v in self.std)}"
        return [Finding(code="preprocess.units", severity=Severity.WARNING, where=str(self.path or ""),
                        headline=f"{given}: these look like values for pixels of 0..255",
                        why="the unit is 0..1: a pixel becomes (pixel / 255 - mean) / std",
                        help=f"divide by 255: --mean {mean} --std {std}")]

    def open(self, interface: Interface, limit: int | None = None, purpose: str = "calibration") -> Samples:
        """Open the samples for a model's inputs; ``limit`` caps their number further.

        Raises:
            DataError: nothing was given, or it does not fit the model.
        """
        from vitrify.data.samples import open_samples, random_samples

        wanted = min((n for n in (self.samples, limit) if n is not None), default=None)
        self.require(purpose)
        if self.feed is not None:
            return self.feed.kept(wanted)
        if self.path is not None:
            opened = open_samples(self.path, interface, self.how(), self.samples, self.enough)
            return opened if limit is None else opened.readable(limit)
        return random_samples(interface, wanted or DEFAULT_RANDOM_SAMPLES, self.seed)


class QuantizeOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked of the quantizer besides its recipe."""

    io: Literal["int8", "uint8", "int16"] = "int8"
    outputs: Literal["split", "normalize", "keep"] = "split"
    calibrator: Literal["mixed", "minmax", "percentile", "least-error", "moving-average", "entropy"] | None = None
    least_db: float | None = None
    recipe: Path | None = None
    preset: str = ""
    effort: Literal["fast", "balanced", "best"] | None = None
    save_recipe: Path | None = None
    analyze: bool = False
    target_quality: str = ""
    metric: str = ""
    max_drop: float | None = None
    budget_ms: float | None = None
    target: str = ""
    jobs: int = 1

    def goal(self, target: str = "", base: Recipe | None = None) -> Goal:
        """What a search for mixed precision is to reach, by the options or else the recipe.

        ``target`` is the chip that a build is for, ``base`` a recipe in the place of a file.

        Raises:
            UsageError: it contradicts itself, or says what there is not.
        """
        from vitrify.pipeline.quantizing.search.goal import read_goal

        recipe = self.effective(base)
        return read_goal(recipe.target_quality, recipe.metric, recipe.max_drop if recipe.metric else self.max_drop,
                         self.budget_ms if self.budget_ms is not None else recipe.budget_ms or None,
                         recipe.target or target)

    def effective(self, base: Recipe | None = None) -> Recipe:
        """The recipe file, the preset or the default recipe, with the options laid over it.

        ``base``: a recipe that Python code made, in the place of a file.

        Raises:
            UsageError: the recipe cannot be read, there is no such preset, or both are given.
        """
        given: dict[str, Any] = {}
        is_own = base is not None or self.recipe is not None
        base = self._base(base)
        if not is_own or self.io != "int8":
            given |= {"input_type": self.io, "output_type": self.io}
        if not is_own or self.outputs != "split":
            given["outputs"] = self.outputs
        if self.calibrator is not None:
            given["calibrator"] = self.calibrator
        if self.least_db is not None:
            given |= {"least_db": self.least_db, "target_quality": "", "metric": ""}
        return msgspec.structs.replace(base, **{**given, **self._goal()})

    def _goal(self) -> dict[str, Any]:
        """What the options say of the goal: one takes the place of the recipe's, whichever way both say it.

        Raises:
            UsageError: two are given.
        """
        if self.target_quality and self.metric:
            raise UsageError.of("search.goal", "both --target-quality and --metric are given",
                                help="give one of them: --target-quality 'sqnr>=35', or --metric top1 --max-drop 0.5")
        given: dict[str, Any] = {}
        if self.target_quality or self.metric:
            given |= {"target_quality": self.target_quality, "metric": self.metric, "least_db": self.least_db or 0.0}
        if self.max_drop is not None:
            given["max_drop"] = self.max_drop
        if self.budget_ms is not None:
            given["budget_ms"] = self.budget_ms
        return given | ({"target": self.target} if self.target else {})

    def _base(self, base: Recipe | None) -> Recipe:
        """What the options are laid over."""
        from vitrify.quant.presets import load_preset
        from vitrify.quant.recipe import load_recipe, parse_recipe

        if base is not None:
            both = [f"{name}='{value}'" for name, value in (("preset", self.preset), ("effort", self.effort)) if value]
            if both:
                raise UsageError.of("recipe.two", f"a Recipe and {' and '.join(both)} were both given",
                                    why="a Recipe says all of it already",
                                    help="give the path of a recipe's file, or change the Recipe")
            return base
        if self.recipe is not None and self.preset:
            raise UsageError.of("recipe.two", f"--recipe {self.recipe} and --preset {self.preset} were both given",
                                help="copy what you need of the preset into the recipe; the documentation shows it")
        if self.recipe is not None:
            return load_recipe(self.recipe, self.effort)
        return load_preset(self.preset, self.effort) if self.preset else parse_recipe("", self.effort)


class BuildOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Everything a build is told; ``command`` is how it was called, for the record."""

    model: Path
    target: str
    data: DataOptions = DataOptions()
    conversion: ConvertOptions = ConvertOptions()
    quantization: QuantizeOptions = QuantizeOptions()
    compiler: CompilerOptions = CompilerOptions()
    command: list[str] = []


def plain_options(texts: Sequence[str]) -> dict[str, str]:
    """Read ``NAME=VALUE`` or ``NAME``, options that are passed on to a compiler.

    Raises:
        UsageError: a name comes twice.
    """
    found: dict[str, str] = {}
    for text in texts:
        name, _, value = text.partition("=")
        if name in found:
            raise UsageError.of("compile.option", f"--neutron-option names '{name}' twice")
        found[name] = value
    return found
