"""What a profile found: times, memory, the way of each source node, hot spots; a report needs nothing else.

A measured operator and an estimated one are different types (``basis`` tells them apart in JSON), and a profile holds
one kind only.
"""

from __future__ import annotations

import msgspec


class TimeRow(msgspec.Struct, kw_only=True):
    """Measured times in milliseconds over ``runs`` runs; ``deviation_ms`` is their standard deviation, ``quiet_ms`` the
    mean of the quietest quarter of runs."""

    runs: int = 0
    quiet_ms: float = 0.0
    median_ms: float = 0.0
    mean_ms: float = 0.0
    min_ms: float = 0.0
    p10_ms: float = 0.0
    p90_ms: float = 0.0
    p99_ms: float = 0.0
    max_ms: float = 0.0
    deviation_ms: float = 0.0


class LayerRow(msgspec.Struct, kw_only=True):
    """What the compiler scheduled: one of the operators that a node became, or one that it made by itself.

    ``cycles`` are all, the others those of computing and of each memory, which overlap.
    """

    name: str = ""
    operator: str = ""
    cycles: int = 0
    compute_cycles: int = 0
    near_cycles: int = 0
    far_cycles: int = 0
    macs: int = 0
    near_bytes: int = 0
    far_bytes: int = 0


class ProfiledRow(msgspec.Struct, kw_only=True):
    """What measured and estimated operators share.

    ``bytes`` is what it reads and writes: ``input_bytes``, ``output_bytes`` and the constants ``weight_bytes``.
    ``share`` is that of the time of all operators, ``origin`` the nodes of the user's file that it was made from,
    ``after`` the ``index`` of each operator whose values it reads, ``bound`` what it waits for: ``compute``,
    ``memory``, ``elements`` (work on values one by one), ``start`` or "".
    """

    index: int
    node: str
    operator: str
    placement: str
    time_ms: float | None = None
    share: float | None = None
    bytes: int = 0
    input_bytes: int = 0
    output_bytes: int = 0
    weight_bytes: int = 0
    macs: int = 0
    shape: list[int] = []
    dtype: str = ""
    origin: list[str] = []
    after: list[int] = []
    bound: str = ""


class MeasuredRow(ProfiledRow, tag_field="basis", tag="measured"):
    """An operator that was timed. ``placement`` is ``cpu``, ``xnnpack``, or ``fused`` (it went into ``into``).

    ``kernels`` names what XNNPACK ran for it; ``time_ms`` is the mean of the quietest quarter of runs, null where
    no time of its own is known.
    """

    time: TimeRow | None = None
    kernels: list[str] = []
    into: str = ""


class EstimatedRow(ProfiledRow, tag_field="basis", tag="estimated"):
    """An operator whose time is computed from a model of the chip. ``placement`` is ``npu``, ``cpu`` or ``folded``.

    The cycles are the compiler's, null where none tells them; ``layers`` is what it scheduled for the node.
    ``utilisation`` is the share of the NPU's MACs that are busy.
    """

    low_ms: float | None = None
    high_ms: float | None = None
    cycles: int | None = None
    compute_cycles: int | None = None
    near_cycles: int | None = None
    far_cycles: int | None = None
    near_bytes: int | None = None
    far_bytes: int | None = None
    utilisation: float | None = None
    source: str = ""
    partition: int | None = None
    layers: list[LayerRow] = []


class OverheadRow(msgspec.Struct, kw_only=True):
    """Time that is no operator's: ``what`` it is, and how often."""

    what: str
    time_ms: float = 0.0
    cycles: int | None = None
    count: int = 1
    layer: LayerRow | None = None


class MeasuredRun(msgspec.Struct, kw_only=True):
    """How it was measured. ``whole`` are runs without the profiler and ``profiled`` those with it, taken in turns.

    ``sum_ratio`` is the time of all operators over that of ``whole``, in the quietest quarter of runs; ``method`` says
    how operators were timed.
    """

    runtime: str = ""
    kernels: str = ""
    threads: int = 1
    warmup: int = 0
    inputs: str = ""
    whole: TimeRow = msgspec.field(default_factory=TimeRow)
    profiled: TimeRow | None = None
    sum_ratio: float | None = None
    method: str = ""
    processor: str = ""


class CyclesRow(msgspec.Struct, kw_only=True):
    """The compiler's totals, and what of them belongs to operators of the user and to none.

    ``passed_through`` counts operators that were left to the CPU: the compiler adds one cycle for each.
    """

    total: int = 0
    compute: int = 0
    near: int = 0
    far: int = 0
    macs: int = 0
    operators: int = 0
    overhead: int = 0
    passed_through: int = 0


class RooflineRow(msgspec.Struct, kw_only=True):
    """The two limits of a chip: MACs a second, and bytes a second of the far memory; they meet at ``ridge`` MACs a
    byte. ``basis`` says how the bandwidth is known."""

    peak_macs_per_s: float = 0.0
    bytes_per_s: float = 0.0
    ridge: float = 0.0
    basis: str = ""
    source: str = ""


class LifeRow(msgspec.Struct, kw_only=True):
    """A tensor between operators: from which operator on it is needed, to which, and where it lies.

    ``offset`` is the place in ``memory``, null where it has none; ``fits`` whether it fits into the chip's near memory.
    """

    tensor: str
    bytes: int
    first: int
    last: int
    offset: int | None = None
    memory: str = "arena"
    maker: str = ""
    fits: bool | None = None


