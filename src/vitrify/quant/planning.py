"""Planning: which quantization each tensor gets, and where a requantization is needed. Nothing is changed here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from vitrify.ir import Graph, Node, Quantization, Tensor
from vitrify.ops import Add, FullyConnected, Logistic, Maximum, Minimum, PadV2, Sub
from vitrify.ops.legality import MOST_MULTIPLIER
from vitrify.quant.calibration.calibrators import Calibrators, node_names
from vitrify.quant.calibration.observe import keys
from vitrify.quant.calibration.ranges import constant_range, range_of
from vitrify.quant.calibration.saturation import FLAT, SPARSE, is_score, needed
from vitrify.quant.calibration.statistics import Range, Statistics
from vitrify.quant.groups import Group, Groups
from vitrify.quant.recipe import Recipe
from vitrify.quant.rules import Roles, fixed_output, is_real, keeps_values, roles, shared_inputs
from vitrify.quant.scalars import Scalars, align_scalars, bias_for
from vitrify.quant.scales import covered, held_below, levels_left, weight_scales
from vitrify.quant.weights.bias_correction import input_means
from vitrify.quant.weights.clipping import clipped_scales
from vitrify.quant.weights.rounding import round_weights

Array = np.ndarray[Any, np.dtype[Any]]

JOIN_LEVELS = 64
"""A member of a join with fewer levels than this, and with other readers, keeps a finer scale of its own for them."""

ADD_LIMIT = 2.0 ** -19 * 1.001
"""ADD and SUB need an output scale above 2 * largest input scale / 2**20: TFLite shifts inputs left by 20 bits and
demands multipliers below 1. Source: TFLite kernels/add.cc."""

WIDE_ADD_LIMIT = 2.0 ** -14 * 1.001
"""With int16, inputs are shifted by 15 bits only."""

HEADROOM = 2.0
"""16 bits reach this far beyond what was seen: a step twice as wide costs 6 dB of 90, a value cut off its whole excess.
On a pretrained YOLOv8n in 16 bits, mirrored photos had scores 0.105 off without it, and 0.025 with it."""

OUTLIER = 1e3
"""A padding constant this much larger than the values it is put around stands for infinity."""


@dataclass(frozen=True)
class Weights:
    """The constant weights of a node and its bias, by input position; ``input`` is what they are multiplied with.

    ``means`` are those of the input's channels, for correcting the bias; None leaves it as it is. ``added`` goes to the
    bias for what the input is short of. ``levels`` are the rounded weights; None: each to the nearest. ``extent`` are
    the scales that would be wide enough for all weights.
    """

    index: int
    quantization: Quantization
    bias: int | None
    input: int
    means: Array | None = None
    added: Array | None = None
    levels: Array | None = None
    extent: Quantization | None = None


@dataclass
class Plan:
    """What each tensor becomes; printed and tested without being applied.

    activations: the quantization of each tensor computed at run time.
    constants: that of a constant, by the node and position that read it.
    weights: constant weights and biases by node.
    requantize: node inputs that need another scale than their tensor has.
    wide: the nodes that compute with 16-bit activations; wide_inputs: the model's inputs that come so.
    outputs: the 8-bit quantization of outputs that are computed in 16 bits.
    """

    activations: dict[Tensor, Quantization] = field(default_factory=dict)
    constants: dict[tuple[Node, int], Quantization] = field(default_factory=dict)
    weights: dict[Node, Weights] = field(default_factory=dict)
    requantize: dict[tuple[Node, int], Quantization] = field(default_factory=dict)
    wide: frozenset[Node] = frozenset()
    wide_inputs: frozenset[Tensor] = frozenset()
    outputs: dict[Tensor, Quantization] = field(default_factory=dict)

    def __str__(self) -> str:
        lines = [f"{t.name}: {q}" for t, q in self.activations.items()]
        lines += [f"{n.name} weights: {w.quantization}" for n, w in self.weights.items()]
        lines += [f"{n.name} input {i} requantized: {q}" for (n, i), q in self.requantize.items()]
        return "\n".join(lines)

    def input_scale(self, node: Node, index: int) -> Quantization:
        """The quantization that a node sees at one of its inputs."""
        at = node, index
        return self.requantize.get(at) or self.constants.get(at) or self.activations[node.input(index)]


def plan(graph: Graph, statistics: Statistics, recipe: Recipe,
         fixed: Mapping[Tensor, Quantization] | None = None, wide: Set[Node] = frozenset(),
         known: Mapping[Tensor, Range] | None = None) -> Plan:
    """Plan the int8 form of a float graph whose nodes all have an int8 rule.

    ``fixed`` holds quantizations that are settled beforehand, ``known`` ranges that were not observed; the nodes in
    ``wide`` get 16-bit activations.
    """
    return _Planner(graph, statistics, recipe, fixed or {}, wide, known or {}).plan()


class _Planner:
    def __init__(self, graph: Graph, statistics: Statistics, recipe: Recipe,
                 fixed: Mapping[Tensor, Quantization], wide: Set[Node], known: Mapping[Tensor, Range]) -> None:
        self.graph = graph
        self.fixed = fixed
        self.wide = wide
        self.recipe = recipe
        self.groups = Groups()
        self.broken: list[tuple[Node, int]] = []
        self.scalars = Scalars()
        self.statistics = statistics
        self.names = keys(graph)
        self._natural = natural_ranges(graph, statistics, recipe, wide, known)
        # what 16 bits hold to the last value is cut to 8 as the calibrator has it
        self._narrowed = _narrowed(natural_ranges(graph, statistics, recipe, known=known) if wide else self._natural)
        self._known = known
        self._wide_inputs = frozenset(graph.inputs) if recipe.input_type == "int16" else frozenset()

    def plan(self) -> Plan:
        for tensor in self._natural:
            wide = tensor.producer in self.wide or tensor in self._wide_inputs
            fixed = fixed_output(tensor.producer, wide) if tensor.producer is not None else None
            self.groups.add(tensor, self._with_headroom(tensor) if wide else self._narrowed[tensor],
                            Quantization.per_tensor(*fixed) if fixed else None if wide else self.fixed.get(tensor),
                            wide)
        sharing = [(node, shared_inputs(node)) for node in self.graph]
        for node, inputs in sharing:
            self._join_outputs(node)
            if len(inputs) == 1:
                self._join_single(node, inputs[0])
        for node, inputs in sharing:
            if len(inputs) > 1:
                self._join_many(node, inputs)
        self._widen_sums()
        self.scalars = align_scalars(self.graph, self.groups)
        return self._collect()

    def _with_headroom(self, tensor: Tensor) -> Range:
        """The range of 16 bits: beyond what was seen, unless it is known or the file's own input."""
        seen = self._natural[tensor]
        return seen if tensor in self._known or tensor.producer is None else seen.scaled(HEADROOM)

    def _join_outputs(self, node: Node) -> None:
        """Outputs of an operator that cuts its input have that input's scale, so they share one."""
        if shared_inputs(node):
            reals = [t for t in node.outputs if is_real(t)]
            for other in reals[1:]:
                self.groups.join(reals[0], other)

    def _join_single(self, node: Node, index: int) -> None:
        tensor, output = node.input(index), node.output
        if tensor.is_constant:
            return
        if self.groups.can_join((tensor, output)):
            self.groups.join(tensor, output)
        else:
            self.broken.append((node, index))

    def _join_many(self, node: Node, inputs: tuple[int, ...]) -> None:
        """Let the members of a join share one scale, except those that would lose much precision elsewhere."""
        output = node.output
        members = [(i, node.input(i)) for i in inputs if not node.input(i).is_constant]
        whole = self.groups[output].range
        for _, tensor in members:
            whole = whole.join(self.groups[tensor].range)
        alike = [t for _, t in members if self.groups[t].wide == self.groups[output].wide]
        target = self._target(node, alike, whole)
        for index, tensor in members:
            group = self.groups[tensor]
            if group is self.groups[output]:
                continue
            fixed = group.fixed if group.fixed is not None else target
            apart = fixed != target or group.wide != self.groups[output].wide
            if apart or self._loses(group, node, whole if target is None else covered(target)):
                self.broken.append((node, index))
            else:
                self.groups.join(output, tensor)
        if target is not None and self.groups[output].fixed is None:
            self.groups[output].fixed = target

    def _target(self, node: Node, members: list[Tensor], whole: Range) -> Quantization | None:
        """The fixed quantization that the join can take over from a member, None for one made from the range."""
        own = self.groups[node.output].fixed
        if own is not None:
            return own
        for fixed in dict.fromkeys(q for t in members if (q := self.groups[t].fixed) is not None):
            limits, step = covered(fixed), float(fixed.scale[0])
            if limits.low - step <= whole.low and whole.high <= limits.high + step:
                return fixed
        return None

    def _loses(self, group: Group, join: Node, whole: Range) -> bool:
        """True when a group with readers besides the join would be left with few levels."""
        if levels_left(group.range.with_zero(), whole) >= JOIN_LEVELS:
            return False
        return any(user is not join and not keeps_values(user) for t in group.members for user in t.users)

    def _widen_sums(self) -> None:
        for node in self.graph.nodes_of(Add, Sub):
            found = roles(node)
            output = self.groups.get(node.output)
            if found is None or output is None or output.fixed is not None:
                continue
            largest = max((self._scale_at(node, i) for i in found.activations), default=0.0)
            limit, levels = (WIDE_ADD_LIMIT, 2 ** 15) if output.wide else (ADD_LIMIT, 256)
            if float(output.quantization.scale[0]) < largest * limit:
                output.range = output.range.join(Range(0.0, largest * limit * levels))

    def _scale_at(self, node: Node, index: int) -> float:
        return float(self._seen_at(node, index).scale[0])

    def _seen_at(self, node: Node, index: int) -> Quantization:
        """The quantization of an input as its node takes it: one of its own where the widths differ."""
        tensor, wide = node.input(index), node in self.wide
        if tensor.is_constant:
            return Group(range=constant_range(tensor), wide=wide).quantization
        group = self.groups[tensor]
        if group.wide == wide:
            return group.quantization
        found = covered(group.quantization) if wide else self._narrowed[tensor]
        return Group(range=found, wide=wide).quantization

    def _collect(self) -> Plan:
        made = Plan(activations={t: self.groups[t].quantization for t in self._natural}, wide=frozenset(self.wide),
                    wide_inputs=self._wide_inputs, outputs=self._narrow_outputs())
        for node, index in self.broken:
            made.requantize[node, index] = self.groups[node.output].quantization
        for node in self.graph:
            found = roles(node)
            if found is None:
                continue
            for index in found.activations:
                if node.input(index).is_constant:
                    made.constants[node, index] = self._constant(node, index)
                elif (node, index) not in made.requantize and \
                        self.groups[node.input(index)].wide != (node in self.wide):
                    made.requantize[node, index] = self._seen_at(node, index)
            if found.weight is not None and found.data is not None and is_real(node.input(found.weight)):
                made.weights[node] = self._weights(node, found, made)
        return made

    def _narrow_outputs(self) -> dict[Tensor, Quantization]:
        found = {}
        for tensor in self.graph.outputs:
            if tensor in self.groups and self.groups[tensor].wide:
                fixed = fixed_output(tensor.producer) if tensor.producer is not None else None
                found[tensor] = Quantization.per_tensor(*fixed) if fixed else \
                    Group(range=self._narrowed[tensor]).quantization
        return found

    def _constant(self, node: Node, index: int) -> Quantization:
        if index in shared_inputs(node):
            return self.groups[node.output].quantization
        settled = self.scalars.constants.get((node, index))
        return settled or self._seen_at(node, index)

    def _weights(self, node: Node, found: Roles, made: Plan) -> Weights:
        assert found.weight is not None
        assert found.data is not None
        tensor = node.input(found.weight)
        bias = node.input(found.bias).data if found.bias is not None and node not in self.wide else None
        scale = float(made.input_scale(node, found.data).scale[0])
        assert tensor.data is not None
        axis = self._axis(node, found)
        extent, means = weight_scales(tensor.data, axis, bias, scale), self._means(node.input(found.data))
        if node not in self.wide and node.output in made.activations:
            extent = held_below(extent, MOST_MULTIPLIER * float(made.activations[node.output].scale[0]) / scale)
        scales = extent
        moments = self.statistics.moments.get(node.name) if self.recipe.rounding != "nearest" else None
        if self.recipe.weight_clipping:
            scales = clipped_scales(tensor.data, scales, moments)
        centered = means is not None and found.bias is not None
        levels = round_weights(node.op, tensor.data, scales, moments, centered, self.recipe.rounding == "learned") \
            if moments is not None else None
        return Weights(found.weight, scales, found.bias, found.data, means,
                       bias_for(node, tensor.data, self.scalars.missing), levels, extent)

    def _means(self, tensor: Tensor) -> Array | None:
        return input_means(tensor, self.names, self.statistics) if self.recipe.bias_correction else None

    def _axis(self, node: Node, found: Roles) -> int | None:
        default = self.recipe.fully_connected_weights if isinstance(node.op, FullyConnected) else self.recipe.weights
        chosen = self.recipe.override(node_names(node), node.op.kind).weights or default
        if chosen == "per-tensor":
            return None
        return 0 if isinstance(node.op, FullyConnected) else found.rule.weight_axis


