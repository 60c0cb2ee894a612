"""The `hlo` dialect to HLO text that XLA reads, and that `parse_hlo` reads back to the same module.

    HloModule m

    %fused {
      %p = f32[8,64]{1,0} parameter(0)
      ROOT %n = f32[8,64]{1,0} negate(%p), metadata={op_name="jit(f)/neg"}
    }

Layouts are always written, operands without their shapes, names with `%`, attributes in the order of their declaration.
Source: docs/reference/1 6.10 "Printing form".
"""

from __future__ import annotations

from functools import cache

from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr
from xdsl.ir import Attribute, SSAValue

from xla_emitters.dialects.hlo import HLO_OPS
from xla_emitters.dialects.hlo.base import HloOp
from xla_emitters.dialects.hlo.computation import CAPTURES, ComputationOp, ParameterOp, enclosing_module, reached_from
from xla_emitters.dialects.hlo.constant import ConstantOp
from xla_emitters.dialects.hlo.types import AliasAttr, dims_of, type_text
from xla_emitters.dialects.isa import isa
from xla_emitters.errors import InternalError
from xla_emitters.text.hlo.attribute_text import COMMON, SYNTAX, attributes_of
from xla_emitters.text.hlo.hlo_literals import literal_text
from xla_emitters.text.hlo.stack_frames import STACK_TABLES

_HYPHENATED = {name.replace("-", "_"): name for name in COMMON}


def print_hlo(module: ModuleOp, *, of_program: bool = False) -> str:
    """`module` as HLO text, with a newline at its end.

    module      holds `hlo.computation` ops and nothing else
    of_program  ops of programs with unknown sizes, which XLA's HLO text lacks, are written in the same way: for readers, and for
                `parse_hlo`, which reads all but loops that `disc-loop-invariant` changed
    raises      InternalError for anything else in it, Unsupported for an op that HLO text lacks
    """
    name = module.sym_name.data if module.sym_name else "module"
    header = [f"HloModule {name}", *_module_attributes(module)]
    parts = [", ".join(header)]
    if isinstance(tables := module.attributes.get(STACK_TABLES), StringAttr):
        parts.append(tables.data)
    for op in module.ops:
        if not isinstance(op, ComputationOp):
            raise InternalError(f"{op.name} in a module of HLO", stage="hlo.print")
        parts.append(_computation(op, of_program))
    return "\n\n".join(parts) + "\n"


def _module_attributes(module: ModuleOp) -> list[str]:
    shown = list[str]()
    for key, value in module.attributes.items():
        if key == STACK_TABLES or not key.startswith("hlo."):
            continue
        text = value.data if isinstance(value, StringAttr) else _aliases(value)
        shown.append(f"{key.removeprefix('hlo.')}={text}")
    return shown


def _aliases(value: Attribute) -> str:
    assert isa(value, ArrayAttr[AliasAttr])
    shown = (
        f"{_index(alias.output)}: ({alias.parameter}, {_index(alias.inside)}, {alias.kind})"
        for alias in (each.data for each in value)
    )
    return f"{{ {', '.join(shown)} }}"


def _index(numbers: tuple[int, ...]) -> str:
    return f"{{{','.join(map(str, numbers))}}}"


def _computation(computation: ComputationOp, of_program: bool) -> str:
    root = computation.root
    is_written = computation.is_entry and not computation.is_fusion
    lines = [f"{'ENTRY ' if is_written else ''}%{computation.sym_name.data} {{"]
    for op in computation.instructions:
        if not of_program and _is_of_program(op):
            raise op.unsupported("no HLO text", help="print it as StableHLO")
        lines.append(f"  {'ROOT ' if op.results[0] is root else ''}{_instruction(op)}")
    extra = [f"{key}={value.data}" for key, value in computation.attributes.items() if isinstance(value, StringAttr)]
    lines.append(", ".join(("}", *extra)))
    return "\n".join(lines)


def _is_of_program(op: HloOp) -> bool:
    takes_list = op.opcode == "dynamic-reshape" and len(op.operands) == 2 and len(dims_of(op.operands[1])) == 1
    return op.opcode not in HLO_OPS or CAPTURES in op.attributes or takes_list


def _instruction(op: HloOp) -> str:
    shown = [f"%{op.instruction_name.data} = {type_text(op.result.type, True)} {op.opcode}({_arguments(op)})"]
    for key in _own_attributes(type(op)):
        if (value := op.properties.get(key)) is not None:
            shown.append(f"{key}={SYNTAX[key].text(value)}")
    for key, value in op.attributes.items():
        if key in _HYPHENATED and isinstance(value, StringAttr):
            shown.append(f"{_HYPHENATED[key]}={value.data}")
    return ", ".join(shown)


@cache
def _own_attributes(op_class: type[HloOp]) -> tuple[str, ...]:
    return tuple(name for name, _ in attributes_of(op_class))


def _arguments(op: HloOp) -> str:
    match op:
        case ParameterOp():
            return str(op.number.value.data)
        case ConstantOp():
            return "{...}" if op.value is None else literal_text(op.value)
        case _:
            return ", ".join(map(_operand, op.operands))


def _operand(value: SSAValue) -> str:
    owner = value.owner
    assert isinstance(owner, HloOp)
    return f"%{owner.instruction_name.data}"


def print_alone(computation: ComputationOp) -> str:
    """A module with the computation as its entry, after the computations that it calls."""
    around = enclosing_module(computation)
    assert around is not None
    reached = set(reached_from([computation])) - {computation}
    callees = [op.clone() for op in around.ops if isinstance(op, ComputationOp) and op in reached]
    entry = computation.clone()
    entry.set_entry()
    return print_hlo(ModuleOp([*callees, entry], sym_name=StringAttr("computation")))
