"""Computes costly functions of a few elements, which a fusion repeats in each of its rows, in a fusion of their own before it: for a CPU.

    "lmhlo.fusion"() <{kind = "kLoop"}> ({                      "lmhlo.fusion"() <{kind = "kLoop"}> ({
      lmhlo.rsqrt %variance -> %r                                 lmhlo.rsqrt %variance -> %r
      lmhlo.broadcast %r -> %all {dimensions = [1]}             })
      lmhlo.multiply %x, %all -> %y                      ->     "lmhlo.fusion"() <{kind = "kLoop"}> ({
    })                                                            lmhlo.broadcast %r -> %all {dimensions = [1]}
                                                                  lmhlo.multiply %x, %all -> %y
                                                                })

A loop computes what its fusion reads inside, element by element. A value for each row is computed once a row, because LLVM moves it out of
the inner loop; a value for each column (the scale of a batch norm, the sines of positions) is computed in every row. A GPU hides this
behind its memory, and a launch would take longer; a core of a CPU does not.

What is moved are ops on as many elements as the repeated value has, or on one. Numbers that both fusions need are computed in both.
Source: none; XLA:CPU fuses no instruction twice that InstructionFusion::IsExpensive (instruction_fusion.cc) names.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from xla_emitters.dialects.hlo.base import integers, opcode_of
from xla_emitters.dialects.hlo.placement import HOST, is_on_host
from xla_emitters.dialects.lmhlo import BufferOp, FusionOp, space_of
from xla_emitters.dynamic.buffers.buffer_sizes import BufferSizes
from xla_emitters.dynamic.buffers.buffer_uses import is_used_inside
from xla_emitters.dynamic.buffers.fusion_rules import BROADCASTS, COLUMN, LOOP, ROW, STITCH, cone_of, is_splat_source
from xla_emitters.functions import BY_OPCODE, EXACT, CodeSize
from xla_emitters.rewrite.kernel_pass import KernelPass

KINDS = (LOOP, ROW, COLUMN, STITCH)
LEAST_ROWS = 8
"""From this many rows on it is worth a launch, if their number is known."""


class DiscComputeOncePass(KernelPass):
    name = "disc-compute-once"

    def apply_to(self, op: ModuleOp) -> None:
        sizes = BufferSizes()
        for fusion in [found for found in op.walk() if isinstance(found, FusionOp)]:
            if fusion.kind_text in KINDS and not is_on_host(fusion):
                _split(fusion, sizes)


def _split(fusion: FusionOp, sizes: BufferSizes) -> None:
    """Moves what a fusion repeats; values of equally many elements share one new fusion."""
    repeated = dict[object, list[SSAValue]]()
    for op in fusion.ops:
        if opcode_of(op.HLO) in BROADCASTS and _repeats_rows(op, sizes):
            repeated.setdefault(sizes.elements(op.inputs[0]), []).append(op.inputs[0])
    for values in repeated.values():
        cones = {value: cone_of(fusion, [value]) for value in values}
        moved = [value for value, cone in cones.items() if _can_move(fusion, value, cone, sizes)]
        if moved:
            _move(fusion, moved, set[BufferOp]().union(*(cones[value] for value in moved)))


def _repeats_rows(op: BufferOp, sizes: BufferSizes) -> bool:
    """Whether a broadcast repeats whole rows: its operand has different elements along the last dimension, which stays the last."""
    source, (result,) = op.inputs[0], op.outputs
    shape, places = sizes.of(source), integers(op.properties["dimensions"])
    if not shape or shape[-1].value == 1 or places[-1] != len(sizes.of(result)) - 1 or sizes.same_count(source, result):
        return False
    one, all_ = sizes.elements(source).value, sizes.elements(result).value
    return one is None or all_ is None or all_ >= LEAST_ROWS * one


def _can_move(fusion: FusionOp, value: SSAValue, cone: AbstractSet[BufferOp], sizes: BufferSizes) -> bool:
    """Whether ops of the fusion compute the value, slowly, from as many elements as it has or from single ones."""

    def is_single(buffer: SSAValue) -> bool:
        return sizes.elements(buffer).value == 1

    if not any(_is_slow(opcode_of(op.HLO)) for op in cone):
        return False
    written = {buffer for op in cone for buffer in op.outputs}
    read = {buffer for op in cone for buffer in op.inputs if space_of(buffer.type) != HOST}
    if not all(sizes.same_count(buffer, value) or is_single(buffer) for buffer in written | read):
        return False
    others = {buffer for op in fusion.ops if op not in cone for buffer in op.outputs}
    if not others.isdisjoint(written | read):
        return False
    is_varied = any(not is_single(buffer) for buffer in read - written) or any(_is_varied(op) for op in cone)
    return is_varied and all(not is_single(buffer) or is_used_inside(buffer, fusion) for buffer in written)


def _is_slow(opcode: str) -> bool:
    """Whether an op takes longer than a load: a function of more than an instruction or two, a root or a quotient, which are rounded."""
    row = BY_OPCODE.get(opcode)
    return row is not None and (row.size is not CodeSize.SMALL or row.ulps is not EXACT)


def _is_varied(op: BufferOp) -> bool:
    """Whether an op makes different elements of no array: numbers in order, or a constant."""
    return opcode_of(op.HLO) in ("iota", "dynamic-iota", "constant") and not is_splat_source(op)


def _move(fusion: FusionOp, values: Sequence[SSAValue], cone: AbstractSet[BufferOp]) -> None:
    """Puts the ops of the cone, which compute the values, into a fusion before the fusion that they are in."""
    ops = fusion.ops
    rest = [op for op in ops if op not in cone]
    results = {buffer for op in rest for buffer in op.outputs}
    left_outside = {buffer for op in cone for buffer in op.outputs if not is_used_inside(buffer, fusion)}
    twice = cone_of(fusion, {buffer for op in rest for buffer in op.inputs} | results, {*values, *left_outside}) & cone
    body = list[BufferOp]()
    for op in ops:
        if op in twice:
            body.append(op.clone())
        elif op in cone:
            op.detach()
            body.append(op)
    Rewriter.insert_op(FusionOp.of(f"{fusion.label}_once", LOOP, body, fusion.location), InsertPoint.before(fusion))