def natural_ranges(graph: Graph, statistics: Statistics, recipe: Recipe, wide: Set[Node] = frozenset(),
                   known: Mapping[Tensor, Range] | None = None) -> dict[Tensor, Range]:
    """Return the range of every float tensor computed at run time: observed, or derived from what it is made of.

    What nodes in ``wide`` make has levels enough for all that was seen; ``known`` comes before what was observed.
    """
    named = keys(graph)
    calibrators = Calibrators(graph, recipe)
    found: dict[Tensor, Range] = {}
    for tensor in _computed(graph):
        if known is not None and tensor in known:
            found[tensor] = known[tensor]
            continue
        key = named[tensor]
        producer = tensor.producer
        derived = producer is not None and keeps_values(producer)
        if key in statistics and not (derived and producer is not None and not tensor.is_output):
            found[tensor] = statistics[key].range if producer in wide else \
                range_of(statistics[key], *calibrators.of(tensor))
        elif producer is not None and derived:
            found[tensor] = _derived(producer, found)
        elif producer is not None and (fixed := fixed_output(producer)):
            found[tensor] = covered(Quantization.per_tensor(*fixed))
        else:
            found[tensor] = Range(0.0, 0.0)
    return found


def _narrowed(found: Mapping[Tensor, Range]) -> dict[Tensor, Range]:
    """Leave out of each range what the tensor's readers do not tell apart; give scores their whole curve."""
    narrowed: dict[Tensor, Range] = {}
    for tensor, own in found.items():
        limits = needed(tensor, found)
        sparse = is_score(tensor) and own.low <= SPARSE
        narrowed[tensor] = FLAT[Logistic] if sparse else own.clip(limits.low, limits.high)
    return narrowed


