"""Prints a module in the LLVM dialect as LLVM IR text that any LLVM 22 reads, as `mlir-translate --mlir-to-llvmir` does.

    llvm.func @f(%p: !llvm.ptr {llvm.noalias}) attributes {nvvm.kernel, nvvm.reqntid = array<i32: 128, 1, 1>} {
      %c = llvm.mlir.constant(1.0 : f32) : f32
      llvm.br ^bb1(%c : f32)
    ^bb1(%x: f32):
      llvm.store %x, %p : f32, !llvm.ptr
      llvm.return
    }
->
    define ptx_kernel void @f(ptr noalias %p) "nvvm.reqntid"="128,1,1" {
    bb0:
      br label %bb1
    bb1:
      %x = phi float [ 0x3FF0000000000000, %bb0 ]
      store float %x, ptr %p
      ret void
    }

Block arguments become phis. If a branch passes two sets of arguments to one block, one of them goes through an inserted block, because
a phi has one value per predecessor. Constants are written where they are used. Values keep their names, numbered if two
are equal. Functions, blocks and instructions keep their order; intrinsics need no declaration. Functions that read ids are defined here
(`rewrite/id_functions.py`). A type, op or property that has no
LLVM IR here is refused by name. The module flag `nvvm-reflect-ftz` is the one that XLA sets: libdevice keeps denormal numbers.

Locations are written as `!dbg` at the end of a line if the function's own location has a subprogram (see `nodes.py`).

LLVM keeps the branches to each block in the order of their creation, and some passes depend on that order. mlir-translate creates
instructions in reverse post-order of the blocks; a reader of text creates them in text order. `uselistorder_bb` restores
mlir-translate's order, so that both ways compile to the same code.

Left out: properties that only permit (see `instruction_printer.py`). Bodies of globals, comdats and constructors are refused.
Source: LLVM language reference; MLIR 22, ModuleTranslation.cpp; XLA nvptx_backend.cc (`nvvm-reflect-ftz`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field

from xdsl.dialects.builtin import IntegerAttr, ModuleOp, StringAttr
from xdsl.ir import Block, Operation, SSAValue

from xla_emitters.dialects.isa import isa
from xla_emitters.dialects.mlir import llvm
from xla_emitters.dialects.verification import successors
from xla_emitters.lowering.llvm_ir.function_attributes import (
    FUNCTION_PROPERTIES,
    function_attributes,
    of_each,
    parameter_attributes,
)
from xla_emitters.lowering.llvm_ir.instruction_printer import constant_of, is_constant, row_of, unsupported
from xla_emitters.lowering.llvm_ir.nodes import DebugNodes, Nodes, location_text, subprogram_of
from xla_emitters.lowering.llvm_ir.spelling import (
    constant_text,
    escaped,
    global_name,
    is_plain_name,
    type_text,
)
from xla_emitters.rewrite.id_functions import declared_by
from xla_emitters.support.late_dataclass import dataclass

_VISIBILITIES = ("", "hidden ", "protected ")
_UNNAMED = ("", "local_unnamed_addr", "unnamed_addr")
_CONVENTIONS = {"ccc": "", "fastcc": "fastcc ", "coldcc": "coldcc "}
_KERNEL = "nvvm.kernel"
_SMALLEST_DIAMOND = 3
_REFLECT_FTZ = '!{i32 4, !"nvvm-reflect-ftz", i32 0}'
_DEBUG_INFO_VERSION = '!{i32 2, !"Debug Info Version", i32 3}'
_FLAG_BEHAVIORS = {name: number for number, name in enumerate(llvm.ModuleFlagAttr.BEHAVIORS, 1)}
# Properties of `llvm.func` and `llvm.mlir.global`: those that are written, and those without meaning for a GPU.
_FUNCTION_SIGNATURE = frozenset((*llvm.FuncOp.SIGNATURE, "section", "alignment", "dso_local", *FUNCTION_PROPERTIES))
_FUNCTION_HINTS = frozenset(
    (
        *("sym_visibility", "frame_pointer", "target_cpu", "target_features", "tune_cpu", "uwtable_kind"),
        *("function_entry_count", "reqd_work_group_size", "work_group_size_hint"),
    )
)
_GLOBAL_SIGNATURE = frozenset(
    (
        *("global_type", "sym_name", "linkage", "value", "constant", "alignment", "addr_space", "unnamed_addr"),
        *("visibility_", "section", "dso_local", "thread_local_", "externally_initialized"),
    )
)


def print_llvm_ir(module: ModuleOp) -> str:
    """The module as LLVM IR, without data layout and triple, which belong to the target.

    module  llvm.func, llvm.mlir.global and llvm.module_flags ops; not modified
    raises  Unsupported, naming an op that has no LLVM IR here
    """
    flags = [_REFLECT_FTZ]
    if any(isinstance(op, llvm.FuncOp) and subprogram_of(op) for op in module.body.ops):
        flags.append(_DEBUG_INFO_VERSION)
    nodes = DebugNodes(Nodes())
    variables, functions, orders = list[str](), list[str](), list[str]()
    for op in module.body.ops:
        match op:
            case llvm.FuncOp() if (id_function := declared_by(op)) is not None:
                functions.append(id_function.llvm_ir("internal", nodes.nodes.defined(id_function.bounds_text)))
            case llvm.FuncOp():
                functions.append("\n".join(_function(op, nodes)))
                orders += _block_orders(op)
            case llvm.GlobalOp():
                variables.append(_global(op))
            case llvm.ModuleFlagsOp():
                flags += map(_module_flag, op.flags)
            case _:
                raise unsupported(op, f"no LLVM IR for {op.name} at the top of a module")
    flag_lines = [f"!{number} = {flag}" for number, flag in enumerate(flags)]
    listed = ", ".join(f"!{number}" for number in range(len(flags)))
    metadata = "\n".join((f"!llvm.module.flags = !{{{listed}}}", *flag_lines, *nodes.lines(), *nodes.nodes.lines()))
    return (
        "\n\n".join(
            (
                *(["\n".join(variables)] if variables else []),
                *functions,
                *(["\n".join(orders)] if orders else []),
                metadata,
            )
        )
        + "\n"
    )


def _module_flag(flag: llvm.ModuleFlagAttr) -> str:
    value = flag.value
    text = f'!"{escaped(value.data.encode())}"' if isinstance(value, StringAttr) else ""
    if isa(value, IntegerAttr):
        text = f"{type_text(value.type)} {value.value.data}"
    return f'!{{i32 {_FLAG_BEHAVIORS[flag.behavior.data]}, !"{escaped(flag.key.data.encode())}", {text or "!{}"}}}'


def _refuse_unread(op: Operation, known: frozenset[str]) -> None:
    if left := sorted(op.properties.keys() - known):
        raise unsupported(op, f"no LLVM IR for {op.name} with {', '.join(left)}")


# ---- globals ----------------------------------------------------------------------------------------------------------------------------


def _linkage(linkage: llvm.LinkageAttr) -> str:
    """`internal `; "" for external linkage, which definitions do not state."""
    word = linkage.linkage.data
    return "" if word == "external" else f"{word} "


def _global(op: llvm.GlobalOp) -> str:
    """`@tile = internal addrspace(3) global [33 x float] undef, align 16`"""
    _refuse_unread(op, _GLOBAL_SIGNATURE)
    if op.body.blocks:
        raise unsupported(op, f"no LLVM IR for {op.name} with a body")
    linkage = op.linkage.linkage.data
    value = ""
    if op.value is not None:
        value = f" {constant_text(op.value, op.global_type)}"
    elif linkage not in ("external", "extern_weak"):
        value = " undef"
    words = [
        "external " if linkage == "external" and not value else _linkage(op.linkage),
        "dso_local " if op.dso_local is not None else "",
        _VISIBILITIES[op.visibility_.value.data],
        "thread_local " if op.thread_local_ is not None else "",
        f"{unnamed} " if (unnamed := _UNNAMED[op.unnamed_addr.value.data]) else "",
        f"addrspace({space}) " if (space := op.addr_space.value.data) else "",
        "externally_initialized " if op.externally_initialized is not None else "",
        "constant" if op.constant is not None else "global",
    ]
    behind = f', section "{escaped(op.section.data.encode())}"' if op.section is not None else ""
    behind += f", align {op.alignment.value.data}" if op.alignment is not None else ""
    return f"{global_name(op.sym_name.data)} = {''.join(words)} {type_text(op.global_type)}{value}{behind}"


# ---- functions --------------------------------------------------------------------------------------------------------------------------


def _function(op: llvm.FuncOp, nodes: DebugNodes) -> Iterator[str]:
    _refuse_unread(op, _FUNCTION_SIGNATURE | _FUNCTION_HINTS)
    blocks = op.body.blocks
    writer = FunctionWriter(op.body.blocks, nodes.nodes)
    inputs = op.function_type.inputs.data
    attributes = of_each(op.arg_attrs, len(inputs))
    names = [f" {writer.name(argument)}" for argument in blocks[0].args] if blocks else [""] * len(inputs)
    parameters = [
        f"{type_text(ir_type)} {parameter_attributes(attribute)}".rstrip() + name
        for ir_type, attribute, name in zip(inputs, attributes, names, strict=True)
    ]
    parameters += ["..."] * bool(op.function_type.is_variadic)
    (result,) = of_each(op.res_attrs, 1)
    words = [
        "define " if blocks else "declare ",
        _linkage(op.linkage),
        "dso_local " if op.dso_local is not None else "",
        _VISIBILITIES[op.visibility_.value.data],
        _convention(op),
        parameter_attributes(result),
        f"{type_text(op.function_type.output)} {global_name(op.sym_name.data)}({', '.join(parameters)})",
        f" {unnamed}" if (unnamed := _UNNAMED[op.unnamed_addr.value.data]) else "",
        function_attributes(op),
        f' section "{escaped(op.section.data.encode())}"' if op.section is not None else "",
        f" align {op.alignment.value.data}" if op.alignment is not None else "",
    ]
    if (subprogram := subprogram_of(op)) is not None and blocks:
        writer.scope = nodes.scope(subprogram)
        words.append(f" !dbg {writer.scope}")
    if not blocks:
        yield "".join(words)
        return
    yield "".join((*words, " {"))
    yield from writer.written()
    yield "}"


def _block_orders(op: llvm.FuncOp) -> Iterator[str]:
    """`uselistorder_bb @f, %bb3, { 1, 0 }` for each block with several predecessors: the branches to it in mlir-translate's order.

    The newest use is the first of a list. The numbers give, for each use in text order, its position.
    """
    blocks = op.body.blocks
    if len(blocks) < _SMALLEST_DIAMOND:
        return
    from xla_emitters.support.dominance import reverse_postorder  # imported here: most functions have no branches

    written = {block: number for number, block in enumerate(blocks)}
    made = {block: number for number, block in enumerate(reverse_postorder(blocks[0], successors))}
    entered: dict[Block, list[tuple[int, int, int]]] = {}
    for block in blocks:
        for number, target in enumerate(successors(block)):
            entered.setdefault(target, []).append((made.get(block, -1), written[block], number))
    for target, uses in entered.items():
        own = sorted(uses, key=lambda use: use[1:], reverse=True)
        wanted = {use: number for number, use in enumerate(sorted(uses, reverse=True))}
        # A block that one branch targets twice is entered through an inserted block (see `edge`).
        if (numbers := [wanted[use] for use in own]) != sorted(numbers) and len({use[1] for use in uses}) == len(uses):
            listed = ", ".join(map(str, numbers))
            yield f"uselistorder_bb {global_name(op.sym_name.data)}, %bb{written[target]}, {{ {listed} }}"


def _convention(op: llvm.FuncOp) -> str:
    if _KERNEL in op.attributes:
        return "ptx_kernel "
    if (word := _CONVENTIONS.get(op.CConv.word.data)) is None:
        raise unsupported(op, f"no LLVM IR for {op.name} with the calling convention {op.CConv.word.data}")
    return word


@dataclass
class FunctionWriter:
    """Writes the body of one function; implements `instructions.Writer`."""

    blocks: Sequence[Block]
    nodes: Nodes
    names: dict[SSAValue, str] = field(default_factory=dict[SSAValue, str])
    labels: dict[Block, str] = field(default_factory=dict[Block, str])
    taken: set[str] = field(default_factory=set[str])
    next_number: dict[str, int] = field(default_factory=dict[str, int])
    lines: list[str] = field(default_factory=list[str])
    # Blocks inserted between a branch and its target, where one block is two of its targets.
    between: list[str] = field(default_factory=list[str])
    # The function's subprogram, if lines are wanted.
    scope: str | None = None
    # The predecessors of a block: (label, values of the block's arguments) each.
    entered: dict[Block, list[tuple[str, Sequence[SSAValue]]]] = field(
        default_factory=dict[Block, list[tuple[str, Sequence[SSAValue]]]]
    )

    def __post_init__(self) -> None:
        """Names everything first: a block may be written before one that dominates it."""
        for number, block in enumerate(self.blocks):
            self.labels[block] = self._unused(f"bb{number}")
        for block in self.blocks:
            for argument in block.args:
                self.names[argument] = f"%{self._unused(argument.name_hint)}"
            for op in block.ops:
                for result in op.results:
                    self.names[result] = constant_of(op) if is_constant(op) else f"%{self._unused(result.name_hint)}"

    def name(self, value: SSAValue) -> str:
        return self.names[value]

    def fresh(self, text: str) -> str:
        name = f"%{self._unused(None)}"
        self.lines.append(f"  {name} = {text}")
        return name

    def edge(self, op: Operation, successor: int) -> str:
        target, values = _ways(op)[successor]
        block = op.parent
        assert block is not None
        source = self.labels[block]
        if target.args and any(label == source for label, _ in self.entered.get(target, ())):
            source = self._unused(f"{source}.to.{self.labels[target]}")
            self.between += (f"{source}:", f"  br label %{self.labels[target]}")
            self._enter(target, source, values)
            return f"%{source}"
        self._enter(target, source, values)
        return f"%{self.labels[target]}"

    def written(self) -> Iterable[str]:
        """The lines between the function's braces."""
        bodies: dict[Block, list[str]] = {}
        for block in self.blocks:
            self.lines = []
            for op in block.ops:
                row = row_of(op)
                if row.text is None:
                    continue
                before = len(self.lines)
                text = row.text(self, op)
                self.lines.append(f"  {self.names[op.results[0]]} = {text}" if op.results else f"  {text}")
                if self.scope is not None and (place := location_text(op.location, self.scope)):
                    self.lines[before:] = (f"{line}, !dbg {place}" for line in self.lines[before:])
            bodies[block] = self.lines
        for number, (block, body) in enumerate(bodies.items()):
            yield f"{self.labels[block]}:"
            if number:
                yield from self._phis(block)
            yield from body
        yield from self.between

    def _phis(self, block: Block) -> Iterator[str]:
        for number, argument in enumerate(block.args):
            # The last predecessor comes first, as in mlir-translate: LLVM numbers blocks and registers accordingly.
            entered = reversed(self.entered.get(block, ()))
            ways = [f"[ {self.names[values[number]]}, %{label} ]" for label, values in entered]
            # A block without predecessors is dead: its arguments have no value.
            text = f"phi {type_text(argument.type)} {', '.join(ways)}" if ways else ""
            yield f"  {self.names[argument]} = {text or f'freeze {type_text(argument.type)} poison'}"

    def _enter(self, target: Block, source: str, values: Sequence[SSAValue]) -> None:
        self.entered.setdefault(target, []).append((source, values))

    def _unused(self, hint: str | None) -> str:
        """`hint` (`v` if it is not a valid name in LLVM IR), followed by a number if the name is taken."""
        base = hint if hint is not None and is_plain_name(hint) else "v"
        number = self.next_number.get(base, 0)
        while (name := f"{base}.{number}" if number else base) in self.taken:
            number += 1
        self.next_number[base] = number + 1
        self.taken.add(name)
        return name


def _ways(op: Operation) -> list[tuple[Block, Sequence[SSAValue]]]:
    """The targets of a terminator, with the values that it passes to their arguments."""
    match op:
        case llvm.BrOp():
            return [(op.successor, op.arguments)]
        case llvm.CondBrOp():
            return [(op.then_block, op.then_arguments), (op.else_block, op.else_arguments)]
        case llvm.SwitchOp():
            return [(op.default_destination, op.default_operands), *op.ways]
        case _:
            return []
