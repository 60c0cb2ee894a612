"""Prints a program on buffers as Python source, which runs on the host, at every stage from `lmhlo` on.

    func.func @main(%x: memref<?x4xf32, "gpu">) ... {              def main(ctx, x):
      %0 = memref.dim %x, %c0                                          d = x.shape[0]
      %y = memref.alloc(%0) : memref<?x4xf32, "gpu">         ->        y = alloc((d, 4), f32)
      lmhlo.abs %x -> %y                                               lmhlo_abs_1(x, y)
      return %y                                                        return (y,)

    lmhlo.fusion { scf.parallel ... }                       ->        loops_main_kLoop_add_0(x, y, n)       a fusion of loops: one call
    disc_ral.dispatch "h2d" on "gpu"(%ctx, %st, %a, %b)     ->        h2d_m1df32(ctx, stream, a, b)
                       before `main`:   h2d_m1df32 = ral("h2d___gpu___pvoid_pvoid_m1df32_m1df32___void")

One statement per op, from a table by op. An `lmhlo` op, and a fusion of loops, is a call of a function that the runtime makes from it
(`functions` maps each name to its op); in a fusion of buffer ops, each op is a call. Loops and branches with regions are Python's; blocks
that branch to each other are the states of a loop:

    ^bb1(%i): cond_br %p, ^bb2, ^bb3              ->        elif block == 1: block = 2 if p else 3

Numbers are Python's, which do not overflow; they are sizes and truth values, never data. An op without a row is refused by name.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.dialects import arith, cf, func, gpu, memref, scf
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, StringAttr
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from xla_emitters.dialects import lmhlo
from xla_emitters.dialects.disc_ral import (
    DispatchOp,
    RecvInputOp,
    SendOutputOp,
    StreamOp,
    is_marker,
    is_runtime_value,
)
from xla_emitters.dialects.hlo.base import integers
from xla_emitters.dialects.lmhlo import DONATED, BufferOp, tensor_of
from xla_emitters.dtypes import DTYPES, dtype_of
from xla_emitters.errors import UsageError
from xla_emitters.kernels.captures import captured_by, loops_of
from xla_emitters.program.ral_name import RalName
from xla_emitters.rewrite.kernel_pass import refusal

STAGE = "host"
INDENT = "    "
TAKEN = frozenset(
    (
        "ctx",
        "alloc",
        "dealloc",
        "inc_ref",
        "empty",
        "ral",
        "main",
        "block",
        *keyword.kwlist,
        *(row.name for row in DTYPES),
    )
)


@dataclass(frozen=True)
class PythonProgram:
    """A program as text.

    source     binds the runtime's functions by `ral(full name)`, and defines `main(ctx, ...)`, which returns a tuple of buffers
    functions  name of a global of the source -> the op that it executes, or the fusion whose loops it runs
    dtypes     name of a global of the source -> HLO's name of an element type: the global is its NumPy type
    donated    numbers of the arguments that the program owns
    """

    source: str
    functions: Mapping[str, BufferOp | lmhlo.FusionOp] = field(repr=False)
    dtypes: Mapping[str, str] = field(repr=False)
    donated: frozenset[int] = field(repr=False)


def python_program(module: ModuleOp) -> PythonProgram:
    """The module's function as Python.

    raises  UsageError if there is no function; Unsupported for an op without a row
    """
    for op in module.ops:
        if isinstance(op, func.FuncOp) and not op.is_declaration:
            return _Writer().program(op)
    raise UsageError("the module has no function on buffers", stage=STAGE, help="run disc-legalize-to-lhlo first")


class _Writer:
    """Writes one function."""

    def __init__(self) -> None:
        self.lines = list[str]()
        self.depth = 1
        self.names = dict[SSAValue, str]()
        self.used = set(TAKEN)
        self.functions = dict[str, BufferOp | lmhlo.FusionOp]()
        self.calls = dict[str, str]()
        self.dtypes = dict[str, str]()

    def program(self, function: func.FuncOp) -> PythonProgram:
        arguments = [self.define(argument) for argument in function.args if not is_runtime_value(argument)]
        for argument in function.args:
            self.names.setdefault(argument, "ctx")
        self.lines.append(f"def main({', '.join(('ctx', *arguments))}):")
        self.line("alloc, dealloc, inc_ref = ctx.alloc, ctx.dealloc, ctx.inc_ref")
        blocks = list(function.body.blocks)
        if len(blocks) == 1:
            self.block(blocks[0])
        else:
            self.states(blocks)
        bound = [f'{name} = ral("{full_name}")' for full_name, name in self.calls.items()]
        text = "\n".join([*bound, *(["", ""] if bound else ()), *self.lines])
        return PythonProgram(f"{text}\n", self.functions, self.dtypes, _donated(function))

    # ---------------------------------------------------------------------------------------------------------- text

    def line(self, text: str) -> None:
        self.lines.append(INDENT * self.depth + text)

    def unused(self, wanted: str) -> str:
        """A Python name like `wanted` that is not taken."""
        base = re.sub(r"\W", "_", wanted)
        base = base if base and not base[0].isdigit() else f"v{base}"
        name, number = base, 0
        while name in self.used:
            name, number = f"{base}_{number}", number + 1
        self.used.add(name)
        return name

    def define(self, value: SSAValue, hint: str = "v") -> str:
        """The name of a value that the next statement assigns."""
        self.names[value] = self.unused(value.name_hint or hint)
        return self.names[value]

    def __getitem__(self, value: SSAValue) -> str:
        """A value as an expression: its name, or a number."""
        if isinstance(value.owner, arith.ConstantOp) and isinstance(value.owner.value, IntegerAttr):
            number = value.owner.value
            is_truth = str(number.type) == "i1"
            return str(bool(number.value.data)) if is_truth else str(number.value.data)
        return self.names[value]

    def list(self, values: Sequence[SSAValue]) -> str:
        return ", ".join(self[value] for value in values)

    def tuple(self, items: Sequence[str]) -> str:
        return f"({', '.join(items)}{',' if len(items) == 1 else ''})"

    def shape(self, ir_type: Attribute, sizes: Sequence[SSAValue]) -> str:
        """The sizes of a buffer; unknown ones from `sizes`."""
        unknown = iter(sizes)
        return self.tuple([str(size) if size >= 0 else self[next(unknown)] for size in tensor_of(ir_type).get_shape()])

    def dtype(self, ir_type: Attribute) -> str:
        """The name of a buffer's element type."""
        name = dtype_of(tensor_of(ir_type).element_type).name
        self.dtypes[name] = name
        return name

    # ------------------------------------------------------------------------------------------------------ statements

    def block(self, block: Block) -> None:
        for op in block.ops:
            self.statement(op)

    def statement(self, op: Operation) -> None:
        if isinstance(op, BufferOp):
            self.line(f"{self.function(op)}({self.list(op.operands)})")
        elif isinstance(op, arith.ConstantOp) or is_marker(op):
            return
        elif isinstance(op, arith.IndexCastOp):
            self.names[op.result] = self[op.input]
        elif isinstance(op, DispatchOp):
            self.dispatch(op)
        elif (expression := EXPRESSIONS.get(type(op))) is not None:
            text = expression(self, op)
            self.line(f"{self.define(op.results[0], HINTS.get(type(op), 'v'))} = {text}")
        elif (statement := STATEMENTS.get(type(op))) is not None:
            statement(self, op)
        else:
            raise refusal(STAGE, op, f"the host program has no '{op.name}'")

    def function(self, op: BufferOp) -> str:
        """The name of the function that executes an op on buffers."""
        opcode, name = op.name.partition(".")[2], re.sub(r"\W", "_", op.instruction_name)
        name = name if name.startswith(opcode) else f"{opcode}_{name}"
        found = self.unused(f"lmhlo_{name}")
        self.functions[found] = op
        return found

    def dispatch(self, op: DispatchOp) -> None:
        """A call of a function of the runtime."""
        arguments = [self[argument] for argument in op.arguments]
        if isinstance(op.config, StringAttr):
            arguments.append(repr(op.config.data))
        elif op.config is not None:
            arguments.append(self.tuple([str(number) for number in integers(op.config)]))
        called = RalName.parse(op.full_name)
        if op.full_name not in self.calls:
            kind = [code for code in (*called.ins, *called.outs) if code[0] == "m"][-1:]
            self.calls[op.full_name] = self.unused("_".join((called.call, *kind)))
        results = "".join(f"{self.define(result, 'buffer')} = " for result in op.res)
        self.line(f"{results}{self.calls[op.full_name]}({', '.join(arguments)})")

    def region(self, region: Region) -> Operation:
        """Writes the statements of a region, one level deeper; returns its terminator."""
        *ops, last = region.block.ops
        self.depth += 1
        for op in ops:
            self.statement(op)
        return last

    def assign(self, names: Sequence[str], values: Sequence[str]) -> None:
        """Assigns all names at once, leaving out those that keep their value."""
        pairs = [(name, value) for name, value in zip(names, values, strict=True) if name != value]
        if pairs:
            self.line(f"{', '.join(name for name, _ in pairs)} = {', '.join(value for _, value in pairs)}")

    # ---------------------------------------------------------------------------------------------------------- blocks

    def states(self, blocks: Sequence[Block]) -> None:
        """Blocks that branch to each other: the variable `block` is the number of the next one."""
        self.numbers = {block: number for number, block in enumerate(blocks)}
        for block in blocks[1:]:
            for argument in block.args:
                self.define(argument)
        self.line("block = 0")
        self.line("while True:")
        self.depth += 1
        for number, block in enumerate(blocks):
            self.line(f"{'elif' if number else 'if'} block == {number}:")
            self.depth += 1
            self.block(block)
            self.depth -= 1

    def branch(self, target: Block, values: Sequence[SSAValue]) -> None:
        self.assign([self.names[argument] for argument in target.args], [self[value] for value in values])
        self.line(f"block = {self.numbers[target]}")

    def either(self, choices: Iterator[tuple[str, Block, Sequence[SSAValue]]]) -> None:
        """Branches to the first block whose condition holds; an empty condition always holds."""
        for number, (condition, target, values) in enumerate(choices):
            word = "elif" if number else "if"
            self.line(f"{word} {condition}:" if condition else "else:")
            self.depth += 1
            self.branch(target, values)
            self.depth -= 1


