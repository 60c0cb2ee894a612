"""A program with unknown sizes, packaged for C: an object file, constants, a header, and a source file that checks arguments.

    files = c_bundle(program, "gelu")
    gelu.o       the host program and its kernels, for this machine's CPU or the one of `cpu_features`
    gelu.bin     constants; not written for a program without constants
    gelu.h       the functions to call: gelu_open, gelu_run, gelu_free, gelu_close
    gelu.c       the checks that Python makes before a run, and the offsets of the constants
    ral.h, ral.c the runtime shared by all programs: buffers, constants, launches, matrix products, messages

    cc main.c gelu.c ral.c gelu.o -lm

The object file calls the runtime's functions by name. ral.c implements products and convolutions of integers, floats and complex numbers
in plain C; `ral_register` replaces those that `ral_gemm` can compute by a library's. A program that needs another function (a Fourier
transform, a scatter whose updates are not known to fit ...) is refused with the names of the missing functions. So is a program whose
kernels would have to check sizes that depend on data. Kernels run on the caller's thread.
Source: docs/reference/4 4.3, 4.5; seed document, "RewriteRalApiPass".
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files

from xla_emitters.algebra.expression import FLOORDIV, MOD, VARIABLE
from xla_emitters.algebra.facts import EQUAL, Fact
from xla_emitters.algebra.guards import Guard
from xla_emitters.algebra.size import Size
from xla_emitters.dialects.disc_ral import RalName
from xla_emitters.dialects.hlo.backend_configs import target_of
from xla_emitters.dialects.hlo.base import HloOp
from xla_emitters.dialects.hlo.contractions import DotOp
from xla_emitters.dialects.hlo.dynamic_shape_ops import ShapeAssertionOp
from xla_emitters.dialects.hlo.types import dims_of
from xla_emitters.dtypes import DTYPES, dtype
from xla_emitters.dynamic.host.disc_convert_const_to_ral import constants_of
from xla_emitters.errors import DataError, Unsupported
from xla_emitters.lowering.cpu.cpu_code import cpu_object
from xla_emitters.lowering.cpu.cpu_steps import ENTRY
from xla_emitters.lowering.cpu.cpu_target import CpuTarget
from xla_emitters.pipelines.cpu_lowering import CpuLowering
from xla_emitters.pipelines.lowerings import lowerings_of
from xla_emitters.pipelines.program_llvm import MAIN, LlvmHost
from xla_emitters.program import Program
from xla_emitters.program.compiled import refuse_left_out
from xla_emitters.rewrite.kernel_pass import refusal
from xla_emitters.runtime.ral.constants_file import StoredConstants

STAGE = "bundle"
MOST_DIMENSIONS = 16
"""RAL_MAX_RANK of ral.h."""
SUMMED = frozenset(
    ("f32", "f64", "bf16", "f16", "i1", "i8", "i16", "i32", "i64", "ui8", "ui16", "ui32", "ui64", "c64", "c128")
)
"""Element types of the products and convolutions of ral.c, as spelled in function names."""
OWN = frozenset(
    (
        *("alloc", "dealloc", "inc_ref", "d2d", "d2h", "h2d", "h2h", "sync_on_stream"),
        *("ral_const", "ral_kernel_launch", "ral_recv_input", "ral_send_output"),
    )
)
"""Functions of ral.c for any types."""
C_TYPES: Mapping[str, str] = {
    **{"pred": "uint8_t", "s8": "int8_t", "s16": "int16_t", "s32": "int32_t", "s64": "int64_t"},
    **{"u8": "uint8_t", "u16": "uint16_t", "u32": "uint32_t", "u64": "uint64_t"},
    **{"f16": "uint16_t", "bf16": "uint16_t", "f32": "float", "f64": "double"},
    **{"c64": "float _Complex", "c128": "double _Complex"},
    **{element.name: "uint8_t" for element in DTYPES if element.name.startswith("f8")},
}


def c_bundle(program: Program, name: str) -> dict[str, bytes]:
    """File name -> contents; `name`, a C identifier, is the stem of all of them.

    raises  Unsupported, naming it, for what the C runtime does not have or the kernels do not check; ToolError like `cpu_object`
    """
    refuse_left_out(program.name, program.left_out)
    lowered = lowerings_of(program)
    if lowered.fused is None or lowered.sizes.unresolved:
        raise Unsupported(f"{program.name} has sizes that depend on data, which kernels do not check", stage=STAGE)
    lowering = CpuLowering(program.name, lowered.fused, lowered.options)
    host = LlvmHost(program.name, lowering, lowered.options)
    _refuse_calls(program, host)
    guards = lowerings_of(program).sizes.guards
    for number, parameter in enumerate(guards.parameters):
        _refuse_type(f"argument {number} (p{number})", guards.types[number], len(parameter.shape))
    for number, spec in enumerate(program.results):
        _refuse_type(f"result {number}", spec.dtype, len(spec.shape))
    seen = {MAIN: f"{name}_main"} | {f"{kernel}{ENTRY}": seen_as for kernel, seen_as in _kernels(name, host).items()}
    data, places = _constants(host)
    made = {
        f"{name}.o": cpu_object(host.ir, seen, lowering.cpu),
        f"{name}.h": _header(program, name, lowering.cpu).encode(),
        f"{name}.c": _source(program, name, host, places).encode(),
        **{shared: (files("xla_emitters.runtime.ral") / "c" / shared).read_bytes() for shared in ("ral.h", "ral.c")},
    }
    return made | ({f"{name}.bin": data} if places else {})


def _refuse_type(what: str, element: str, dimensions: int) -> None:
    if element not in C_TYPES:
        raise Unsupported(f"{what} is of {element}, for which there is no type in C here", stage=STAGE)
    if dimensions > MOST_DIMENSIONS:
        raise Unsupported(f"{what} has {dimensions} dimensions: C programs take {MOST_DIMENSIONS} at most", stage=STAGE)


def _refuse_calls(program: Program, host: LlvmHost) -> None:
    """raises Unsupported for functions that ral.c does not have, at the first op that calls one"""
    missing, first = list[str](), None
    for text in host.asked:
        name = RalName.parse(text)
        op = host.ops.get(name.call)
        types = [code.partition("d")[2] for code in name.ins if code[0] == "m"]
        if name.call == "ral_conv":
            del types[2]  # padding
        is_sum = name.call in ("ral_gemm", "ral_conv") and SUMMED.issuperset(types)
        is_product = op is not None and op.HLO is DotOp and SUMMED.issuperset(types)
        if op is not None and op.HLO is not ShapeAssertionOp and not is_product:
            target = target_of(op.as_hlo())
            missing.append(f"{repr(target) if target else op.name} ({op.instruction_name})")
            first = first or op
        elif op is None and not is_sum and name.call not in OWN:
            missing.append(text)
    if missing:
        more = f" and {len(missing) - 3} more" if len(missing) > 3 else ""
        why = f"{program.name} needs what the runtime in C has not: {', '.join(missing[:3])}{more}"
        advice = "products and convolutions of integers, floats and complex numbers are there; run takes the program as it is"
        raise refusal(STAGE, first, why, advice) if first else Unsupported(why, stage=STAGE, help=advice)


def _kernels(name: str, host: LlvmHost) -> dict[str, str]:
    """The name of a kernel -> that of its function for a linker."""
    return {kernel: f"{name}_kernel_{number}" for number, kernel in enumerate(host.lowering.parameters)}


# ------------------------------------------------------------------------------------------------------------- constants


@dataclass(frozen=True)
class Stored:
    """A constant in the file: its offset, its bytes there, its bytes in all, and their hash."""

    offset: int
    stored: int
    bytes: int
    hash: int


def _constants(host: LlvmHost) -> tuple[bytes, list[Stored]]:
    """The contents of the constants' file, and each constant's location in it, by number."""
    source = constants_of(host.source)
    reader, data, places = StoredConstants(source), bytearray(), dict[int, Stored]()
    for number, (name, element) in host.constants.items():
        held = dtype(element).numpy
        array = reader.get(name, held)
        one = array.reshape(-1)[:1].tobytes()
        whole = array.tobytes()
        kept = one if whole == one * array.size else whole
        data += bytes(-len(data) % 64)
        places[number] = Stored(len(data), len(kept), len(whole), _hash(kept))
        data += kept
    none = Stored(0, 0, 0, _hash(b""))
    return bytes(data), [places.get(number, none) for number in range(max(host.constants, default=-1) + 1)]


def _hash(data: bytes) -> int:
    """FNV-1a, the same as in ral.c."""
    found = 0xCBF29CE484222325
    for byte in data:
        found = (found ^ byte) * 0x100000001B3 & (1 << 64) - 1
    return found


# ---------------------------------------------------------------------------------------------------------------- header


def _header(program: Program, name: str, cpu: CpuTarget) -> str:
    guards = lowerings_of(program).sizes.guards
    upper = name.upper()
    arguments = [
        f"   inputs[{number}]  {parameter.name or f'p{number}'}: {element}[{', '.join(map(str, parameter.shape))}], {C_TYPES[element]}"
        for number, (element, parameter) in enumerate(zip(guards.types, guards.parameters, strict=True))
    ]
    results = [
        f"   outputs[{number}] {spec.dtype}[{', '.join('?' if size is None else str(size) for size in spec.dims)}], {C_TYPES[spec.dtype]}"
        for number, spec in enumerate(program.results)
    ]
    return "\n".join(
        [
            f"/* {_comment(program.name)}, machine code for a CPU with the instructions of {cpu.name}",
            *map(_comment, (*arguments, *results)),
            "*/",
            f"#ifndef {upper}_H",
            f"#define {upper}_H",
            '#include "ral.h"',
            "",
            f"enum {{ {upper}_INPUTS = {len(guards.types)}, {upper}_OUTPUTS = {len(program.results)} }};",
            "",
            f"/* The program, with the constants of {name}.bin; NULL, with a message, where they cannot be read. ral_close frees it. */",
            f"ral_program *{name}_open(const char *constants, char *message, size_t size);",
            "/* Runs it, from any thread. Returns 0, or 1 with a message: an argument does not fit, or memory is out. */",
            f"int {name}_run(const ral_program *program, const ral_array *inputs, ral_array *outputs, char *message, size_t size);",
            "/* Frees a result. */",
            f"void {name}_free(ral_array *output);",
            "",
            "#endif",
            "",
        ]
    )


def _comment(text: str) -> str:
    return text.replace("*/", "* /").replace("/*", "/ *")


# ---------------------------------------------------------------------------------------------------------------- source


def _source(program: Program, name: str, host: LlvmHost, places: Sequence[Stored]) -> str:
    guards = lowerings_of(program).sizes.guards
    ranks = [len(parameter.shape) for parameter in guards.parameters]
    sizes = [dtype(element).numpy.itemsize for element in guards.types]
    texts = [
        _literal(text)
        for asked, op in host.ops.items()
        if (said := _text(op.as_hlo())) is not None
        for text in (asked, said)
    ]
    owned = [int(number in host.donated) for number in range(len(ranks))]
    kernels = _kernels(name, host)
    launched = [f"{{{_literal(kernel)}, {function}}}" for kernel, function in kernels.items()]
    rows = [f"{{{place.offset}, {place.stored}, {place.bytes}, {place.hash}u}}" for place in places]
    count = f"{len(ranks)}, {len(program.results)}, {len(places)}, {len(texts)}, {len(kernels)}"
    return "\n".join(
        [
            f'#include "{name}.h"',
            "",
            *(
                f"void {each};"
                for each in (f"{name}_main(ral_context *)", *(f"{k}(int64_t *)" for k in kernels.values()))
            ),
            "",
            f"static const int ranks[] = {{{_list(ranks)}}}, bytes[] = {{{_list(sizes)}}}, owned[] = {{{_list(owned)}}};",
            f"static const ral_kernel kernels[] = {{{_list(launched) or '{0}'}}};",
            f"static const ral_constant constants[] = {{{_list(rows) or '{0}'}}};",
            f"static const char *const texts[] = {{{_list(texts) or '0'}}};",
            "",
            "static int check(const ral_array *x, ral_error *error) {",
            "  (void)x; (void)error;",
            *(f"  {line}" for line in _checks(program)),
            "  return 0;",
            "}",
            "",
            f"static const ral_description description = {{{_literal(name)}, {count}, ranks, bytes, owned, kernels,",
            f"                                            constants, texts, check, {name}_main}};",
            "",
            f"ral_program *{name}_open(const char *path, char *message, size_t size) {{",
            "  return ral_open(&description, path, message, size);",
            "}",
            "",
            f"int {name}_run(const ral_program *program, const ral_array *inputs, ral_array *outputs, char *message, size_t size) {{",
            "  return ral_run(program, inputs, outputs, message, size);",
            "}",
            "",
            f"void {name}_free(ral_array *output) {{",
            "  ral_free(output->data);",
            "  output->data = NULL;",
            "}",
            "",
        ]
    )


def _text(op: HloOp) -> str | None:
    """The text that ral.c gets for an op: an assertion's message; of a product a letter per dimension, A B ... batch, a b ... summed."""
    if isinstance(op, ShapeAssertionOp):
        return op.message.data
    if not isinstance(op, DotOp):
        return None
    pairing, found = op.pairing, list[str]()
    for operand, batch, summed in zip(
        op.operands,
        (pairing.lhs_batch, pairing.rhs_batch),
        (pairing.lhs_contracting, pairing.rhs_contracting),
        strict=True,
    ):
        letters = ["-"] * len(dims_of(operand))
        for first, dims in (("A", batch), ("a", summed)):
            for number, dim in enumerate(dims):
                letters[dim] = chr(ord(first) + number)
        found.append("".join(letters))
    return ",".join(found)


