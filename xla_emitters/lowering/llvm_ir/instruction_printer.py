"""The ops of the LLVM and nvvm dialects as instructions of LLVM IR: one row of `ROWS` for each op.

    %0 = llvm.load %p invariant {alignment = 8 : i64} : !llvm.ptr -> vector<4xbf16>
    %0 = load <4 x bfloat>, ptr %p, align 8, !invariant.load !{}

    %t = nvvm.read.ptx.sreg.tid.x range <i32, 0, 128> : i32
    %t = call range(i32 0, 128) i32 @llvm.nvvm.read.ptx.sreg.tid.x()

    %m = llvm.intr.smax(%a, %b) : (i32, i32) -> i32
    %m = call i32 @llvm.smax(i32 %a, i32 %b)            LLVM's parser declares it, and adds the types to its name

A row names the properties that its text expresses. An op without a row, or with another property, is refused by name; only hints
(`_HINTS`) are left out: alias scopes, access groups. Locations are written by `FunctionWriter`.
Source: LLVM language reference, "Instruction Reference", "Intrinsic Functions"; MLIR 22, LLVMIRConversions and NVVMConversions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    DictionaryAttr,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    StringAttr,
)
from xdsl.ir import Operation, SSAValue

from xla_emitters.dialects.isa import isa
from xla_emitters.dialects.locations import place_of
from xla_emitters.dialects.mlir import llvm, nvvm
from xla_emitters.dialects.mlir.llvm import TailCallKind
from xla_emitters.dialects.mlir.llvm.calls import CallIntrinsicOp, CallOp, InlineAsmOp, bundles_of
from xla_emitters.dialects.mlir.llvm.memory_ops import ORDERINGS
from xla_emitters.dialects.mlir.llvm.metadata import LOOP_ANNOTATION, WordAttr
from xla_emitters.dialects.mlir.llvm.values import CompareOp
from xla_emitters.dialects.mlir.nvvm_async import MemoryBarrierOp
from xla_emitters.errors import Unsupported
from xla_emitters.lowering.llvm_ir.function_attributes import memory_word, of_each, parameter_attributes, range_word
from xla_emitters.lowering.llvm_ir.nodes import Nodes, loop_text
from xla_emitters.lowering.llvm_ir.spelling import STAGE, constant_text, escaped, global_name, type_text
from xla_emitters.support.late_dataclass import dataclass


class Writer(Protocol):
    """A function being written: the names of its values and blocks, and the lines so far."""

    def name(self, value: SSAValue) -> str:
        """`%x`, or the text of a constant."""
        ...

    def fresh(self, text: str) -> str:
        """Adds an instruction whose value is not the result of an op; returns its name."""
        ...

    def edge(self, op: Operation, successor: int) -> str:
        """The label that a terminator branches to for one of its successors."""
        ...

    @property
    def nodes(self) -> Nodes:
        """The module's metadata."""
        ...


@dataclass(frozen=True)
class InstructionRow:
    """How one op is written.

    text        the instruction after `%x = `; None if the op only names its result (constants)
    properties  the properties that `text` expresses
    """

    text: Callable[[Writer, Operation], str] | None
    properties: frozenset[str] = frozenset()


_HINTS = frozenset(("access_groups", "alias_scopes", "noalias_scopes", "tbaa", "invariantGroup"))
# Properties that describe the op's form, not its meaning.
_FORM = frozenset(("operandSegmentSizes", "op_bundle_sizes", "op_bundle_tags", "rawConstantIndices"))


def row_of(op: Operation) -> InstructionRow:
    """The row of `op`. raises Unsupported, naming the op, if it or one of its properties has no LLVM IR here."""
    row = ROWS.get(op.name)
    if row is None:
        raise unsupported(op, f"no LLVM IR for {op.name}")
    if op.properties.keys() <= row.properties:
        return row
    if left := sorted(op.properties.keys() - row.properties - _HINTS - _FORM):
        raise unsupported(op, f"no LLVM IR for {op.name} with {', '.join(left)}")
    return row