def _computed(graph: Graph) -> Iterator[Tensor]:
    yield from (t for t in graph.inputs if is_real(t))
    for node in graph:
        yield from (t for t in node.outputs if is_real(t))


def _derived(node: Node, found: Mapping[Tensor, Range]) -> Range:
    """Join the ranges of what a node moves values from. A padding constant that stands for infinity is left out."""
    if isinstance(node.op, Maximum | Minimum):
        return _chosen(node, found)
    ranges = [found[t] for i in shared_inputs(node) if not (t := node.input(i)).is_constant and t in found]
    whole = ranges[0] if ranges else Range(0.0, 0.0)
    for other in ranges[1:]:
        whole = whole.join(other)
    for index in shared_inputs(node):
        if node.input(index).is_constant:
            constant = constant_range(node.input(index))
            if not (isinstance(node.op, PadV2) and stands_for_infinity(constant, whole)):
                whole = whole.join(constant)
    return whole


def _chosen(node: Node, found: Mapping[Tensor, Range]) -> Range:
    """The range of the larger, or the smaller, of two values."""
    one, other = (constant_range(t) if t.is_constant else found.get(t, Range(0.0, 0.0))
                  for t in map(node.input, (0, 1)))
    pick = max if isinstance(node.op, Maximum) else min
    return Range(pick(one.low, other.low), pick(one.high, other.high))


def stands_for_infinity(constant: Range, values: Range) -> bool:
    """True for a padding value so far out that no value is meant by it."""
    largest = max(abs(values.low), abs(values.high))
    return max(abs(constant.low), abs(constant.high)) > OUTLIER * max(largest, float(np.finfo(np.float32).tiny))