def _list(items: Sequence[object]) -> str:
    return ", ".join(map(str, items))


def _literal(text: str) -> str:
    """A C string literal. A JSON literal is one, except for escapes of non-ASCII characters, and trigraphs."""
    return json.dumps(text, ensure_ascii=False).replace("??", '?""?')


def _checks(program: Program) -> Iterator[str]:
    """What Python checks before a run (`sizes.ProgramGuards`), as C statements."""
    guards = lowerings_of(program).sizes.guards
    names = dict[str, str]()
    for number, parameter in enumerate(guards.parameters):
        for axis in range(len(parameter.shape)):
            label = f"argument {number} (p{number}): axis {axis} is {{0}}"
            place = f"x[{number}].sizes[{axis}]"
            yield _unless(f"{place} >= 0 && {place} < INT64_C(1) << 40", f"{label}, which is not a size", [place])
    for symbol, (argument, axis) in guards.own.items():
        names[symbol] = f"x[{argument}].sizes[{axis}]"
    for guard in guards.said:
        yield from _guard(guard, names)
    found = dict[str, str]()
    for solved in guards.plan.solved:
        place = f"x[{solved.axis.argument}].sizes[{solved.axis.axis}]"
        yield from _divisors([solved.rest], found)
        rest = f"({place} - ({_size(solved.rest, found)}))"
        wanted = guards.parameters[solved.axis.argument].shape[solved.axis.axis]
        label = f"argument {solved.axis.argument} (p{solved.axis.argument}): axis {solved.axis.axis} is {{0}}"
        if solved.coefficient != 1:
            why = f"{label}, but {wanted} is that for no integer {solved.symbol}"
            yield _unless(f"ral_mod({rest}, {solved.coefficient}) == 0", why, [place])
        found[solved.symbol] = f"s_{solved.symbol}"
        yield f"const ral_wide s_{solved.symbol} = ral_floordiv({rest}, {solved.coefficient});"
        yield f"(void)s_{solved.symbol};"
        for fact in solved.own:
            yield from _divisors([fact.left, fact.right], found)
            yield _unless(_fact(fact, found), f"{label}, but {fact}", [place])
    for argument, axis in guards.plan.checked:
        wanted, place = guards.parameters[argument].shape[axis], f"x[{argument}].sizes[{axis}]"
        value = f"({_size(wanted, found)})"
        said = f"but {wanted} is {{1}}" if wanted.value is None else "expected {1}"
        yield from _divisors([wanted], found)
        yield _unless(
            f"{place} == {value}", f"argument {argument} (p{argument}): axis {axis} is {{0}}, {said}", [place, value]
        )
    for fact in guards.plan.others:
        yield from _divisors([fact.left, fact.right], found)
        yield _unless(_fact(fact, found), f"{fact} does not hold, wanted by {fact.source}", [])
    for guard in guards.computed:
        yield from _guard(guard, found)