def _donated(function: func.FuncOp) -> frozenset[int]:
    """The numbers of the arguments that the program owns, before and after it takes a context."""
    said = {number for number, attributes in enumerate(function.arg_attrs or ()) if DONATED in attributes.data}
    received = (op for op in function.walk() if isinstance(op, RecvInputOp) and DONATED in op.attributes)
    return frozenset(said | {op.number.value.data for op in received})


def _while(w: _Writer, op: Operation) -> None:
    assert isinstance(op, lmhlo.WhileOp)
    names = list[str]()
    for condition, carried, result, init in zip(
        op.condition.block.args, op.body.block.args, op.res, op.inits, strict=True
    ):
        names.append(w.define(result, "carried"))
        w.names[condition] = w.names[carried] = names[-1]
        w.line(f"{names[-1]} = {w[init]}")
    w.line("while True:")
    last = w.region(op.condition)
    assert isinstance(last, lmhlo.ConditionOp)
    w.line(f"if not {w[last.holds]}:")
    w.line(f"{INDENT}break")
    w.depth -= 1
    last = w.region(op.body)
    w.assign(names, [w[value] for value in last.operands])
    w.depth -= 1


def _case(w: _Writer, op: Operation) -> None:
    assert isinstance(op, lmhlo.CaseOp)
    names = [w.define(result, "chosen") for result in op.res]
    for number, branch in enumerate(op.branches):
        word = "elif" if number else "if"
        is_last = number == len(op.branches) - 1
        if not is_last:
            w.line(f"{word} {w[op.selector]} == {number}:")
        else:
            w.line("else:" if number else "if True:")
        written = len(w.lines)
        last = w.region(branch)
        w.assign(names, [w[value] for value in last.operands])
        if len(w.lines) == written:
            w.line("pass")
        w.depth -= 1


