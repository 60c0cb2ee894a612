"""The partial results of one reduction: their start values, how two are combined, and how the last one becomes the result.

    start        0                  the initial value         anything, 0          columns: identity; init, if it may count twice; else
    combine      add(a, b)          maximum(a, b)             if_both(a, f, b, g)  the flags record that an element was added
    in the end   add(init, total)   total                     body(init, total)    the initial value counts once

    func @body__if_both(%a, %f: i8, %b, %g: i8) {
      %both = body(%a, %b) where f and g are set, else %a where f is, else %b
      return %both, %f | %g
    }

XLA always starts with the initial value. Source: docs/reference/2 2.4.3; `graph/reduction_starts.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from xdsl.dialects.builtin import i8
from xdsl.ir import Block, Region, SSAValue

from xla_emitters.dialects.hlo.convert import constant, select_by_flag
from xla_emitters.dialects.hlo.reductions import ReduceOp
from xla_emitters.dialects.mlir import arith, func
from xla_emitters.dialects.mlir.llvm import LinkageAttr
from xla_emitters.emitters.elemental import FunctionBuilder, result_types
from xla_emitters.emitters.partitioner import Subgraph
from xla_emitters.graph.reduction_starts import identities_needed


@dataclass(frozen=True, eq=False)
class Partials:
    """See the file's head.

    body      of the reduction: the function of its computation
    initial   function that emits an element of an initial value
    """

    hero: ReduceOp
    body: Subgraph
    initial: Callable[[SSAValue], SSAValue]

    @cached_property
    def identities(self) -> tuple[int | None, ...] | str | None:
        """See `identities_needed`."""
        return identities_needed(self.hero)

    @property
    def has_flag(self) -> bool:
        """Whether partial results have a flag as their last value: 1, or 0 as long as no element was added."""
        return isinstance(self.identities, str)

    @property
    def count(self) -> int:
        """The number of values of a partial result."""
        return len(self.hero.arrays) + self.has_flag

    @property
    def combiner(self) -> str:
        """The name of the function that combines two partial results."""
        return f"{self.body.name}__if_both" if self.has_flag else self.body.name

    def starts(self, builder: FunctionBuilder) -> list[SSAValue]:
        """The first values of each thread's partial results."""
        identities = self.identities
        if isinstance(identities, tuple):
            parts = zip(identities, self.hero.inits, result_types(self.hero), strict=True)
            return [
                self.initial(init) if identity is None else constant(builder, identity, result_type)
                for identity, init, result_type in parts
            ]
        inits = [self.initial(init) for init in self.hero.inits]
        return [*inits, constant(builder, 0, i8)] if self.has_flag else inits

    def with_element(
        self, builder: FunctionBuilder, so_far: Sequence[SSAValue], elements: Sequence[SSAValue]
    ) -> list[SSAValue]:
        """A partial result after one more element of each array."""
        if not self.has_flag:
            return list(builder.call(self.body, [*so_far, *elements]))
        *values, is_one = so_far
        combined = builder.call(self.body, [*values, *elements])
        return [*select_by_flag(builder, is_one, combined, elements), constant(builder, 1, i8)]

    def with_init(self, builder: FunctionBuilder, totals: Sequence[SSAValue]) -> Sequence[SSAValue]:
        """The results, from the last partial result of all elements: the initial values are added unless it contains them."""
        if self.identities is None:
            return totals
        totals = totals[: len(self.hero.arrays)]
        return builder.call(self.body, [*(self.initial(init) for init in self.hero.inits), *totals])

    def combining_function(self) -> func.FuncOp | None:
        """The function called `combiner`; None if that is the reduction's body."""
        if not self.has_flag:
            return None
        types = [*result_types(self.hero), i8]
        block = Block(arg_types=[*types, *types])
        builder = FunctionBuilder(block, self.hero.location)
        *ones, is_one = block.args[: len(types)]
        *others, is_other = block.args[len(types) :]
        either = [*select_by_flag(builder, is_one, ones, others)]
        both = builder.insert(arith.AndIOp(is_one, is_other)).result
        found = select_by_flag(builder, both, builder.call(self.body, [*ones, *others]), either)
        builder.insert(func.ReturnOp(*found, builder.insert(arith.OrIOp(is_one, is_other)).result))
        made = func.FuncOp(self.combiner, ([*types, *types], types), Region(block), visibility="private")
        made.attributes["llvm.linkage"] = LinkageAttr("internal")
        for argument in block.args:
            argument.location = self.hero.location
        made.location = self.hero.location
        return made
