"""Fixes a model for a target: chooses, applies, proves, asks the compiler, and undoes what does not help."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from pathlib import Path

from vitrify import tflite
from vitrify.backends.base import Compiled, driver_of
from vitrify.core.errors import VitrifyError
from vitrify.core.files import temporary_folder
from vitrify.ir import Exactness, Ledger, LedgerEntry, Model
from vitrify.ir.naming import make_names_unique
from vitrify.passes.targets import Fix, catalogue, find
from vitrify.pipeline.checking.fixes.applying import Applied, Key, apply_fixes, serving
from vitrify.pipeline.checking.fixes.proving import RUNS, Proof
from vitrify.pipeline.checking.fixes.repairing import LARGEST as REPAIR_LSB
from vitrify.pipeline.checking.fixes.repairing import repair_error
from vitrify.pipeline.checking.fixes.state import State
from vitrify.pipeline.checking.judging import judge_model
from vitrify.results.fixes import FixOutcome, FixRow, LeftRow
from vitrify.targets import Target
from vitrify.targets import base as targets
from vitrify.targets.placement import Estimate, Placement
from vitrify.targets.rules import place, reasons
from vitrify.tflite.reading import FILE_TENSORS

ATTEMPTS = 6
"""How often places are taken back and the rest tried again."""
_SLACK = 1.005
"""The estimate of a place that did not change moves by so much with its neighbours."""
_NOTHING = 1e-4
"""What share of a model's time is too little to tell."""
_EXAMPLES = 5


def fix_model(model: Model, target: Target | str, *, names: Sequence[str] = (), only: Sequence[str] | None = None,
              compiler: bool = True, runs: int = RUNS, seed: int = 0, ledger: Ledger | None = None) -> FixOutcome:
    """Rewrite ``model`` in place so that more of it runs on the NPU of ``target``, or the same costs less there.

    Each fix is proved: the model runs before and after in LiteRT's reference kernels on the same random values, and a
    place whose values differ by more than its class allows is put back. What the compiler estimates to be slower is put
    back too.

    Args:
        model: an integer model, as read from a file; its names, scales and outputs stay.
        target: the chip, or its name.
        names: fixes to apply besides the exact ones: those that round, or approximate (``passes.targets.catalogue``).
        only: these fixes and no others.
        compiler: ask the compiler too. Without it, coverage by the rules alone decides, and no times are known.
        runs: inputs to compare on.
        seed: of the random values.
        ledger: takes a line for each fix that changed something.
    Raises:
        UsageError: there is no such fix or target.
    """
    chip = targets.load(target) if isinstance(target, str) else target
    chosen = find(only) if only is not None else (*[one for one in catalogue() if one.by_default], *find(names))
    with temporary_folder() as folder:
        fixing = _Fixing(model, chip, tuple(dict.fromkeys(chosen)), Path(folder), compiler)
        fixing.refuse_useless({*names, *(only or ())})
        return fixing.run(runs, seed, ledger)