def unsupported(op: Operation, message: str) -> Unsupported:
    return Unsupported(message, stage=STAGE, details=(text,) if (text := place_of(op)) else ())


def is_constant(op: Operation) -> bool:
    """Whether the op only names a constant, which is written at its uses."""
    return op.name in _CONSTANTS


def constant_of(op: Operation) -> str:
    """The text of a constant op, without its type. raises Unsupported."""
    match op:
        case llvm.ConstantOp():
            return constant_text(op.value, op.result.type)
        case llvm.AddressOfOp():
            return global_name(op.global_name.string_value())
        case _:
            return _CONSTANTS[op.name]


_CONSTANTS = {
    "llvm.mlir.addressof": "",
    "llvm.mlir.constant": "",
    "llvm.mlir.poison": "poison",
    "llvm.mlir.undef": "undef",
    "llvm.mlir.zero": "zeroinitializer",
}


# ---- parts of instructions --------------------------------------------------------------------------------------------------------------


def typed(writer: Writer, value: SSAValue) -> str:
    """`i32 %x`"""
    return f"{type_text(value.type)} {writer.name(value)}"


def _list(writer: Writer, values: Iterable[SSAValue]) -> str:
    return ", ".join(typed(writer, value) for value in values)


def _number(op: Operation, name: str) -> int | None:
    value = op.properties.get(name)
    return value.value.data if isa(value, IntegerAttr) else None


def _integers(op: Operation, name: str) -> tuple[int, ...]:
    """The numbers in an array of integers."""
    value = op.properties[name]
    assert isa(value, DenseArrayBase[IntegerType])
    return value.get_values()


# In the order in which LLVM prints them.
_FASTMATH = ("reassoc", "nnan", "ninf", "nsz", "arcp", "contract", "afn")


def _flags(op: Operation) -> str:
    """`nuw nsw `, `exact `, `nnan nsz `: the flags of an instruction, each followed by a space."""
    properties, words = op.properties, list[str]()
    if not properties:
        return ""
    overflow = properties.get("overflowFlags")
    bits = overflow.to_int() if type(overflow) is llvm.OverflowAttr else _number(op, "overflowFlags") or 0
    words += [word for bit, word in ((2, "nuw"), (1, "nsw")) if bits & bit]
    words += [word for name, word in _FLAG_WORDS.items() if name in properties]
    if isinstance(fastmath := properties.get("fastmathFlags"), llvm.FastMathAttr) and fastmath.data:
        words += [word for word in _FASTMATH if word in {flag.value for flag in fastmath.data}]
    return "".join(f"{word} " for word in words)


_FLAG_WORDS = {"isExact": "exact", "isDisjoint": "disjoint", "nonNeg": "nneg"}
_FLAGS = frozenset(("overflowFlags", "fastmathFlags", *_FLAG_WORDS))


# ---- values -----------------------------------------------------------------------------------------------------------------------------

_SAME_NAME = (
    *("add", "sub", "mul", "udiv", "sdiv", "urem", "srem", "and", "or", "xor", "shl", "lshr", "ashr"),
    *("fadd", "fsub", "fmul", "fdiv", "frem", "fneg"),
)
_CASTS = (
    *("trunc", "zext", "sext", "fptrunc", "fpext", "fptosi", "fptoui", "sitofp", "uitofp"),
    *("bitcast", "inttoptr", "ptrtoint", "addrspacecast"),
)


def _arithmetic(writer: Writer, op: Operation) -> str:
    first, *others = op.operands
    rest = "".join(f", {writer.name(value)}" for value in others)
    return f"{op.name.removeprefix('llvm.')} {_flags(op)}{typed(writer, first)}{rest}"


def _cast(writer: Writer, op: Operation) -> str:
    (operand,), (result,) = op.operands, op.results
    return f"{op.name.removeprefix('llvm.')} {_flags(op)}{typed(writer, operand)} to {type_text(result.type)}"