def _fusion(w: _Writer, op: Operation) -> None:
    """One call for a fusion of loops, else each of its ops."""
    assert isinstance(op, lmhlo.FusionOp)
    if loops_of(op):
        name = w.unused(f"loops_{op.fusion_name.data if op.fusion_name else 'fusion'}")
        w.functions[name] = op
        w.line(f"{name}({w.list(captured_by(op))})")
        return
    if op.fusion_name is not None:
        w.line(f"# {op.fusion_name.data}")
    for inner in op.body.block.ops:
        if not isinstance(inner, lmhlo.TerminatorOp):
            w.statement(inner)


def _launch(w: _Writer, op: Operation) -> None:
    assert isinstance(op, gpu.LaunchFuncOp)
    grid = w.list((op.gridSizeX, op.gridSizeY, op.gridSizeZ))
    block = w.list((op.blockSizeX, op.blockSizeY, op.blockSizeZ))
    shared = "0" if op.dynamicSharedMemorySize is None else w[op.dynamicSharedMemorySize]
    name = op.kernel.string_value().split(".")[-1]
    w.line(f"ctx.launch({name!r}, ({grid}), ({block}), {shared}, {w.tuple([w[value] for value in op.kernelOperands])})")


def _if(w: _Writer, op: Operation) -> None:
    assert isinstance(op, scf.IfOp)
    names = [w.define(result, "chosen") for result in op.output]
    for line, region in ((f"if {w[op.cond]}:", op.true_region), ("else:", op.false_region)):
        if not region.blocks:
            continue
        w.line(line)
        written = len(w.lines)
        last = w.region(region)
        w.assign(names, [w[value] for value in last.operands])
        if len(w.lines) == written:
            w.line("pass")
        w.depth -= 1


