"""Calibration: the float model runs over samples in LiteRT, and the tensors that need a range are observed.

A copy of the model gives those tensors out, so that the fast kernels run and nothing else has to be kept. Samples come
one at a time; what stays in memory is the model, one sample and the statistics. With a checkpoint, a run that was
killed goes on where it stopped and ends with the same statistics, bit for bit.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from vitrify.core.errors import DataError, ModelError
from vitrify.core.isolation import run_isolated
from vitrify.core.progress import ProgressCallback
from vitrify.data.binding import identity_interface, to_file_inputs
from vitrify.data.samples import Samples
from vitrify.ir import Interface, Model
from vitrify.quant.calibration.observe import Watch, observe, watches
from vitrify.quant.calibration.statistics import Statistics
from vitrify.quant.copying import model_around
from vitrify.quant.engine import nan_finding, refuse_unquantizable
from vitrify.quant.forms.preparing import fold_half_weights
from vitrify.quant.recipe import Recipe

Array = np.ndarray[Any, np.dtype[Any]]

CHECKPOINT_SECONDS = 5.0
"""Time between checkpoints: little to lose, and little spent on writing."""


def calibrate(float_model_path: Path | str, samples: Samples, recipe: Recipe, checkpoint: Path | str | None = None,
              progress: ProgressCallback | None = None) -> Statistics:
    """Run a float TFLite model over ``samples`` in a process of its own and return what was observed.

    Args:
        float_model_path: the float model; it is not changed.
        samples: what to run; a sample that cannot be read ends the run with an error that names it.
        recipe: says which tensors and which statistics are needed.
        checkpoint: a file that keeps what was seen so far; taken up again when model, samples and recipe are the same.
        progress: called with samples done and samples in all.

    Raises:
        DataError: a sample does not fit, or there is none.
        ModelError: LiteRT does not run the model, or a tensor becomes NaN or infinite; names sample and tensors.
        UnsupportedError: the model has operators without an int8 form.
    """
    if not len(samples):
        raise DataError.of("data.empty", "there are no calibration samples")
    result = run_isolated("vitrify.runtimes.litert.calibrate:calibrate_here", str(float_model_path), samples, recipe,
                          str(checkpoint) if checkpoint is not None else None,
                          what=f"calibrating {Path(float_model_path).name}", on_progress=progress or _silent)
    assert isinstance(result, Statistics)
    return result


def _silent(done: int, total: int) -> None:
    """Take progress that nobody asked for."""


def calibrate_here(path: str, samples: Samples, recipe: Recipe, checkpoint: str | None = None,
                   progress: ProgressCallback = _silent) -> Statistics:
    """Do what ``calibrate`` does, in this process."""
    from vitrify.tflite import read

    model = read(path)
    refuse_unquantizable(model, recipe)
    fold_half_weights(model.main)
    watched = watches(model.main, recipe)
    statistics = _resume(checkpoint, _key(path, samples, watched))
    statistics.is_random, statistics.pictures = samples.is_random, samples.pictures
    run = _Observed(model, watched, model.interface or identity_interface(model), path)
    _loop(run, samples, statistics, checkpoint, progress)
    return statistics


def _loop(run: _Observed, samples: Samples, statistics: Statistics, checkpoint: str | None,
          progress: Callable[[int, int], None]) -> None:
    saved = time.monotonic()
    for number, sample in enumerate(samples.walk(statistics.samples), statistics.samples):
        observe(statistics, run.watched, run.arrays(sample), number)
        statistics.samples = number + 1
        broken = [w.key for w in run.watched if statistics[w.key].nan_sample is not None]
        if broken:
            raise ModelError(nan_finding(broken, samples.name(number)))
        if checkpoint is not None and time.monotonic() - saved > CHECKPOINT_SECONDS:
            statistics.save(checkpoint)
            saved = time.monotonic()
        progress(number + 1, len(samples))
    if checkpoint is not None:
        statistics.save(checkpoint)


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


def _key(path: str, samples: Samples, watched: Sequence[Watch]) -> str:
    """Name the run: the same model, samples and kind of statistics give the same key."""
    content = hashlib.sha256(Path(path).read_bytes()).hexdigest()
    kept = [(w.key, w.histogram, w.axes, w.means, [n.name for n in w.layers]) for w in watched]
    return hashlib.sha256(msgspec.json.encode((content, samples.fingerprint(), kept))).hexdigest()


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