def _comparison(writer: Writer, op: Operation) -> str:
    assert isinstance(op, CompareOp)
    predicate = op.predicate_name.removeprefix("_")
    return f"{op.name[-4:]} {_flags(op)}{predicate} {typed(writer, op.lhs)}, {writer.name(op.rhs)}"


def _same(writer: Writer, op: Operation) -> str:
    """The instruction's name, its flags, and its operands with their types."""
    return f"{op.name.removeprefix('llvm.')} {_flags(op)}{_list(writer, op.operands)}"


def _shuffle(writer: Writer, op: Operation) -> str:
    lanes = ["poison" if lane < 0 else str(lane) for lane in _integers(op, "mask")]
    lanes_text = ", ".join(f"i32 {lane}" for lane in lanes)
    return f"shufflevector {_list(writer, op.operands)}, <{len(lanes)} x i32> <{lanes_text}>"


def _part(writer: Writer, op: Operation) -> str:
    """extractvalue and insertvalue."""
    numbers = "".join(f", {number}" for number in _integers(op, "position"))
    return f"{op.name.removeprefix('llvm.')} {_list(writer, op.operands)}{numbers}"


# ---- memory -----------------------------------------------------------------------------------------------------------------------------


def _address(writer: Writer, op: Operation) -> str:
    assert isinstance(op, llvm.GEPOp)
    bits = op.noWrapFlags.value.data
    words = ["inbounds"] if bits & 3 == 3 else ["nusw"] if bits & 2 else []
    words += ["nuw"] if bits & 4 else []
    values = iter(op.ssa_indices)
    indices = [
        typed(writer, next(values)) if index == llvm.DYNAMIC_INDEX else f"i32 {index}"
        for index in op.rawConstantIndices.iter_values()
    ]
    flags = "".join(f"{word} " for word in words)
    return f"getelementptr {flags}{type_text(op.elem_type)}, {', '.join((typed(writer, op.ptr), *indices))}"


def _alloca(writer: Writer, op: Operation) -> str:
    assert isinstance(op, llvm.AllocaOp)
    pointer = type_text(op.res.type).removeprefix("ptr")
    space = f",{pointer}" if pointer else ""
    return f"alloca {type_text(op.elem_type)}, {typed(writer, op.size)}{_alignment(op)}{space}"


def _alignment(op: Operation) -> str:
    return f", align {alignment}" if (alignment := _number(op, "alignment")) else ""


def _order(op: Operation, *names: str) -> str:
    """` syncscope("agent") monotonic`"""
    scope = op.properties.get("syncscope")
    text = f' syncscope("{escaped(scope.data.encode())}")' if isinstance(scope, StringAttr) else ""
    return text + "".join(f" {ORDERINGS[number]}" for name in names if (number := _number(op, name)))


_METADATA = {"invariant": "!invariant.load !{}", "nontemporal": "!nontemporal !{i32 1}"}
_ACCESS = frozenset(("alignment", "ordering", "syncscope", "volatile_", *_METADATA))


def _access(writer: Writer, op: Operation) -> str:
    """load and store."""
    words = ["load" if isinstance(op, llvm.LoadOp) else "store"]
    words += ["atomic"] if _number(op, "ordering") else []
    words += ["volatile"] if "volatile_" in op.properties else []
    types = [type_text(op.dereferenced_value.type)] if isinstance(op, llvm.LoadOp) else []
    operands = ", ".join((*types, *(typed(writer, operand) for operand in op.operands)))
    metadata = "".join(f", {text}" for name, text in _METADATA.items() if name in op.properties)
    return f"{' '.join(words)} {operands}{_order(op, 'ordering')}{_alignment(op)}{metadata}"


def _read_modify_write(writer: Writer, op: Operation) -> str:
    assert isinstance(op, llvm.AtomicRMWOp)
    volatile = "volatile " if op.volatile_ is not None else ""
    operands = _list(writer, op.operands)
    return f"atomicrmw {volatile}{op.operation.removeprefix('_')} {operands}{_order(op, 'ordering')}{_alignment(op)}"