def _return(w: _Writer, op: Operation) -> None:
    w.line(f"return {w.tuple([w[value] for value in op.operands])}")


def _dealloc(w: _Writer, op: Operation) -> None:
    w.line(f"dealloc({w[op.operands[0]]})")


def _send(w: _Writer, op: Operation) -> None:
    assert isinstance(op, SendOutputOp)
    w.line(f"ctx.send_output({op.number.value.data}, {w[op.buffer]})")


def _watch(w: _Writer, op: Operation) -> None:
    assert isinstance(op, lmhlo.WatchOp)
    w.line(f"watch({op.number.value.data}, {w.list(op.values)})")


def _receive(w: _Writer, op: Operation) -> str:
    assert isinstance(op, RecvInputOp)
    return f"ctx.recv_input({op.number.value.data})"


def _store(w: _Writer, op: Operation) -> None:
    assert isinstance(op, memref.StoreOp)
    w.line(f"{w[op.memref]}[{w.list(op.indices) or '()'}] = {w[op.value]}")


def _br(w: _Writer, op: Operation) -> None:
    assert isinstance(op, cf.BranchOp)
    w.branch(op.successor, op.arguments)


def _cond_br(w: _Writer, op: Operation) -> None:
    assert isinstance(op, cf.ConditionalBranchOp)
    then = (w[op.cond], op.then_block, op.then_arguments)
    w.either(iter((then, ("", op.else_block, op.else_arguments))))


def _switch(w: _Writer, op: Operation) -> None:
    assert isinstance(op, cf.SwitchOp)
    numbers = op.case_values.get_values() if op.case_values else ()
    cases = [
        (f"{w[op.flag]} == {number}", target, values)
        for number, target, values in zip(numbers, op.case_blocks, op.case_operand, strict=True)
    ]
    if not cases:
        return w.branch(op.default_block, op.default_operands)
    return w.either(iter((*cases, ("", op.default_block, op.default_operands))))


def _alloc(w: _Writer, op: Operation) -> str:
    assert isinstance(op, memref.AllocOp)
    return f"alloc({w.shape(op.memref.type, op.dynamic_sizes)}, {w.dtype(op.memref.type)})"