def _guard(guard: Guard, names: Mapping[str, str]) -> Iterator[str]:
    shown = [_size(size, names) for size in guard.shown]
    yield from _divisors([guard.left, guard.right], names)
    yield _unless(
        _fact(guard.fact, names), guard.message or f"{guard} does not hold", shown, _divisors(guard.shown, names)
    )


def _unless(condition: str, message: str, values: Sequence[str], before: Iterable[str] = ()) -> str:
    """C code that ends the check with a message if a condition does not hold; `before` are statements that the values need."""
    given = f"(int64_t[]){{{', '.join(f'(int64_t)({value})' for value in values)}}}" if values else "0"
    failed = f"return ral_fail(error, {_literal(message)}, {len(values)}, {given});"
    return f"if (!({condition})) {' '.join(['{', *before, failed, '}']) if before else failed}"


def _divisors(sizes: Iterable[Size], names: Mapping[str, str]) -> list[str]:
    """C statements that check that no divisor in these sizes is 0."""
    found = list[str]()
    for size in sizes:
        for atom in [atom for factors, _ in size.terms for atom, _ in factors]:
            found += _divisors(atom.operands, names)
            if atom.kind in (FLOORDIV, MOD) and not atom.rhs.value:
                found.append(_unless(f"({_size(atom.rhs, names)}) != 0", f"division by zero in {atom}", []))
    return list(dict.fromkeys(found))