def _compare_and_swap(writer: Writer, op: Operation) -> str:
    words = ["weak"] if "weak" in op.properties else []
    words += ["volatile"] if "volatile_" in op.properties else []
    orders = _order(op, "success_ordering", "failure_ordering")
    return f"{' '.join(('cmpxchg', *words))} {_list(writer, op.operands)}{orders}{_alignment(op)}"


# ---- control flow -----------------------------------------------------------------------------------------------------------------------


def _branch(writer: Writer, op: Operation) -> str:
    if not isinstance(op, llvm.CondBrOp):
        return f"br label {writer.edge(op, 0)}{_loop(writer, op)}"
    targets = f"label {writer.edge(op, 0)}, label {writer.edge(op, 1)}"
    return f"br {typed(writer, op.cond)}, {targets}{_weights(op)}{_loop(writer, op)}"


def _loop(writer: Writer, op: Operation) -> str:
    return loop_text(op.properties[LOOP_ANNOTATION], writer.nodes) if LOOP_ANNOTATION in op.properties else ""


def _switch(writer: Writer, op: Operation) -> str:
    assert isinstance(op, llvm.SwitchOp)
    ir_type = type_text(op.value.type)
    cases = " ".join(f"{ir_type} {number}, label {writer.edge(op, k)}" for k, number in enumerate(op.numbers, 1))
    return f"switch {typed(writer, op.value)}, label {writer.edge(op, 0)} [ {cases} ]{_weights(op)}"


def _weights(op: Operation) -> str:
    """The branch weights, which LLVM uses to order the blocks."""
    if "branch_weights" not in op.properties:
        return ""
    weights = ", ".join(f"i32 {weight}" for weight in _integers(op, "branch_weights"))
    return f', !prof !{{!"branch_weights", {weights}}}'


# ---- calls ------------------------------------------------------------------------------------------------------------------------------


def _result_type(op: Operation) -> str:
    return type_text(op.results[0].type) if op.results else "void"


def call_text(
    writer: Writer,
    op: Operation,
    callee: str,
    arguments: Sequence[SSAValue],
    *,
    arg_attrs: ArrayAttr[DictionaryAttr] | None = None,
    res_attrs: ArrayAttr[DictionaryAttr] | None = None,
    ir_type: str = "",
    behind: Sequence[str] = (),
) -> str:
    """`call nsz float @f(float noundef %x)`

    ir_type  of the result, or of the function; default: the type of the op's result
    behind   arguments after the operands that are not operands, with their types
    """
    attributes = of_each(arg_attrs, len(arguments))
    given = [
        f"{type_text(argument.type)} {parameter_attributes(attribute)}{writer.name(argument)}"
        for argument, attribute in zip(arguments, attributes, strict=True)
    ]
    (result,) = of_each(res_attrs, 1)
    promised = parameter_attributes(result)
    return f"call {_flags(op)}{promised}{ir_type or _result_type(op)} {callee}({', '.join((*given, *behind))})"


_CALL_WORDS = {
    **{"convergent": "convergent", "no_unwind": "nounwind", "will_return": "willreturn", "no_inline": "noinline"},
    **{"always_inline": "alwaysinline", "inline_hint": "inlinehint"},
}


def _call(writer: Writer, op: Operation) -> str:
    assert isinstance(op, CallOp)
    if op.CConv.word.data != "ccc":
        raise unsupported(op, f"no LLVM IR for {op.name} by the calling convention {op.CConv.word.data}")
    callee, arguments = "", op.args
    if op.callee is not None:
        callee = global_name(op.callee.string_value())
    else:
        callee, arguments = writer.name(arguments[0]), arguments[1:]
    variadic = function_type(op.var_callee_type) if op.var_callee_type is not None else ""
    text = call_text(writer, op, callee, arguments, arg_attrs=op.arg_attrs, res_attrs=op.res_attrs, ir_type=variadic)
    kind = op.TailCallKind.data
    words = [word for name, word in _CALL_WORDS.items() if name in op.properties]
    if op.memory_effects is not None:
        words.append(memory_word(op.memory_effects))
    promised = "".join(f" {word}" for word in words)
    return f"{'' if kind is TailCallKind.NONE else f'{kind.value} '}{text}{promised}{_bundles(writer, op)}"


