"""ENTRY's parameters that are tuples become one parameter for each array in them, in order. On HLO.

    p = (f32[8], (s32[], f32[8])) parameter(0)              p.0 = f32[8] parameter(0)
    q = f32[8] parameter(1)                                 p.1.0 = s32[] parameter(1)
    a = f32[8] get-tuple-element(p), index=0        ->      p.1.1 = f32[8] parameter(2)
    f = f32[8] fusion(a, q), calls=added                    q = f32[8] parameter(3)
                                                            f = f32[8] fusion(p.0, q), calls=added

So a program's parameters are arrays. Module attributes that refer to parameters by number are renumbered, or left out: none is
needed for the right answer. A tuple that another op reads is rebuilt from its arrays.
"""

from __future__ import annotations

from dataclasses import field

from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, ModuleOp, TupleType, i64
from xdsl.ir import Attribute, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from xla_emitters.dialects.hlo.computation import GetTupleElementOp, ParameterOp, TupleOp
from xla_emitters.dialects.hlo.types import AliasAttr
from xla_emitters.dialects.isa import isa
from xla_emitters.graph.entry import entry_of
from xla_emitters.graph.names import rename
from xla_emitters.rewrite.kernel_pass import KernelPass
from xla_emitters.support.late_dataclass import dataclass

_ALIASES = "hlo.input_output_alias"
_BY_NUMBER = ("hlo.entry_computation_layout", "hlo.buffer_donor")


class FlattenParametersPass(KernelPass):
    name = "xla-flatten-parameters"

    def apply_to(self, op: ModuleOp) -> None:
        entry = entry_of(op)
        parameters = entry.parameters
        if not any(isinstance(parameter.result.type, TupleType) for parameter in parameters):
            return
        leaves = _Leaves({each.instruction_name.data for each in entry.instructions})
        for parameter in parameters:
            leaves.give(parameter)
        for made in reversed(leaves.tuples):
            for use in list(made.result.uses):
                if isinstance(element := use.operation, GetTupleElementOp):
                    Rewriter.replace_op(element, (), [made.operands[element.index.value.data]])
        for made in reversed(leaves.tuples):
            if made.result.first_use is None:
                Rewriter.erase_op(made)
        for name in _BY_NUMBER:
            op.attributes.pop(name, None)
        aliases = op.attributes.pop(_ALIASES, None)
        if isa(aliases, ArrayAttr[AliasAttr]):
            op.attributes[_ALIASES] = ArrayAttr(
                AliasAttr(alias._replace(parameter=number, inside=()))
                for alias in (each.data for each in aliases)
                if (number := leaves.numbers.get((alias.parameter, alias.inside))) is not None
            )


@dataclass
class _Leaves:
    """The new parameters.

    names    of ENTRY's instructions
    numbers  (number of an old parameter, path to an array in it) -> number of the new one
    tuples   rebuilt from new parameters, innermost first
    """

    names: set[str]
    numbers: dict[tuple[int, tuple[int, ...]], int] = field(default_factory=dict[tuple[int, tuple[int, ...]], int])
    tuples: list[TupleOp] = field(default_factory=list[TupleOp])

    def give(self, parameter: ParameterOp) -> None:
        """Replaces a parameter by the new ones."""
        if isinstance(parameter.result.type, TupleType):
            Rewriter.replace_op(parameter, (), [self.at(parameter, parameter.result.type, ())])
        else:
            parameter.properties["number"] = IntegerAttr(self.new_number(parameter, ()), i64)

    def at(self, parameter: ParameterOp, ir_type: Attribute, path: tuple[int, ...]) -> SSAValue:
        """The value that replaces the element at `path` of a parameter."""
        name = ".".join((parameter.instruction_name.data, *map(str, path)))
        if isinstance(ir_type, TupleType):
            parts = [self.at(parameter, part, (*path, index)) for index, part in enumerate(ir_type.types)]
            made = TupleOp(parts, ir_type, name)
            self.tuples.append(made)
        else:
            made = ParameterOp(self.new_number(parameter, path), ir_type, name)
        rename(made, self.names)
        made.location = parameter.location
        Rewriter.insert_op(made, InsertPoint.before(parameter))
        return made.result

    def new_number(self, parameter: ParameterOp, path: tuple[int, ...]) -> int:
        return self.numbers.setdefault((parameter.number.value.data, path), len(self.numbers))
