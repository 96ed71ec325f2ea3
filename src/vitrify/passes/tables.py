"""The tables of passes, one per purpose; where the order within a table matters, the reason stands beside it."""

from __future__ import annotations

from vitrify.passes.activations import ClipToRelu, FuseActivation, Relu0To1ToClip
from vitrify.passes.arithmetic import DivToMul, MergeConstants, SubToAdd
from vitrify.passes.base import Pass
from vitrify.passes.broadcasts import ImplicitBroadcast
from vitrify.passes.centring import CentreFirst, SquareOfDifference
from vitrify.passes.concats import MergeConcats
from vitrify.passes.dead_code import DeadCode
from vitrify.passes.depth_means import DepthMean
from vitrify.passes.div_no_nan import DivNoNan
from vitrify.passes.division import DivToRsqrt
from vitrify.passes.duplicates import Duplicates, SharedConstants
from vitrify.passes.fewer_reshapes import FewerReshapes
from vitrify.passes.focus import Focus
from vitrify.passes.folding import FoldConstants
from vitrify.passes.gelu import TanhGelu
from vitrify.passes.hard_swish import HardSigmoid, HardSwish
from vitrify.passes.heads.unroll import UnrollHeads
from vitrify.passes.identities import Identities
from vitrify.passes.infinite_sums import InfiniteSums
from vitrify.passes.int8_forms import NegToMul, SquareToMul, SumToMean
from vitrify.passes.layout.turning import TurnLayout
from vitrify.passes.leaky_relu import LeakyRelu
from vitrify.passes.means import MergeReductions
from vitrify.passes.nan_guards import NanGuards
from vitrify.passes.nearest import PlainNearest
from vitrify.passes.pads import FusePad, ZeroPadBeforeMaxPool
from vitrify.passes.patches import Patches
from vitrify.passes.pixel_blocks import PixelBlocks
from vitrify.passes.reshape_earlier import ReshapeEarlier
from vitrify.passes.reshape_later import ReshapeLater
from vitrify.passes.reshapes import MergeReshapes, StaticReshape, TransposeToReshape
from vitrify.passes.rows import FewerAxes, RowsByParts
from vitrify.passes.scale_order import ScaleAfterOffset, ScaleAfterPad
from vitrify.passes.scale_to_maker import ScaleToMaker
from vitrify.passes.scales import FoldScaleAfter, FoldScaleBefore
from vitrify.passes.shuffle_makers import ShuffleByMaker
from vitrify.passes.shuffles import ChannelShuffle
from vitrify.passes.slices import SliceBefore
from vitrify.passes.softmax_masks import SoftmaxMask
from vitrify.passes.static_batch import PinFreeDimensions
from vitrify.passes.truths import TruthToNumber
from vitrify.passes.turns import MergeTurns, PatchesByParts
from vitrify.passes.unit_lengths import UnitLength
from vitrify.passes.unroll import Unroll

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
    TransposeToReshape,
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

INTEGER_FORMS: tuple[type[Pass], ...] = (DepthMean, TruthToNumber, SoftmaxMask, UnitLength)
"""Forms that cost about as much in float, and less in integers on an NPU."""