def function_type(ir_type: llvm.LLVMFunctionType) -> str:
    """`i32 (ptr, ...)`"""
    inputs = [type_text(parameter) for parameter in ir_type.inputs] + ["..."] * bool(ir_type.is_variadic)
    return f"{type_text(ir_type.output)} ({', '.join(inputs)})"


def _bundles(writer: Writer, op: CallOp | CallIntrinsicOp | llvm.AssumeOp) -> str:
    """` [ "align"(ptr %p, i32 16) ]`"""
    shown = (f'"{escaped(tag.encode())}"({_list(writer, values)})' for tag, values in bundles_of(op))
    return f" [ {text} ]" if (text := ", ".join(shown)) else ""


def _call_intrinsic(writer: Writer, op: Operation) -> str:
    assert isinstance(op, CallIntrinsicOp)
    callee = global_name(op.intrin.data)
    return call_text(writer, op, callee, op.args, arg_attrs=op.arg_attrs, res_attrs=op.res_attrs) + _bundles(writer, op)


def _assume(writer: Writer, op: Operation) -> str:
    assert isinstance(op, llvm.AssumeOp)
    return call_text(writer, op, "@llvm.assume", [op.cond]) + _bundles(writer, op)


def _assembly(writer: Writer, op: Operation) -> str:
    assert isinstance(op, InlineAsmOp)
    words = ["sideeffect"] if op.has_side_effects is not None else []
    words += ["alignstack"] if op.is_align_stack is not None else []
    words += ["inteldialect"] if op.asm_dialect is not None and op.asm_dialect.value.data == 1 else []
    flags = "".join(f"{word} " for word in words)
    text, constraints = (escaped(string.data.encode()) for string in (op.asm_string, op.constraints))
    kind = op.tail_call_kind.data
    tail = "" if kind is TailCallKind.NONE else f"{kind.value} "
    return f'{tail}call {_result_type(op)} asm {flags}"{text}", "{constraints}"({_list(writer, op.operands)})'


# ---- intrinsics -------------------------------------------------------------------------------------------------------------------------

# Properties that are passed as arguments, after the operands.
_IMMEDIATES: Mapping[str, tuple[str, ...]] = {
    "llvm.intr.abs": ("is_int_min_poison",),
    "llvm.intr.ctlz": ("is_zero_poison",),
    "llvm.intr.cttz": ("is_zero_poison",),
    "llvm.intr.expect.with.probability": ("prob",),
    "llvm.intr.is.fpclass": ("bit",),
    "llvm.intr.memcpy": ("isVolatile",),
    "llvm.intr.memmove": ("isVolatile",),
    "llvm.intr.memset": ("isVolatile",),
    "llvm.intr.prefetch": ("rw", "hint", "cache"),
    "llvm.intr.vector.extract": ("pos",),
    "llvm.intr.vector.insert": ("pos",),
}
# Intrinsics whose operands, attributes or names differ from LLVM's.
_OTHER_INTRINSICS = frozenset(
    (
        *("llvm.intr.assume", "llvm.intr.experimental.noalias.scope.decl"),
        *(name for name in (op.name for op in llvm.LLVM.operations) if name.startswith("llvm.intr.masked.")),
    )
)


def _intrinsic(writer: Writer, op: Operation) -> str:
    given: list[str] = []
    for name in _IMMEDIATES.get(op.name, ()):
        value = op.properties[name]
        assert isa(value, IntegerAttr) or isa(value, FloatAttr)
        given.append(f"{type_text(value.type)} {constant_text(value, value.type)}")
    return call_text(writer, op, f"@llvm.{op.name.removeprefix('llvm.intr.')}", op.operands, behind=given)


# ---- nvvm -------------------------------------------------------------------------------------------------------------------------------


