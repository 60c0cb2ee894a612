"""Distributes the iterations of a fusion's loops over the blocks and threads of launches.

    lmhlo.fusion {                                     %grid = (%n - %lb + 256 * %step - 1) udiv (256 * %step)
      scf.parallel (%i) = (%lb) to (%n) step (%step)   %some = arith.cmpi ne, %grid, %c0
    }                                                  scf.if %some {                            a grid of no blocks is not a launch
                                                  ->     gpu.launch blocks(%b ...) in (%grid, 1, 1) threads(%t ...) in (256, 1, 1) {
                                                           %i = (%b * 256 + %t) * %step + %lb
                                                           scf.if %i < %n { ... }
                                                         } {disc.name = "main_kLoop_add_0"}
                                                       }

`disc.thread_per_block_hint = 128 : i64` on the loop asks for 128 threads instead of 256; the launch keeps the attribute.

A loop of two variables specifies its blocks and threads: %i is the number of the block, %j, from 0 to a constant, the number of the
thread. No bounds are checked: a schedule that exchanges values within a block needs all of its threads.

    scf.parallel (%i, %j) = (0, 0) to (%rows, 256) step (1, 1)      ->      blocks in (%rows, 1, 1) threads in (256, 1, 1)

A loop of three variables has a two-dimensional grid, with at most 65535 blocks in y, which the schedule ensures.

    scf.parallel (%t, %i, %j) = (0, 0, 0) to (%tiles, %n, 256) ...  ->      blocks in (%n, %tiles, 1) threads in (256, 1, 1)

Several loops of a fusion become launches one after the other; the ops between them compute numbers, now on the host. The fusion is
erased: each launch gets its name.
Source: seed document, "LoopSplitPass", and the bounds check that its TODO asks for; docs/reference/4 3.5.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import IntegerAttr, ModuleOp, StringAttr
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from xla_emitters.dialects.lmhlo import FusionOp
from xla_emitters.dialects.mlir import arith, scf
from xla_emitters.dialects.mlir.gpu import LaunchOp, TerminatorOp
from xla_emitters.dialects.quick_builder import QuickBuilder
from xla_emitters.dialects.ranges import constant_of
from xla_emitters.dynamic.buffers.index_code import INDEX, IndexCode, Number
from xla_emitters.dynamic.loops.schedule import SCHEDULE, THREADS_HINT
from xla_emitters.rewrite.captures import KERNEL_NAME, loops_of
from xla_emitters.rewrite.effects import is_pure
from xla_emitters.rewrite.kernel_pass import DevicePass

THREADS = 256
"""Threads of a block if the loop does not specify them, and has no hint."""


class DiscLoopSplitPass(DevicePass):
    """See the file's head. `device`: the GPU, which limits the threads of a block."""

    name = "disc-loop-split"

    def apply_to(self, op: ModuleOp) -> None:
        for fusion in [found for found in op.walk() if isinstance(found, FusionOp)]:
            if loops := loops_of(fusion):
                self.split(fusion, loops)
            else:
                self.skip(fusion, "it has no loops")

    def split(self, fusion: FusionOp, loops: Sequence[scf.ParallelOp]) -> None:
        """Inserts a launch for each loop, and the ops between loops, before the fusion, and erases it."""
        name = fusion.label
        names = [name] if len(loops) == 1 else [f"{name}_{number}" for number in range(len(loops))]
        made = iter(names)
        *ops, _ = fusion.body.block.ops
        for op in ops:
            if isinstance(op, scf.ParallelOp):
                self.launch(fusion, op, next(made))
            elif is_pure(op):
                op.detach()
                Rewriter.insert_op(op, InsertPoint.before(fusion))
            else:
                raise self.refuse(op, f"'{op.name}' between the loops of a fusion")
        Rewriter.erase_op(fusion)

    def launch(self, fusion: FusionOp, loop: scf.ParallelOp, name: str) -> None:
        bounds = list(zip(loop.lowerBound, loop.upperBound, loop.step, strict=True))
        if len(bounds) > 3 or loop.initVals:
            raise self.refuse(loop, f"a loop over {len(bounds)} variables with {len(loop.initVals)} results")
        host = IndexCode(QuickBuilder(InsertPoint.before(fusion)), loop.location)
        *outer, (low, high, step) = [(_number(low), _number(high), _number(by)) for low, high, by in bounds]
        threads = self.threads(loop, low, high, step) if outer else self.hinted(loop)
        of_blocks = outer[::-1] or [(low, high, host.multiply(step, threads))]
        grid = [host.value(_blocks(host, host.subtract(end, start), span)) for start, end, span in of_blocks]
        one, some = host.value(1), host.compare("ne", host.product(grid), 0)
        block = Block(arg_types=[INDEX] * 12)
        for argument, hint in zip(block.args, IDS, strict=True):
            argument.name_hint = hint
        made = LaunchOp([*grid, one, one][: len(AXES)], [host.value(threads), one, one], Region(block))
        made.attributes[KERNEL_NAME] = StringAttr(name)
        made.attributes |= {name: said for name in (SCHEDULE, THREADS_HINT) if (said := loop.attributes.get(name))}
        guarded = Block([made, scf.YieldOp()])
        made.location = loop.location
        host.builder.insert(scf.IfOp(some, [], Region(guarded))).location = loop.location
        code = IndexCode(QuickBuilder(InsertPoint.at_end(block)), loop.location)
        if outer:
            ids = [*block.args[: len(outer)][::-1], block.args[len(AXES)]]
            places = [
                code.value(code.add(code.multiply(number, by), start))
                for number, (start, _, by) in zip(ids, [*outer, (low, high, step)], strict=True)
            ]
            _move(loop, block, places)
        else:
            linear = code.add(code.multiply(block.args[0], threads), block.args[len(AXES)])
            place = code.value(code.add(code.multiply(linear, step), low))
            inside = code.compare("slt", place, high)
            body = Block()
            _move(loop, body, [place])
            body.add_op(scf.YieldOp())
            code.builder.insert(scf.IfOp(inside, [], Region(body))).location = loop.location
        block.add_op(TerminatorOp())

    def threads(self, loop: scf.ParallelOp, low: Number, high: Number, step: Number) -> int:
        """The threads of a block, from the bounds of the last variable."""
        if not (isinstance(low, int) and isinstance(high, int) and isinstance(step, int)):
            raise self.refuse(loop, "the number of threads of a block is not constant")
        return self._allowed(loop, -((low - high) // step))

    def hinted(self, loop: scf.ParallelOp) -> int:
        """The threads of a block if the loop leaves them open: its hint, or 256."""
        hint = loop.attributes.get(THREADS_HINT)
        return self._allowed(loop, hint.value.data) if isinstance(hint, IntegerAttr) else THREADS

    def _allowed(self, loop: scf.ParallelOp, count: int) -> int:
        if not 0 < count <= self.device.threads_per_block_max:
            limit = self.device.threads_per_block_max
            raise self.refuse(loop, f"a block of {count} threads; {self.device.name} runs 1 to {limit}")
        return count


AXES = "xyz"
IDS = tuple(f"{what}_{axis}" for what in ("block", "thread", "blocks", "threads") for axis in AXES)
"""Arguments of a launch's body: ids, then sizes."""


def _blocks(host: IndexCode, count: Number, span: Number) -> Number:
    """Number of blocks of `span` iterations for `count` iterations, rounded up; neither is negative."""
    if isinstance(span, int) and span == 1:
        return count
    last = host.subtract(host.add(count, span), 1)
    if isinstance(last, int) and isinstance(span, int):
        return last // span
    return host.insert(arith.DivUIOp(host.value(last), host.value(span)))


def _number(value: SSAValue) -> Number:
    """A constant as a number; another value unchanged."""
    known = constant_of(value)
    return value if known is None else known


def _move(loop: scf.ParallelOp, target: Block, places: Sequence[SSAValue]) -> None:
    """Moves the loop's body without its terminator to the end of `target`, with its variables replaced by `places`."""
    source = loop.body.block
    for argument, place in zip(source.args, places, strict=True):
        if place.name_hint is None or argument.name_hint:
            place.name_hint = argument.name_hint or place.name_hint
        argument.replace_all_uses_with(place)
    ops: list[Operation] = list(source.ops)
    for op in ops[:-1]:
        op.detach()
        target.add_op(op)