def _fact(fact: Fact, names: Mapping[str, str]) -> str:
    left, right = _size(fact.left, names), _size(fact.right, names)
    return f"({left}) {'==' if fact.relation is EQUAL else fact.relation.value} ({right})"


def _size(size: Size, names: Mapping[str, str]) -> str:
    """A size as a C expression in 128 bits. Its divisors must have been checked (`_divisors`)."""
    terms = list[str]()
    for factors, coefficient in size.terms:
        parts = [_atom(atom, names) for atom, power in factors for _ in range(power)]
        terms.append("(ral_wide)" + " * ".join([*([str(coefficient)] * (coefficient != 1 or not parts)), *parts]))
    return " + ".join(terms) or "(ral_wide)0"


def _atom(atom: Size, names: Mapping[str, str]) -> str:
    if atom.kind is VARIABLE:
        return names[atom.name]
    return f"ral_{atom.kind.name.lower()}({_size(atom.lhs, names)}, {_size(atom.rhs, names)})"


def c_name(text: str) -> str:
    """A C identifier from the name of a file, other than the runtime's. raises DataError where no character of the name can be used"""
    name = re.sub(r"\W+", "_", text, flags=re.ASCII).strip("_")
    if not name:
        raise DataError(f"'{text}' has no letter that a name in C may have", stage=STAGE)
    return f"p_{name}" if name[0].isdigit() or name.lower() == "ral" else name