def _register(writer: Writer, op: Operation) -> str:
    name = op.name.replace(".smem.size", "_smem_size")
    bounds = op.properties.get("range")
    promised = f"{range_word(bounds)} " if isinstance(bounds, llvm.ConstantRangeAttr) else ""
    return f"call {promised}{_result_type(op)} @llvm.{name}()"


def _as_call(callee: str, *behind: str) -> Callable[[Writer, Operation], str]:
    """A call of an NVPTX intrinsic with the op's operands, followed by `behind`."""
    return lambda writer, op: call_text(writer, op, f"@llvm.nvvm.{callee}", op.operands, behind=behind)


def _barrier(writer: Writer, op: Operation) -> str:
    assert isinstance(op, nvvm.BarrierOp)
    if op.reductionOp is not None:
        raise unsupported(op, f"no LLVM IR for {op.name} with reductionOp")
    kind = "all" if op.number_of_threads is None else "count"
    number = [] if op.barrier_id is not None else ["i32 0"]
    return call_text(writer, op, f"@llvm.nvvm.barrier.cta.sync.aligned.{kind}", op.operands, behind=number)


def _shuffle_lanes(writer: Writer, op: Operation) -> str:
    assert isinstance(op, nvvm.ShflOp)
    has_validity = "p" if op.return_value_and_is_valid is not None else ""
    ir_type = {"float": "f32", "i32": "i32"}.get(type_text(op.val.type))
    if ir_type is None:
        raise unsupported(op, f"no LLVM IR for {op.name} of {op.val.type}")
    return call_text(writer, op, f"@llvm.nvvm.shfl.sync.{op.kind.word.data}.{ir_type}{has_validity}", op.operands)


def _word(op: Operation, name: str) -> str:
    """The word of an enumeration: `add`, `launch_dependents`."""
    value = op.properties[name]
    assert isinstance(value, WordAttr)
    return value.word.data


def _reduce_lanes(writer: Writer, op: Operation) -> str:
    words = [word for name, word in (("abs", ".abs"), ("nan", ".NaN")) if _number(op, name)]
    return call_text(writer, op, f"@llvm.nvvm.redux.sync.{_word(op, 'kind')}{''.join(words)}", op.operands)


def _match(writer: Writer, op: Operation) -> str:
    kind = _word(op, "kind")
    has_validity = "p" if kind == "all" else ""
    value = type_text(op.operands[1].type)
    return call_text(writer, op, f"@llvm.nvvm.match.{kind}.sync.{value}{has_validity}", op.operands)


def _elect(writer: Writer, op: Operation) -> str:
    mask = typed(writer, op.operands[0]) if op.operands else "i32 -1"
    both = writer.fresh(f"call {{ i32, i1 }} @llvm.nvvm.elect.sync({mask})")
    return f"extractvalue {{ i32, i1 }} {both}, 1"


_SCOPES = {"cta": "cta", "gpu": "gl", "sys": "sys"}


def _memory_barrier(writer: Writer, op: Operation) -> str:
    assert isinstance(op, MemoryBarrierOp)
    if (scope := _SCOPES.get(op.scope.word.data)) is None:
        raise unsupported(op, f"no LLVM IR for {op.name} of the scope {op.scope.word.data}")
    return f"call void @llvm.nvvm.membar.{scope}()"


def _row(text: Callable[[Writer, Operation], str] | None, *properties: str) -> InstructionRow:
    return InstructionRow(text, frozenset(properties))


