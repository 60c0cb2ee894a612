"""For CPUs: sums of many elements by blocks, so that an element goes through few additions and the error does not grow with the row.

    %s = scf.for %j = %0 to %n step %1 iter_args(%a = %init) {      %s = scf.for %b = %0 to %n step %4096 iter_args(%t = %init) {
      %c = arith.addf %a, %x<reassoc>                                 %e = min(%b + 4096, %n)
      scf.yield %c                                                    %p = scf.for %j = %b to %e step %1 iter_args(%a = %-0.0) {
    }                                                          ->       %c = arith.addf %a, %x<reassoc>
                                                                        scf.yield %c
                                                                      }
                                                                      %u = arith.addf %t, %p
                                                                      scf.yield %u
                                                                    }

And 64 blocks are summed before they are added to the rest. LLVM keeps 16 partial sums of a block or more, so an element of a row of n goes
through at most 256 + 64 + n / 262144 additions and those of some partial sums. Which elements are added together depends on n alone. Other
values that the loop carries (a maximum, an index) go through both loops. -0.0 is the value that changes no sum. Where n may be at most 4096
the loop stays as well, in a branch: of rows of 17 elements it takes half of the time. A loop that uses its sum before the end, such as a
cumulative sum, stays alone.
Source: N. Higham, "The accuracy of floating point summation" (1993).
"""

from __future__ import annotations

from xdsl.builder import Builder
from xdsl.dialects.builtin import AnyFloat, ComplexType, FloatAttr, IndexType, ModuleOp
from xdsl.ir import Block, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from xla_emitters.dialects.isa import isa
from xla_emitters.dialects.locations import located_builder
from xla_emitters.dialects.mlir import arith, complex, scf
from xla_emitters.dialects.ranges import constant_of
from xla_emitters.rewrite.constants import literal
from xla_emitters.rewrite.kernel_pass import KernelPass
from xla_emitters.rewrite.scf_patterns import yielded

COUNTS = (4096, 64)
"""Elements of a block, and blocks that are summed before they are added to the rest."""


class DiscBlockSumsPass(KernelPass):
    name = "disc-block-sums"

    def apply_to(self, op: ModuleOp) -> None:
        for loop in [found for found in op.walk() if isinstance(found, scf.ForOp)]:
            step, count = constant_of(loop.step), _number_of_iterations(loop)
            if not (sums := _sums(loop)) or step is None or (count is not None and count <= COUNTS[0]):
                continue
            if count is None:
                loop = _in_branch(loop, step * COUNTS[0])
            for most in COUNTS:
                step *= most
                loop = _by_blocks(loop, sums, step)


def _sums(loop: scf.ForOp) -> list[int]:
    """Which of the carried values are only added to."""
    body = loop.body.block
    return [
        number
        for number, (carried, following) in enumerate(zip(body.args[1:], yielded(body), strict=True))
        if isinstance(added := following.owner, arith.AddfOp | complex.AddOp)
        and carried in added.operands
        and added.parent is body
        and carried.has_one_use()
        and following.has_one_use()
    ]


def _number_of_iterations(loop: scf.ForOp) -> int | None:
    """If it is constant."""
    first, end, step = map(constant_of, (loop.lb, loop.ub, loop.step))
    return None if first is None or end is None or step is None else -(-(end - first) // step)


def _in_branch(loop: scf.ForOp, most: int) -> scf.ForOp:
    """Keeps a loop for a range of `most` or less; returns a copy, which runs for others."""
    builder = located_builder(InsertPoint.before(loop), loop)
    size = builder.insert(arith.SubiOp(loop.ub, loop.lb)).result
    limit = literal(builder, most)
    is_short = builder.insert(arith.CmpiOp(size, limit, "sle")).result
    copy = loop.clone()
    types = [result.type for result in loop.results]
    branch = builder.insert(
        scf.IfOp(is_short, types, Region(Block()), Region(Block([copy, scf.YieldOp(*copy.results)])))
    )
    for old, new in zip(loop.results, branch.results, strict=True):
        old.replace_all_uses_with(new)
    loop.detach()
    branch.true_region.block.add_ops([loop, scf.YieldOp(*loop.results)])
    return copy


def _by_blocks(loop: scf.ForOp, sums: list[int], size: int) -> scf.ForOp:
    """Divides the range of a loop into blocks of `size`; returns the loop over the blocks."""
    builder = located_builder(InsertPoint.before(loop), loop)
    stride = literal(builder, size)
    body = Block(arg_types=[IndexType(), *(value.type for value in loop.iter_args)])
    around = builder.insert(scf.ForOp(loop.lb, loop.ub, stride, loop.iter_args, Region(body)))
    builder = located_builder(InsertPoint.at_end(body), loop)
    begin, *totals = body.args
    end = builder.insert(arith.MinSIOp(builder.insert(arith.AddiOp(begin, stride)).result, loop.ub)).result
    starts = [_nothing(builder, value) if number in sums else value for number, value in enumerate(totals)]
    inner = builder.insert(scf.ForOp(begin, end, loop.step, starts, loop.detach_region(loop.body)))
    found = list[SSAValue](inner.results)
    for number in sums:
        add = complex.AddOp if isinstance(found[number].type, ComplexType) else arith.AddfOp
        found[number] = builder.insert(add(totals[number], found[number])).results[0]
    builder.insert(scf.YieldOp(*found))
    Rewriter.replace_op(loop, [], around.results)
    return around


def _nothing(builder: Builder, like: SSAValue) -> SSAValue:
    """The value that changes no sum."""
    if isa(like.type, ComplexType[AnyFloat]):
        part = builder.insert(arith.ConstantOp(FloatAttr(-0.0, like.type.element_type))).result
        return builder.insert(complex.CreateOp(part, part, like.type)).complex
    assert isa(like.type, AnyFloat)
    return builder.insert(arith.ConstantOp(FloatAttr(-0.0, like.type))).result
