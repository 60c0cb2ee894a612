"""Lower guarded element accesses to branches, and reductions over a warp to shuffles and calls.

    %t = predicated_insert %v into %d[%i] if %c        %t = scf.if %c { %n = tensor.insert %v into %d[%i]; yield %n } else { yield %d }
    %e = predicated_extract %s[%i] if %c else %f  ->   %e = scf.if %c { %x = tensor.extract %s[%i]; yield %x } else { yield %f }

    %r = shuffle_reduce(%a) to 2 combiner=@add    ->   %b = gpu.shuffle down %a, 2, 32;  %c = pure_call @add(%a, %b)
                                                       %d = gpu.shuffle down %c, 1, 32;  %r = pure_call @add(%c, %d)

A shuffle moves 32 bits; `dialects/shuffles` moves values of other widths. The pass does not check that the source lane exists: a lane
without one gets its own value back, and its result is unused. `warp_size` is the number of lanes.
Source: docs/reference/2 3.3 "xla-lower-xla-to-scf"; XLA lower_xla_to_scf.cc.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ModuleOp, i32
from xdsl.ir import Block, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from xla_emitters.dialects.attributes import integer
from xla_emitters.dialects.locations import located_builder
from xla_emitters.dialects.mlir import arith, scf, tensor
from xla_emitters.dialects.quick_op import walk
from xla_emitters.dialects.shuffles import can_shuffle, shuffled
from xla_emitters.dialects.xla_gpu import PredicatedExtractOp, PredicatedInsertOp, PureCallOp, ShuffleReduceOp
from xla_emitters.errors import UsageError
from xla_emitters.rewrite.constants import hoist_constants
from xla_emitters.rewrite.kernel_pass import KernelPass, refusal
from xla_emitters.support.late_dataclass import dataclass

WARP_SIZES = (1, 2, 4, 8, 16, 32, 64)


@dataclass(frozen=True)
class LowerXlaToScfPass(KernelPass):
    """See the head of the file.

    warp_size  lanes of a warp
    raises     Unsupported for a shuffle_reduce whose distance is not a power of two or not below warp_size, or whose type has no bit width
    """

    name = "xla-lower-xla-to-scf"

    warp_size: int = 32

    def apply_to(self, op: ModuleOp) -> None:
        if self.warp_size not in WARP_SIZES:
            raise UsageError(f"{self.name}: warp-size={self.warp_size}", help="a power of two up to 64")
        for found in list(walk(op)):
            match found:
                case PredicatedInsertOp():
                    insert = tensor.InsertOp(found.value, found.dest, list(found.indices))
                    _replace_by_branch(found, insert, found.dest)
                case PredicatedExtractOp():
                    extract = tensor.ExtractOp(found.src, list(found.indices), found.result.type)
                    _replace_by_branch(found, extract, found.fallback)
                case ShuffleReduceOp():
                    _lower_shuffle_reduce(found, self.warp_size)
                case _:
                    pass
        hoist_constants(op)


def _replace_by_branch(
    op: PredicatedInsertOp | PredicatedExtractOp, access: tensor.InsertOp | tensor.ExtractOp, other: SSAValue
) -> None:
    """Replaces `op` by an scf.if: the result of `access` if the condition holds, else `other`."""
    regions = Region(Block()), Region(Block())
    branch = located_builder(InsertPoint.before(op), op).insert(scf.IfOp(op.condition, [op.result.type], *regions))
    inside, outside = (located_builder(InsertPoint.at_end(region.block), op) for region in regions)
    value = inside.insert(access).result
    value.name_hint = op.result.name_hint
    inside.insert(scf.YieldOp(value))
    outside.insert(scf.YieldOp(other))
    Rewriter.replace_op(op, (), branch.results)


# ------------------------------------------------------------------------------------------------- shuffles


def _lower_shuffle_reduce(op: ShuffleReduceOp, warp_size: int) -> None:
    distance = op.max_distance
    if distance & (distance - 1) or distance >= warp_size:
        why = f"{op.name}: the distance is {distance} lanes, but must be a power of two below {warp_size}"
        raise refusal(LowerXlaToScfPass.name, op, why)
    for value in op.arguments:
        if not can_shuffle(value.type):
            raise refusal(LowerXlaToScfPass.name, op, f"{op.name}: cannot shuffle values of type {value.type}")
    builder = located_builder(InsertPoint.before(op), op)
    width = builder.insert(arith.ConstantOp(integer(warp_size, i32))).result
    values: Sequence[SSAValue] = op.arguments
    while distance:
        offset = builder.insert(arith.ConstantOp(integer(distance, i32))).result
        others = [shuffled(builder, "down", value, offset, width) for value in values]
        values = builder.insert(PureCallOp(op.combiner, [*values, *others], op.combined_types)).results
        distance //= 2
    Rewriter.replace_op(op, (), values)
