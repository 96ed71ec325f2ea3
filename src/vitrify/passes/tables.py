"""The tables of passes, one per purpose; where the order within a table matters, the reason stands beside it."""

from __future__ import annotations

from vitrify.passes.base import Pass
from vitrify.passes.cleanup.broadcasts import ImplicitBroadcast
from vitrify.passes.cleanup.concats import MergeConcats
from vitrify.passes.cleanup.dead_code import DeadCode
from vitrify.passes.cleanup.duplicates import Duplicates, SharedConstants
from vitrify.passes.cleanup.folding import FoldConstants
from vitrify.passes.cleanup.identities import Identities
from vitrify.passes.cleanup.means import MergeReductions
from vitrify.passes.cleanup.needed_rows import NeededRows
from vitrify.passes.cleanup.slices import SliceBefore
from vitrify.passes.cleanup.static_batch import PinFreeDimensions
from vitrify.passes.heads.unroll import UnrollHeads
from vitrify.passes.integers.channel_scales import ChannelScale
from vitrify.passes.integers.constants import ConstantDivisor, FoldLarge
from vitrify.passes.integers.depth_means import DepthMean
from vitrify.passes.integers.indices import Fraction, WholeEarlier
from vitrify.passes.integers.int8_forms import NegToMul, SquareToMul, SumToMean
from vitrify.passes.integers.logistic_limits import LogisticLimit
from vitrify.passes.integers.softmax_masks import SoftmaxMask
from vitrify.passes.integers.sums import (
    FloorOfQuotient,
    LocalResponse,
    PairwiseSum,
    RootOfMean,
    RunningSum,
)
from vitrify.passes.integers.truths import TruthToNumber
from vitrify.passes.integers.unit_lengths import UnitLength
from vitrify.passes.integers.unroll import Unroll
from vitrify.passes.layout.turning import TurnLayout
from vitrify.passes.patterns.activations import ClipToRelu, FuseActivation, Relu0To1ToClip
from vitrify.passes.patterns.arithmetic import DivToMul, MergeConstants, SubToAdd
from vitrify.passes.patterns.centring import CentreFirst, SquareOfDifference
from vitrify.passes.patterns.div_no_nan import DivNoNan
from vitrify.passes.patterns.division import DivToRsqrt
from vitrify.passes.patterns.focus import Focus
from vitrify.passes.patterns.gelu import TanhGelu
from vitrify.passes.patterns.hard_swish import HardSigmoid, HardSwish
from vitrify.passes.patterns.infinite_sums import InfiniteSums
from vitrify.passes.patterns.leaky_relu import LeakyRelu
from vitrify.passes.patterns.nan_guards import NanGuards
from vitrify.passes.patterns.nearest import PlainNearest
from vitrify.passes.patterns.pixel_blocks import PixelBlocks
from vitrify.passes.reshaping.fewer_reshapes import FewerReshapes
from vitrify.passes.reshaping.reshape_earlier import ReshapeEarlier
from vitrify.passes.reshaping.reshape_later import ReshapeLater
from vitrify.passes.reshaping.reshapes import MergeReshapes, StaticReshape, TransposeToReshape
from vitrify.passes.reshaping.rows import FewerAxes, RowsByParts
from vitrify.passes.reshaping.turns import MergeTurns, PatchesByParts
from vitrify.passes.weights.columns import Columns
from vitrify.passes.weights.pads import FusePad, ZeroPadBeforeMaxPool
from vitrify.passes.weights.patches import Patches
from vitrify.passes.weights.scale_order import ScaleAfterOffset, ScaleAfterPad
from vitrify.passes.weights.scale_to_maker import ScaleToMaker
from vitrify.passes.weights.scales import FoldScaleAfter, FoldScaleBefore
from vitrify.passes.weights.shuffle_makers import ShuffleByMaker
from vitrify.passes.weights.shuffles import ChannelShuffle

CLEANUP: tuple[type[Pass], ...] = (
    PinFreeDimensions,      # before folding, so that the ledger names what the folded shapes stand on
    FoldConstants,
    StaticReshape,
    DeadCode,
    Identities,
    ImplicitBroadcast,
    MergeReshapes,
    Duplicates,
)
"""Less of the same: what is known, unused, without effect, or there twice."""

PATTERNS: tuple[type[Pass], ...] = (
    NegToMul,
    SquareToMul,
    DivToMul,
    DivNoNan,
    DivToRsqrt,
    SubToAdd,
    ClipToRelu,
    HardSigmoid,
    HardSwish,
    TanhGelu,
    CentreFirst,
    SquareOfDifference,
    LeakyRelu,
    MergeReductions,
    MergeConcats,
    SliceBefore,
    PlainNearest,
    PixelBlocks,
    Focus,
    InfiniteSums,
    NanGuards,
    MergeConstants,         # after the patterns, whose constants it would hide
)
"""Activations written out, and arithmetic in the forms that fusion looks for."""

LAYOUT: tuple[type[Pass], ...] = (TurnLayout,)
"""From the source's layout to the runtime's; made with the model, whose interface remembers the source's."""

HEADS: tuple[type[Pass], ...] = (
    ScaleToMaker,           # before heads, each of which would get a factor of its own
    ShuffleByMaker,
    ChannelShuffle,
    UnrollHeads,
)
"""What removes TRANSPOSEs that the layout could not, with other operators in their place."""

LEFTOVERS: tuple[type[Pass], ...] = (
    NeededRows,             # after heads, through whose TRANSPOSEs no slice goes
    TransposeToReshape,
    Columns,
    MergeTurns,
    PatchesByParts,
    RowsByParts,
    FewerAxes,
    Patches,
)
"""What stays, in forms that cost less: TRANSPOSEs after all that could remove them, convolutions of long strides."""

FUSION: tuple[type[Pass], ...] = (
    TransposeToReshape,
    FewerReshapes,
    ReshapeLater,
    ReshapeEarlier,
    MergeReshapes,
    Identities,
    FusePad,                # before scales, so that a convolution's border is known
    FoldScaleAfter,
    MergeConstants,
    FoldScaleBefore,
    ScaleAfterOffset,       # what could not fold backwards may fold forwards, in the next round
    ScaleAfterPad,
    Relu0To1ToClip,
    ClipToRelu,
    SumToMean,              # after the patterns, which look for sums
    ZeroPadBeforeMaxPool,
    FuseActivation,         # last: a fused activation keeps scales out
    Duplicates,
    SharedConstants,
    DeadCode,
)
"""Two nodes into one."""

SEQUENCES: tuple[type[Pass], ...] = (Unroll,)
"""What full-integer quantization needs written out."""

INTEGER_FORMS: tuple[type[Pass], ...] = (
    FoldLarge, ConstantDivisor, RunningSum, PairwiseSum, LocalResponse, RootOfMean, FloorOfQuotient, WholeEarlier,
    Fraction, DepthMean, ChannelScale, TruthToNumber, SoftmaxMask, LogisticLimit, UnitLength)
"""Forms that cost about as much in float, and less in integers on an NPU."""