class ModeRow(msgspec.Struct, kw_only=True):
    """What the compiler says of one memory mode; ``problem`` where it refuses."""

    mode: str
    says: str = ""
    usual: bool = False
    latency_ms: float | None = None
    near_bytes: int | None = None
    far_bytes: int | None = None
    far_traffic_bytes: int | None = None
    problem: str = ""


class MemoryPlan(msgspec.Struct, kw_only=True):
    """Where values live. ``arena_bytes`` is what is planned or was found, by ``planner``; ``scratch_bytes`` of it are
    the most that one kernel needs for itself, such as the rows of a convolution's patches. ``live_bytes`` is the most
    that values need at once, while ``peak_node`` runs and ``alive`` are there; only values that share bytes take less.

    ``reserve_bytes`` is the arena to reserve on the device, None where nothing says. ``near_limit_bytes`` is the memory
    on the chip, ``beyond`` the operators whose values and weights do not fit there together. ``lives`` counts in
    operators of the profiled file, ``placed`` is what the compiler did, in its own steps.
    """

    arena_bytes: int = 0
    planner: str = ""
    scratch_bytes: int = 0
    live_bytes: int = 0
    peak_index: int | None = None
    peak_node: str = ""
    alive: list[str] = []
    weights_bytes: int = 0
    variables_bytes: int = 0
    reserve_bytes: int | None = None
    reserve_why: str = ""
    near_limit_bytes: int | None = None
    near_used_bytes: int | None = None
    far_used_bytes: int | None = None
    beyond: list[str] = []
    lives: list[LifeRow] = []
    placed: list[LifeRow] = []
    modes: list[ModeRow] = []


class FormRow(msgspec.Struct, kw_only=True):
    """Nodes of one form of the model that a source node lives on in. ``time_ms`` and ``bytes`` are theirs together,
    shared out evenly where others live on in them too; ``types`` are those of what they give. ``placement`` is also
    ``host`` where the host computes it from the file's outputs, and ``folded`` into ``nodes``."""

    nodes: list[str] = []
    operators: list[str] = []
    types: list[str] = []
    time_ms: float | None = None
    bytes: int | None = None
    placement: str = ""


class MappedRow(msgspec.Struct, kw_only=True):
    """A node of the source beside what it became. ``how``: ``kept``, ``split``, ``fused``, ``folded`` (``into`` are
    those that use its value), ``unused``; ``passes`` touched it. ``after`` are the places in the list of the nodes
    whose values it reads."""

    name: str
    operator: str
    how: str
    into: list[str] = []
    after: list[int] = []
    passes: list[str] = []
    float_form: FormRow | None = None
    integer_form: FormRow | None = None
    compiled_form: FormRow | None = None


class InsertedRow(msgspec.Struct, kw_only=True):
    """A node that no source node is in: ``form`` has it, and ``passes`` put it there."""

    form: str
    node: str
    operator: str
    passes: list[str] = []
    time_ms: float | None = None


class MappingRow(msgspec.Struct, kw_only=True):
    """The source beside its optimized forms; ``counts`` of ``nodes`` by how."""

    source: str = ""
    forms: list[str] = []
    counts: dict[str, int] = {}
    nodes: list[MappedRow] = []
    inserted: list[InsertedRow] = []


class AdviceRow(msgspec.Struct, kw_only=True):
    """A hot spot: what it is, why, and what to change. ``kind``: ``slow``, ``transpose``, ``requantize``, ``island``,
    ``memory-bound``, ``idle-macs``, ``large-tensor``, ``far``; ``rule`` and ``source`` say on what it rests."""

    kind: str
    headline: str
    nodes: list[str] = []
    why: str = ""
    help: str = ""
    time_ms: float | None = None
    share: float | None = None
    bytes: int | None = None
    rule: str = ""
    source: str = ""


class DeltaRow(msgspec.Struct, kw_only=True):
    """A figure of two profiles; ``change`` is the difference as a share of the first, null where that is none."""

    name: str
    before: float | None = None
    after: float | None = None
    change: float | None = None


class PairRow(msgspec.Struct, kw_only=True):
    """Operators of two profiles that are each other; one side is empty where nothing is."""

    before: list[str] = []
    after: list[str] = []
    operators: list[str] = []
    before_ms: float | None = None
    after_ms: float | None = None
    change_ms: float | None = None


class ComparedRow(msgspec.Struct, kw_only=True):
    """The profile of another model or run beside this one. ``related`` is false where they are no forms of one model:
    then only the totals are compared. ``noise_ms`` is what measured totals differ by without a cause."""

    before: str = ""
    after: str = ""
    basis: str = ""
    related: bool = True
    alike: float | None = None
    figures: list[DeltaRow] = []
    operators: list[PairRow] = []
    noise_ms: float | None = None


class GateRow(msgspec.Struct, kw_only=True):
    """A condition under which a profile fails. ``value`` is what it was judged by; ``failed`` is null where it could
    not be."""

    expression: str
    figure: str = ""
    value: float | None = None
    limit: float | None = None
    failed: bool | None = None
    text: str = ""
