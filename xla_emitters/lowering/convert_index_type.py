"""Converts arithmetic on `index` to i32 or i64, as the module's data layout says.

    %2 = arith.muli %thread_id_x, %c4 overflow<nsw> : index
    %3 = arith.index_castui %2 : index to i32
->
    %0 = arith.index_cast %thread_id_x : index to i32
    %2 = arith.muli %0, %c4_i32 : i32              // every use of the old %2 and %3

Sums, differences, products, quotients and remainders are converted; casts to index and back between them cancel.
Comparisons, selects, loop bounds and block arguments stay `index` (xla-lower-to-llvm-gpu gives them the same width), with a cast at
the border. The flags `nsw` and `nuw` are dropped: they were proven for index, and the seed's listings have none.
Source: docs/reference/2 3.3 "xla-gpu-convert-index-type"; XLA convert_index_type.cc.
"""

from __future__ import annotations

from dataclasses import field

from xdsl.dialects.builtin import IndexType, IntegerAttr, IntegerType, ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint

from xla_emitters.dialects.attributes import INDEX, integer, integer_type
from xla_emitters.dialects.locations import located_builder
from xla_emitters.dialects.mlir import arith
from xla_emitters.dialects.quick_builder import QuickBuilder
from xla_emitters.dialects.quick_op import walk
from xla_emitters.rewrite.index_width import index_width
from xla_emitters.rewrite.kernel_pass import KernelPass
from xla_emitters.support.late_dataclass import dataclass

_CONVERTED: frozenset[type[Operation]] = frozenset(
    (arith.AddiOp, arith.SubiOp, arith.MuliOp, arith.DivUIOp, arith.DivSIOp, arith.RemUIOp, arith.RemSIOp)
)
_CASTS = ("arith.index_cast", "arith.index_castui")


class ConvertIndexTypePass(KernelPass):
    name = "xla-gpu-convert-index-type"

    def apply_to(self, op: ModuleOp) -> None:
        conversion = _Conversion(integer_type(index_width(op)))
        ops = list(walk(op))
        for found in ops:
            if type(found) in _CONVERTED and isinstance(found.results[0].type, IndexType):
                conversion.convert(found)
        conversion.replace_results()
        for found in ops:
            if found.name in _CASTS and found.parent is not None:
                conversion.fold_cast(found)
        conversion.erase_unused()


@dataclass
class _Conversion:
    """The conversion of one module.

    integer    the type that index becomes
    integers   constant, or result of a converted op -> its integer form
    casts      index value, block -> its cast to the integer type there
    converted  ops that were computed on integers, in order
    left       ops whose last use may have been removed
    """

    integer: IntegerType
    integers: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])
    casts: dict[tuple[SSAValue, Block], SSAValue] = field(default_factory=dict[tuple[SSAValue, Block], SSAValue])
    converted: list[Operation] = field(default_factory=list[Operation])
    left: list[Operation] = field(default_factory=list[Operation])

    def convert(self, op: Operation) -> None:
        """Computes `op` on integers, in front of it; `replace_results` follows."""
        assert op.parent is not None
        operands = [self.integer_of(operand, op) for operand in op.operands]
        computed = type(op).create(operands=operands, result_types=[self.integer], location=op.location)
        op.parent.insert_op_before(computed, op)
        self.integers[op.results[0]] = computed.results[0]
        self.converted.append(op)

    def replace_results(self) -> None:
        """Erases the converted ops, last first; unconverted users get a cast of the integer back to index."""
        for op in reversed(self.converted):
            assert op.parent is not None
            old, computed = op.results[0], self.integers[op.results[0]]
            computed.name_hint = old.name_hint
            if old.first_use is not None:
                cast = arith.IndexCastOp(computed, INDEX)
                cast.location = op.location
                op.parent.insert_op_before(cast, op)
                old.replace_all_uses_with(cast.result)
                self.left.append(cast)
            op.detach()
            op.erase()

    def integer_of(self, value: SSAValue, user: Operation) -> SSAValue:
        """The integer form of an index value, inserted at its definition (constants) or before its first user in a block."""
        if (known := self.integers.get(value) or self.source_of_cast(value)) is not None:
            return known
        owner = value.owner
        if isinstance(owner, arith.ConstantOp) and isinstance(owner.value, IntegerAttr):
            constant = arith.ConstantOp(integer(owner.value.value.data, self.integer, True))
            constant.location = owner.location
            QuickBuilder(InsertPoint.after(owner)).insert(constant)
            self.left.append(owner)
            self.integers[value] = constant.result
            return constant.result
        assert user.parent is not None
        block: Block | None = user.parent
        while block is not None:
            if (known := self.casts.get((value, block))) is not None:
                return known
            block = block.parent_block()
        cast = located_builder(InsertPoint.before(user), user).insert(arith.IndexCastOp(value, self.integer)).result
        self.casts[value, user.parent] = cast
        return cast

    def fold_cast(self, op: Operation) -> None:
        """Replaces a cast of an index that is itself a cast of an integer of the same type by that integer.

        Signed and unsigned widening add bits that this cast cuts off again.
        """
        source, target = op.operands[0], op.results[0]
        if target.type == self.integer and (known := self.source_of_cast(source)):
            target.replace_all_uses_with(known)
            if isinstance(source.owner, Operation):
                self.left.append(source.owner)
            self.left.append(op)

    def source_of_cast(self, value: SSAValue) -> SSAValue | None:
        """The integer that `value` is a cast of, if it has the type that index becomes; else None."""
        owner = value.owner
        if isinstance(owner, Operation) and owner.name in _CASTS and owner.operands[0].type == self.integer:
            return owner.operands[0]
        return None

    def erase_unused(self) -> None:
        """Erases the casts and constants that are now unused, last made first."""
        for op in reversed(self.left):
            if op.parent is not None and all(result.first_use is None for result in op.results):
                op.detach()
                op.erase()