def _alloca(w: _Writer, op: Operation) -> str:
    assert isinstance(op, memref.AllocaOp)
    return f"empty({w.shape(op.memref.type, op.dynamic_sizes)}, {w.dtype(op.memref.type)})"


def _inc_ref(w: _Writer, op: Operation) -> str:
    assert isinstance(op, lmhlo.IncRefOp)
    return f"inc_ref({w[op.source]}, {w.shape(op.view.type, op.dynamic_sizes)})"


def _dim(w: _Writer, op: Operation) -> str:
    assert isinstance(op, memref.DimOp)
    return f"{w[op.source]}.shape[{w[op.index]}]"


def _load(w: _Writer, op: Operation) -> str:
    assert isinstance(op, memref.LoadOp)
    return f"{w[op.memref]}.item({w.list(op.indices)})"


def _compare(w: _Writer, op: Operation) -> str:
    assert isinstance(op, arith.CmpiOp)
    sign = COMPARISONS.get(op.predicate.value.data)
    if sign is None:
        raise refusal(STAGE, op, "the host program has no unsigned comparison")
    return f"{w[op.lhs]} {sign} {w[op.rhs]}"


def _form(text: str) -> Callable[[_Writer, Operation], str]:
    """An expression with the operands at {0}, {1} ..."""
    return lambda w, op: text.format(*(w[operand] for operand in op.operands))


COMPARISONS = {0: "==", 1: "!=", 2: "<", 3: "<=", 4: ">", 5: ">="}

EXPRESSIONS: Mapping[type[Operation], Callable[[_Writer, Operation], str]] = {
    arith.AddiOp: _form("{0} + {1}"),
    arith.AndIOp: _form("{0} & {1}"),
    arith.CeilDivSIOp: _form("-(-{0} // {1})"),
    arith.CeilDivUIOp: _form("-(-{0} // {1})"),
    arith.CmpiOp: _compare,
    arith.ExtUIOp: _form("int({0})"),
    arith.DivUIOp: _form("{0} // {1}"),
    arith.FloorDivSIOp: _form("{0} // {1}"),
    arith.MaxSIOp: _form("max({0}, {1})"),
    arith.MinSIOp: _form("min({0}, {1})"),
    arith.MuliOp: _form("{0} * {1}"),
    arith.OrIOp: _form("{0} | {1}"),
    arith.RemUIOp: _form("{0} % {1}"),
    arith.RemSIOp: _form("{0} % {1}"),  # of sizes, which are nonnegative
    arith.SelectOp: _form("{1} if {0} else {2}"),
    arith.SubiOp: _form("{0} - {1}"),
    RecvInputOp: _receive,
    StreamOp: _form("{0}.stream"),
    lmhlo.IncRefOp: _inc_ref,
    memref.AllocOp: _alloc,
    memref.AllocaOp: _alloca,
    memref.CollapseShapeOp: _form("{0}.reshape(-1)"),
    memref.DimOp: _dim,
    memref.LoadOp: _load,
}
"""Op with one result -> its value."""

HINTS: Mapping[type[Operation], str] = {
    memref.CollapseShapeOp: "flat",
    memref.DimOp: "d",
    memref.AllocOp: "buffer",
    memref.LoadOp: "n",
}

STATEMENTS: Mapping[type[Operation], Callable[[_Writer, Operation], None]] = {
    SendOutputOp: _send,
    cf.BranchOp: _br,
    cf.ConditionalBranchOp: _cond_br,
    cf.SwitchOp: _switch,
    func.ReturnOp: _return,
    gpu.LaunchFuncOp: _launch,
    lmhlo.CaseOp: _case,
    lmhlo.FusionOp: _fusion,
    lmhlo.WatchOp: _watch,
    lmhlo.WhileOp: _while,
    memref.DeallocOp: _dealloc,
    memref.StoreOp: _store,
    scf.IfOp: _if,
}
"""Op without results, or with regions -> its statements."""
