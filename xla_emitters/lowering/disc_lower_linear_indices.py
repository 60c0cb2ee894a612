"""Lowers delinearisation to quotients and remainders, and linearisation to sums of products. All numbers are nonnegative.

    %j, %k = affine.delinearize_index %i into (%n, 32)     %k = arith.remui %i, %c32
                                                     ->    %j = arith.divui %i, %c32
    %l = affine.linearize_index [%j, %k] by (%n, 32)       %0 = arith.muli %j, %c32
                                                           %l = arith.addi %0, %k

The first size is not needed: the first coordinate is the last quotient. In kernels of programs indices count elements, so unsigned
division is right; for a possibly negative number `affine.delinearize_index` would round down, which this code does not.
Source: MLIR 22, affine dialect; docs/reference/4 3.5.
"""

from __future__ import annotations

from xdsl.builder import Builder
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from xla_emitters.dialects.locations import located_builder
from xla_emitters.dialects.mlir import arith
from xla_emitters.dialects.mlir.affine import DelinearizeIndexOp, LinearizeIndexOp
from xla_emitters.rewrite.constants import literal
from xla_emitters.rewrite.kernel_pass import KernelPass


class DiscLowerLinearIndicesPass(KernelPass):
    name = "disc-lower-linear-indices"

    def apply_to(self, op: ModuleOp) -> None:
        for found in list(op.walk()):
            if isinstance(found, DelinearizeIndexOp | LinearizeIndexOp):
                builder = located_builder(InsertPoint.before(found), found)
                coordinates = len(found.multi_index)
                inner = [_value(builder, size) for size in found.basis[len(found.basis) - coordinates + 1 :]]
                if isinstance(found, DelinearizeIndexOp):
                    values = _coordinates(builder, found.linear_index, inner) if coordinates else []
                else:
                    values = [_number(builder, found.multi_index, inner)]
                for before, after in zip(found.results, values, strict=True):
                    after.name_hint = after.name_hint or before.name_hint
                Rewriter.replace_op(found, [], values)


def _value(builder: Builder, size: int | SSAValue) -> SSAValue:
    return size if isinstance(size, SSAValue) else literal(builder, size)


def _coordinates(builder: Builder, number: SSAValue, inner: list[SSAValue]) -> list[SSAValue]:
    found = list[SSAValue]()
    for size in reversed(inner):
        found.append(builder.insert(arith.RemUIOp(number, size)).result)
        number = builder.insert(arith.DivUIOp(number, size)).result
    return [number, *reversed(found)]


def _number(builder: Builder, coordinates: tuple[SSAValue, ...], inner: list[SSAValue]) -> SSAValue:
    if not coordinates:
        return _value(builder, 0)
    number, *rest = coordinates
    for coordinate, size in zip(rest, inner, strict=True):
        scaled = builder.insert(arith.MuliOp(number, size)).result
        number = builder.insert(arith.AddiOp(scaled, coordinate)).result
    return number