class _Fixing:
    """One model on its way."""

    def __init__(self, model: Model, target: Target, fixes: tuple[Fix, ...], folder: Path, compiler: bool) -> None:
        self.model = model
        self.target = target
        self.fixes = tuple(one for one in fixes if not one.repairs)
        self.repairs = tuple(one for one in fixes if one.repairs)
        self.repaired: list[Applied] = []
        self.folder = folder
        self.compiler = compiler
        self.given = self.start = State(model)
        self.excluded: set[Key] = set()
        self.undone: dict[str, list[str]] = {}
        self.declined: dict[Key, str] = {}
        self.applied: list[Applied] = []
        self.errors: dict[str, int] = {}
        self.repair_errors: dict[str, int] = {}
        self.won: dict[Key, float] = {}
        self.refusal = ""
        judged = judge_model(model, target)
        self.before: Placement = judged.placement
        self.own_before = judged.estimate
        self.outcome = FixOutcome(target=target.name, nodes_before=self.before.coverage.nodes,
                                  macs_before=self.before.coverage.macs, cpu_before=self.before.count("cpu"))

    def refuse_useless(self, named: Container[str]) -> None:
        """Tell of fixes that were asked for by name and that are there for other chips."""
        useful = serving(self.fixes, self.target) + serving(self.repairs, self.target)
        for one in (*self.fixes, *self.repairs):
            if one.name in named and one not in useful:
                self._note(one.name, f"it mends no rule of {self.target.name}, and nothing says it is cheaper there")

    def run(self, runs: int, seed: int, ledger: Ledger | None) -> FixOutcome:
        nodes = len(self.model.main)
        make_names_unique(self.model.main)
        self._repair(seed)
        self.start = State(self.model)
        self._apply()
        if self.applied:
            self.start.restore()
            try:
                with Proof(self.model, self.folder, runs, seed) as proof:
                    self.outcome.proof = f"{proof.name}, {runs} random inputs"
                    self._prove(proof)
                    self._estimate(proof)
            except VitrifyError as error:
                self.start.restore()
                self.applied.clear()
                self._note("", f"the model could not be run: {error.findings[0].headline}")
        return self._told(nodes, ledger)

    def _repair(self, seed: int) -> None:
        """Rewrite what LiteRT cannot run, where the result is what the operator means."""
        start, excluded = State(self.model), set[Key]()
        places = apply_fixes(self.model, self.target, self.repairs) if self.repairs else []
        for one in places:
            error = repair_error(one.fix, one.before, self.folder, seed) if one.before is not None else float("inf")
            if error > REPAIR_LSB:
                excluded.add(one.key)
                self._note(one.fix.name, f"'{one.node}' would be {error:.3g} steps from what it means")
            for name in one.outputs:
                self.repair_errors[name] = 0 if error > REPAIR_LSB else round(error)
        if excluded:
            start.restore()
            places = apply_fixes(self.model, self.target, self.repairs, excluded)
        self.repaired = places

    def _apply(self) -> None:
        """Bring the model to the fixed state, without the places that are excluded."""
        for _ in range(ATTEMPTS):
            self.applied = apply_fixes(self.model, self.target, self.fixes, self.excluded, self.declined)
            stuck = self._stuck()
            if not stuck:
                return
            self.excluded |= stuck
            self.start.restore()
        self.applied.clear()

    def _stuck(self) -> set[Key]:
        """The places in which something is on the CPU after all, because a second fix could not help."""
        broken = {node.name for node in reasons(self.model.main, self.target)}
        roots = {one.node: one.key for one in self.applied if not one.within}
        bad = set()
        for one in self.applied:
            if broken & set(one.made):
                bad.add(roots.get(one.within, one.key))
        return bad

    def _prove(self, proof: Proof) -> None:
        """Compare; take back the first place that differs by too much, and what else differs at first hand."""
        for _ in range(ATTEMPTS):
            self._apply()
            if not self.applied:
                return
            path = self._written()
            try:
                worst = proof.worst(path, cut=any(one.fix.cuts for one in self.applied))
            except VitrifyError as error:
                self._take_back(self.applied, f"LiteRT refuses what they make: {error.findings[0].headline}")
                continue
            self.errors = proof.at(path, [name for one in self.applied for name in one.outputs]) if worst else {}
            failed = self._failed(worst)
            if not failed:
                self.outcome.largest_error_lsb = round(worst)
                return
            for one in failed:
                self._take_back([one], f"'{one.node}' differs by {self._error(one)} steps")
        self.start.restore()
        self.applied.clear()

    def _failed(self, worst: float) -> list[Applied]:
        """The places of the fix of the first place, in the graph's order, that differs by more than it may."""
        if not worst:
            return []
        order = {tensor.name: i for i, node in enumerate(self.model.main) for tensor in node.outputs}
        places = sorted(self.applied, key=lambda one: min((order.get(n, 1 << 30) for n in one.outputs), default=-1))
        inexact = False
        for one in places:
            if self._error(one) > (one.fix.largest_lsb or 0) and one.fix.largest_lsb is not None and not inexact:
                return [other for other in self.applied if other.fix is one.fix]
            inexact = inexact or one.fix.exactness is not Exactness.EXACT
        return [] if inexact else [one for one in places if not one.within][:1] if worst else []

    def _error(self, one: Applied) -> int:
        return max((self.errors.get(name, 0) for name in one.outputs), default=0)

    def _estimate(self, proof: Proof) -> None:
        """Ask the compiler about the model before and after; take back places that cost more than they did."""
        before = self._compiled(proof.path) if self.compiler and self.applied else None
        if before is None:
            self._estimate_ourselves()
            return
        self._times(before, before)
        for _ in range(ATTEMPTS):
            after = self._compiled(self._written())
            if after is None:
                self._take_back(self.applied, f"the compiler refuses what they make: {self.refusal}")
                self._prove(proof)
                return
            slower = self._slower(before, after)
            if not slower:
                self._times(before, after)
                return
            for one, lost in slower:
                self._take_back([one], f"'{one.node}' would take {lost:.3g} ms more")
            self._prove(proof)
            if not self.applied:
                return
        self._take_back(self.applied, "what is left of them would take longer")
        self.applied.clear()

    def _estimate_ourselves(self) -> None:
        """Where no compiler tells times, hold our own estimates against each other; nothing may become slower."""
        before, after = self.own_before, judge_model(self.model, self.target).estimate
        if before is None or after is None or not self.applied:
            return
        if after.latency_ms > before.latency_ms * _SLACK:
            self._take_back(self.applied, f"they would take {after.latency_ms - before.latency_ms:.3g} ms more, by our "
                                          "own estimate")
            self.applied.clear()
            after = before
        self.outcome.ms_before, self.outcome.ms_after = before.latency_ms, after.latency_ms

    def _slower(self, before: Compiled, after: Compiled) -> list[tuple[Applied, float]]:
        whole = _told(after).latency_ms - _told(before).latency_ms
        won = self._won(before, after)
        call = self.target.value("driver_call_s") * 1e3
        slower = [(one, -won[one.key]) for one in self.applied if not one.within and one.node and not
                  one.fix.avoids and won[one.key] + (call if one.codes else 0) < -_told(before).latency_ms * _NOTHING]
        if slower or whole <= _told(before).latency_ms * (_SLACK - 1):
            return slower
        last = min((one for one in self.applied if not one.within and not one.fix.avoids),
                   key=lambda one: won[one.key], default=None)
        return [] if last is None else [(last, whole)]

    def _won(self, before: Compiled, after: Compiled) -> dict[Key, float]:
        """The milliseconds that each place costs less, with what was made inside of it."""
        old = _costs(before)
        new = _costs(after)
        found = {}
        for one in self.applied:
            made = {name for other in self.applied if other is one or (not one.within and other.within == one.node)
                    for name in other.made}
            found[one.key] = old.get(one.node, 0.0) - sum(new.get(name, 0.0) for name in made)
        return found

    def _times(self, before: Compiled, after: Compiled) -> None:
        self.won = self._won(before, after)
        out = self.outcome
        out.ms_before, out.ms_after = _told(before).latency_ms, _told(after).latency_ms
        out.cycles_before, out.cycles_after = _told(before).npu_cycles, _told(after).npu_cycles

    def _compiled(self, path: Path) -> Compiled | None:
        driver = driver_of(self.target)
        if driver is None:
            return None
        try:
            found = driver.check(path, self.target)
            return found if found.estimate is not None else None
        except VitrifyError as error:
            self.refusal = error.findings[0].headline
            return None

    def _written(self) -> Path:
        path = self.folder / "after.tflite"
        tflite.write(self.model, path)
        return path

    def _take_back(self, places: Iterable[Applied], why: str) -> None:
        """Bring the model to its first state, and leave these places alone from now on."""
        for one in list(places):
            root = next((other for other in self.applied if one.within and other.node == one.within), one)
            self.excluded.add(root.key)
            self._note(root.fix.name, why)
        self.start.restore()

    def _note(self, name: str, why: str) -> None:
        self.undone.setdefault(name, []).append(why)

    def _told(self, nodes: int, ledger: Ledger | None) -> FixOutcome:
        after, out = place(self.model.main, self.target), self.outcome
        self.applied = [*self.repaired, *self.applied]
        self.errors |= self.repair_errors
        out.changed = bool(self.applied)
        if out.changed:
            self.model.extras.pop(FILE_TENSORS, None)      # what no node uses any more is not written
        else:
            self.given.restore()
        out.nodes_after, out.macs_after, out.cpu_after = after.coverage.nodes, after.coverage.macs, after.count("cpu")
        out.left = [LeftRow(node=v.node, operator=v.operator, codes=[r.code for r in v.rules],
                            headline=v.rules[0].headline if v.rules else "")
                    for v in after.verdicts if v.placement == "cpu"]
        for one in (*self.repairs, *self.fixes):
            row = self._row(one)
            if row.places or row.undone:
                out.rows.append(row)
            if row.places and ledger is not None:
                ledger.add(LedgerEntry(
                    name=one.name, summary=one.says, changes=row.places, nodes_before=nodes,
                    nodes_after=len(self.model.main), exactness=one.exactness, examples=row.examples,
                    largest_error=None if row.largest_error_lsb is None else float(row.largest_error_lsb)))
        if "" in self.undone:
            out.proof = self.undone[""][0]
        return out

    def _row(self, one: Fix) -> FixRow:
        mine = [place for place in self.applied if place.fix is one]
        times = [self.won[place.key] for place in mine if place.key in self.won and place.node]
        return FixRow(
            name=one.name, says=one.says, exactness=one.exactness.value, places=sum(place.places for place in mine),
            won=sum(place.won for place in mine), won_ms=sum(times) if times else None,
            largest_error_lsb=max(map(self._error, mine), default=0) if mine else None,
            examples=[place.origin for place in mine if place.origin][:_EXAMPLES],
            undone=[*self.undone.get(one.name, []), *(f"'{node}' is left: {why}" for (name, node), why in
                                                      self.declined.items() if name == one.name)][:_EXAMPLES])


def _told(compiled: Compiled) -> Estimate:
    assert compiled.estimate is not None      # answers without one are not looked at
    return compiled.estimate


def _costs(compiled: Compiled) -> dict[str, float]:
    found: dict[str, float] = {}
    for row in compiled.operators:
        found[row.node] = found.get(row.node, 0.0) + row.ms
    return found
