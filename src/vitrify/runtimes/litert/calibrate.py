"""Calibration: the float model runs over samples in LiteRT, and the tensors that need a range are observed.

A copy of the model gives those tensors out, so that the fast kernels run and nothing else has to be kept. Samples come
one at a time; what stays in memory is the model, one sample and the statistics. With a checkpoint, a run that was
killed goes on where it stopped and ends with the same statistics, bit for bit.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

import msgspec
import numpy as np

from vitrify.core.errors import DataError, ModelError
from vitrify.core.findings import Finding, Severity
from vitrify.core.isolation import Worker, run_isolated
from vitrify.core.progress import ProgressCallback
from vitrify.data.binding import identity_interface, to_file_inputs
from vitrify.data.limits import beyond, index_limits
from vitrify.data.preprocess import Preprocess
from vitrify.data.samples import Samples
from vitrify.ir import Interface, Model
from vitrify.quant.calibration.growth import growth, is_stable, remember
from vitrify.quant.calibration.judging import judge
from vitrify.quant.calibration.observe import Watch, keys, observe, watches
from vitrify.quant.calibration.statistics import Statistics
from vitrify.quant.calibration.suspicion import certainty, colour_axis, is_over, order_finding, range_findings
from vitrify.quant.copying import model_around
from vitrify.quant.engine import nan_finding, refuse_unquantizable
from vitrify.quant.equalizing.channels import Channels
from vitrify.quant.equalizing.choosing import Seen, choose_scales, won_db
from vitrify.quant.equalizing.scaling import equalize
from vitrify.quant.finite import refuse_broken_constants
from vitrify.quant.forms.preparing import fold_half_weights
from vitrify.quant.recipe import Recipe
from vitrify.quant.selecting import settled

Array = np.ndarray[Any, np.dtype[Any]]

TRIAL_MACS = 5_000_000_000
"""Models up to this size run up to 24 samples once more, to see whether red and blue are exchanged."""

SENT_BYTES = 1 << 23
"""Samples that are sent to the child together have about as many bytes."""

CHECKPOINT_SECONDS = 5.0
"""Time between checkpoints: little to lose, and little spent on writing."""


class Given(Protocol):
    """Samples that can be had only once, as from Python code; ``declared`` is how files among them became inputs.

    With ``enough``, calibration ends when the ranges no longer move.
    """

    declared: Preprocess | None
    enough: bool

    def __iter__(self) -> Iterator[dict[str, Array]]:
        """Yield each, by input name."""


def calibrate(float_model_path: Path | str, samples: Samples | Given, recipe: Recipe,
              checkpoint: Path | str | None = None, progress: ProgressCallback | None = None) -> Statistics:
    """Run a float TFLite model over ``samples`` in a process of its own and return what was observed.

    Args:
        float_model_path: the float model; it is not changed.
        samples: what to run; files that cannot be read are left out and told of, unless most are.
        recipe: says which tensors and which statistics are needed.
        checkpoint: a file that keeps what was seen so far; taken up again when model, samples and recipe are the same.
        progress: called with samples done and samples in all, 0 where that is not known.

    Raises:
        DataError: a sample does not fit or is not finite, most cannot be read, or there is none.
        ModelError: LiteRT does not run the model, or a tensor becomes NaN or infinite; names sample and tensors.
        UnsupportedError: the model has operators without an int8 form.
    """
    shown, kept = progress or _silent, str(checkpoint) if checkpoint is not None else None
    what = f"calibrating {Path(float_model_path).name}"
    if not isinstance(samples, Samples):
        return _calibrate_given(str(float_model_path), samples, recipe, kept, shown, what)
    if not len(samples):
        raise DataError.of("data.empty", "there are no calibration samples")
    result = run_isolated("vitrify.runtimes.litert.calibrate:calibrate_here", str(float_model_path), samples, recipe,
                          kept, what=what, on_progress=shown)
    assert isinstance(result, Statistics)
    return result


def _silent(done: int, total: int) -> None:
    """Take progress that nobody asked for."""


def _calibrate_given(path: str, samples: Given, recipe: Recipe, checkpoint: str | None, progress: ProgressCallback,
                     what: str) -> Statistics:
    """Send samples to the child as they come, a few at a time."""
    module = "vitrify.runtimes.litert.calibrate"
    with Worker(what) as worker:
        seen = worker.call(f"{module}:begin", path, recipe, checkpoint, samples.enough)
        waiting: list[dict[str, Array]] = []
        done = seen
        for sample in islice(samples, seen, None):
            waiting.append(sample)
            if len(waiting) * sum(array.nbytes for array in sample.values()) < SENT_BYTES:
                continue
            done += len(waiting)
            finished = worker.call(f"{module}:take", waiting)
            waiting = []
            progress(done, 0)
            if finished:
                break
        if waiting:
            worker.call(f"{module}:take", waiting)
        result = worker.call(f"{module}:finish")
    assert isinstance(result, Statistics)
    result.declared = samples.declared
    if not result.samples:
        raise DataError.of("data.empty", "there are no calibration samples", why="what was given as data is empty")
    return result


_open: list[_Calibration] = []
"""The calibration that a child is at."""


def begin(path: str, recipe: Recipe, checkpoint: str | None, enough: bool) -> int:
    """Begin a calibration whose samples come by ``take``; returns how many a checkpoint holds already."""
    _open[:] = [_Calibration(path, recipe, checkpoint, "given", _numbered, enough)]
    return _open[0].statistics.samples


def take(samples: Sequence[dict[str, Array]]) -> bool:
    """Run samples; true when no more are needed."""
    return any(_open[0].take(_open[0].statistics.samples, sample) for sample in samples)


def finish() -> Statistics:
    """Return what was seen."""
    return _open.pop().finish()


def _numbered(number: int) -> str:
    return f"sample {number} of the data given"


def calibrate_here(path: str, samples: Samples, recipe: Recipe, checkpoint: str | None = None,
                   progress: ProgressCallback = _silent) -> Statistics:
    """Do what ``calibrate`` does, in this process."""
    run = _Calibration(path, recipe, checkpoint, samples.fingerprint, samples.name, samples.enough)
    statistics = run.statistics
    statistics.is_random, statistics.pictures = samples.is_random, samples.pictures
    statistics.declared = samples.declared
    for number, sample in samples.numbered(run.next, statistics.skipped) if not statistics.stopped else ():
        if run.take(number, sample):
            break
        progress(number + 1, len(samples))
    return run.finish()


class _Calibration:
    """A model that is run over samples, and what was seen of them; ``next`` is the number of the sample to come."""

    def __init__(self, path: str, recipe: Recipe, checkpoint: str | None, data: str | Callable[[], str],
                 name: Callable[[int], str], enough: bool) -> None:
        from vitrify.tflite import read

        model = read(path)
        recipe = settled(recipe, model.main)
        refuse_unquantizable(model, recipe)
        fold_half_weights(model.main)
        refuse_broken_constants(model.main)
        self._model, self._path, self._equalize = model, path, recipe.equalize
        self._watched = watches(model.main, recipe)
        self._checkpoint, self._name, self._enough = checkpoint, name, enough
        key = _key(path, data if isinstance(data, str) else data(), self._watched, recipe.equalize)
        self.statistics = _resume(checkpoint, key)
        self._interface = model.interface or identity_interface(model)
        self._limits = index_limits(model, self._interface)
        self._opened: _Observed | None = None
        light = sum(node.op.macs(node) for node in model.main) <= TRIAL_MACS
        self._axis = colour_axis(self._interface) if light else None
        self._saved = time.monotonic()

    @property
    def next(self) -> int:
        """The number of the next sample: those that were left out have one too."""
        return self.statistics.samples + len(self.statistics.skipped)

    def take(self, number: int, sample: dict[str, Array]) -> bool:
        """Run one sample; true when no more are needed."""
        statistics = self.statistics
        if not statistics.is_random and (wrong := beyond(self._limits, sample, self._name(number))):
            raise DataError(wrong)
        self._open(sample)
        arrays = self._run.arrays(sample)
        observe(statistics, self._watched, arrays, number)
        tried = self._axis is not None and not statistics.is_random and not is_over(statistics.advantages)
        sure = certainty(self._watched, arrays) if tried else None
        del arrays                      # LiteRT runs only while nobody looks at its memory
        statistics.samples += 1
        broken = [w.key for w in self._watched if statistics[w.key].nan_sample is not None]
        if broken:
            refuse_not_finite(sample, self._name(number))
            raise ModelError(nan_finding(broken, self._name(number)))
        if statistics.all_equal:
            self._compare(sample)
        if sure is not None and self._axis is not None:
            self._exchange(sample, self._axis, sure)
        remember(statistics, self._watched)
        statistics.stopped = self._enough and is_stable(statistics, self._watched)
        if self._checkpoint is not None and time.monotonic() - self._saved > CHECKPOINT_SECONDS:
            statistics.save(self._checkpoint)
            self._saved = time.monotonic()
        return statistics.stopped

    @property
    def _run(self) -> _Observed:
        assert self._opened is not None
        return self._opened

    def _open(self, sample: dict[str, Array]) -> None:
        """Open the model, its channels scaled as the first sample shows them to need it, or as was chosen before."""
        if self._opened is not None:
            return
        graph, named = self._model.main, keys(self._model.main)
        if self._equalize and not self.statistics.samples:
            channels = Channels(graph)
            tensors = channels.tensors()
            run = _Observed(self._model, [Watch(t, named[t], histogram=False) for t in tensors], self._interface,
                            self._path)
            seen = dict(zip(tensors, map(Seen.of, run.arrays(sample)), strict=True)) if tensors else {}
            chosen = choose_scales(graph, channels, seen)
            self.statistics.scales = {named[t]: s for t, s in chosen.items()}
            self.statistics.scaled_db = won_db(graph, channels, seen, chosen)
        equalize(graph, self.statistics.scales, named)
        self._opened = _Observed(self._model, self._watched, self._interface, self._path)

    def _compare(self, sample: dict[str, Array]) -> None:
        """See whether a sample is the same as the first one."""
        content = hashlib.sha256(b"".join(np.ascontiguousarray(a).tobytes() for a in sample.values())).hexdigest()
        statistics = self.statistics
        statistics.first_hash = statistics.first_hash or content
        statistics.all_equal = statistics.first_hash == content

    def _exchange(self, sample: dict[str, Array], axis: int, sure: float) -> None:
        """Run a colour sample with red and blue exchanged, and see whether the model is surer of that."""
        name = self._interface.inputs[0].name
        exchanged = np.ascontiguousarray(np.flip(sample[name], axis))
        if not np.array_equal(exchanged, sample[name]):
            other = certainty(self._watched, self._run.arrays({name: exchanged}))
            self.statistics.advantages.append(0.0 if other is None else other - sure)

    def finish(self) -> Statistics:
        """Judge the samples and keep what was seen."""
        statistics = self.statistics
        found = growth(statistics, self._watched) if statistics.samples else None
        statistics.growth = None if found is None else (found.tensor, found.share, found.mean, found.since)
        given = statistics.declared.color if statistics.declared is not None else ""
        statistics.notes = _left_out(statistics)
        if statistics.samples and not statistics.is_random:
            statistics.notes += [*range_findings(statistics, self._watched, self._interface),
                                 *order_finding(statistics.advantages, given),
                                 *judge(statistics, self._watched, self._name)]
        if self._checkpoint is not None:
            statistics.save(self._checkpoint)
        return statistics


def refuse_not_finite(sample: dict[str, Array], name: str) -> None:
    """Refuse a sample that holds NaN or infinity itself.

    Raises:
        DataError: it does.
    """
    findings = []
    for key, array in sample.items():
        bad = ~np.isfinite(array) if array.dtype.kind == "f" else np.zeros(0, np.bool_)
        if bad.any():
            first = [int(i) for i in np.argwhere(bad)[0]]
            value = float(array[tuple(first)])
            findings.append(Finding(
                code="data.not_finite", where=name,
                headline=f"{Path(name).name} holds {'NaN' if np.isnan(value) else value} for input '{key}': "
                         f"{int(bad.sum())} of {array.size} values are not finite, the first at {first}",
                why="a range cannot be found for it", help="repair the sample or leave it out"))
    if findings:
        raise DataError(findings)


def _left_out(statistics: Statistics) -> list[Finding]:
    return [msgspec.structs.replace(f, severity=Severity.WARNING, why=f"{f.why}{'; ' if f.why else ''}it is left out")
            for f in statistics.skipped]


class _Observed:
    """The model in LiteRT's fast kernels, giving out the watched tensors."""

    def __init__(self, model: Model, watched: Sequence[Watch], interface: Interface, path: str) -> None:
        from ai_edge_litert.interpreter import Interpreter

        from vitrify.tflite import to_bytes

        self.watched = watched
        self._interface = interface
        self._path = path
        computed = [w for w in watched if w.tensor.producer is not None]
        observed = model_around(model.main, [w.tensor for w in computed])
        try:
            self._interpreter = Interpreter(model_content=bytes(to_bytes(observed)), num_threads=1)
            self._interpreter.allocate_tensors()
        except (ValueError, RuntimeError) as error:
            raise ModelError.of("litert.prepare", f"LiteRT cannot prepare the model: {error}", where=path) from error
        self._inputs = self._interpreter.get_input_details()
        outputs = self._interpreter.get_output_details()
        positions = {t: i for i, t in enumerate(model.main.inputs)}
        places = iter(outputs)
        self._sources = [next(places)["index"] if w.tensor.producer is not None else -1 - positions[w.tensor]
                         for w in watched]

    def arrays(self, sample: dict[str, Array]) -> list[Array]:
        """Run one sample and return the watched values: views, valid until the next run."""
        inputs = to_file_inputs(self._interface, sample, self._inputs)
        try:
            for details, array in zip(self._inputs, inputs, strict=True):
                self._interpreter.set_tensor(details["index"], array)
            self._interpreter.reset_all_variables()       # samples are independent of each other
            self._interpreter.invoke()
        except (ValueError, RuntimeError) as error:
            raise ModelError.of("litert.invoke", f"LiteRT cannot run the model: {error}", where=self._path) from error
        return list(self._values(inputs))

    def _values(self, inputs: Sequence[Array]) -> Iterator[Array]:
        for source in self._sources:
            yield self._interpreter.tensor(source)() if source >= 0 else inputs[-1 - source]


def _key(path: str, data: str, watched: Sequence[Watch], equalize: bool) -> str:
    """Name the run: the same model, samples and kind of statistics give the same key."""
    content = hashlib.sha256(Path(path).read_bytes()).hexdigest()
    kept = [(w.key, w.histogram, w.axes, w.means, [n.name for n in w.layers], w.calibrator, w.percentile)
            for w in watched]
    return hashlib.sha256(msgspec.json.encode((content, data, kept, equalize))).hexdigest()


def _resume(checkpoint: str | None, key: str) -> Statistics:
    """Take up a checkpoint of the same run; anything else begins anew."""
    if checkpoint is not None and Path(checkpoint).exists():
        try:
            found = Statistics.load(checkpoint)
        except DataError:
            return Statistics(key=key)
        if found.key == key:
            return found
    return Statistics(key=key)