ROWS: Mapping[str, InstructionRow] = {
    **{name: _row(None, "value", "global_name") for name in _CONSTANTS},
    **{f"llvm.{name}": _row(_arithmetic, *_FLAGS) for name in _SAME_NAME},
    **{f"llvm.{name}": _row(_cast, *_FLAGS) for name in _CASTS},
    **{f"llvm.{name}": _row(_comparison, "predicate", "fastmathFlags") for name in ("icmp", "fcmp")},
    "llvm.select": _row(_same, *_FLAGS),
    "llvm.freeze": _row(_same),
    "llvm.extractelement": _row(_same),
    "llvm.insertelement": _row(_same),
    "llvm.shufflevector": _row(_shuffle, "mask"),
    "llvm.extractvalue": _row(_part, "position"),
    "llvm.insertvalue": _row(_part, "position"),
    "llvm.getelementptr": _row(_address, "elem_type", "noWrapFlags", "rawConstantIndices"),
    "llvm.alloca": _row(_alloca, "elem_type", "alignment"),
    "llvm.load": _row(_access, *_ACCESS),
    "llvm.store": _row(_access, *_ACCESS),
    "llvm.atomicrmw": _row(_read_modify_write, "bin_op", "ordering", "syncscope", "alignment", "volatile_"),
    "llvm.cmpxchg": _row(
        _compare_and_swap,
        *("success_ordering", "failure_ordering", "syncscope", "alignment", "weak", "volatile_"),
    ),
    "llvm.fence": _row(lambda writer, op: f"fence{_order(op, 'ordering')}", "ordering", "syncscope"),
    "llvm.br": _row(_branch, LOOP_ANNOTATION),
    "llvm.cond_br": _row(_branch, "branch_weights", LOOP_ANNOTATION),
    "llvm.switch": _row(_switch, "case_values", "case_operand_segments", "branch_weights"),
    "llvm.return": _row(lambda writer, op: f"ret {_list(writer, op.operands)}" if op.operands else "ret void"),
    "llvm.unreachable": _row(lambda writer, op: "unreachable"),
    "llvm.call": _row(
        _call,
        *("callee", "var_callee_type", "fastmathFlags", "CConv", "TailCallKind", "memory_effects"),
        *("arg_attrs", "res_attrs", *_CALL_WORDS),
    ),
    "llvm.call_intrinsic": _row(_call_intrinsic, "intrin", "fastmathFlags", "arg_attrs", "res_attrs"),
    "llvm.intr.assume": _row(_assume),
    "llvm.inline_asm": _row(
        _assembly,
        *("asm_string", "constraints", "has_side_effects"),
        *("is_align_stack", "asm_dialect", "tail_call_kind"),
    ),
    # `llvm.intr.smax` is `@llvm.smax`: the parser infers its types, and LLVM's verifier refuses wrong ones.
    **{
        op.name: _row(_intrinsic, "fastmathFlags", *_IMMEDIATES.get(op.name, ()))
        for op in llvm.LLVM.operations
        if op.name.startswith("llvm.intr.") and op.name not in _OTHER_INTRINSICS
    },
    **{op.name: _row(_register, "range") for op in nvvm.NVVM.operations if op.name.startswith("nvvm.read.ptx.sreg.")},
    "nvvm.barrier0": _row(_as_call("barrier.cta.sync.aligned.all", "i32 0")),
    "nvvm.barrier": _row(_barrier, "reductionOp"),
    "nvvm.bar.warp.sync": _row(_as_call("bar.warp.sync")),
    "nvvm.shfl.sync": _row(_shuffle_lanes, "kind", "return_value_and_is_valid"),
    "nvvm.redux.sync": _row(_reduce_lanes, "kind", "abs", "nan"),
    "nvvm.vote.sync": _row(
        lambda writer, op: call_text(writer, op, f"@llvm.nvvm.vote.{_word(op, 'kind')}.sync", op.operands),
        "kind",
    ),
    "nvvm.match.sync": _row(_match, "kind"),
    "nvvm.elect.sync": _row(_elect),
    "nvvm.rcp.approx.ftz.f": _row(_as_call("rcp.approx.ftz.f")),
    "nvvm.griddepcontrol": _row(
        lambda writer, op: f"call void @llvm.nvvm.griddepcontrol.{_word(op, 'kind').replace('_', '.')}()",
        "kind",
    ),
    "nvvm.memory.barrier": _row(_memory_barrier, "scope"),
    "nvvm.nanosleep": _row(_as_call("nanosleep")),
}
"""Op name -> how the op is written."""
