"""Ops on scalar integers and truth values as machine code: steps of plans, as conditions of loops and branches need them.

    @integer.compare.LT.s32.s32.pred(words)       words: the addresses of the operands and of the result

      %x = load i32, ptr %a;  %y = load i32, ptr %b;  %c = icmp slt i32 %x, %y;  store i8 (zext %c), ptr %o

Integers wrap around. A truth value is a byte, 0 or 1.
Source: docs/reference/1 5.2-5.4.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

IR_TYPES = {"pred": "i1", "s32": "i32", "u32": "i32", "s64": "i64", "u64": "i64"}
COMPARISONS = {"EQ": "eq", "NE": "ne", "LT": "lt", "LE": "le", "GT": "gt", "GE": "ge"}
BINARY = {"add": "add", "and": "and", "multiply": "mul", "or": "or", "subtract": "sub"}


def integer_step(opcode: str, types: Sequence[str], direction: str) -> tuple[str, str]:
    """The name of a step, and its LLVM IR.

    types      HLO's names of the element types of the operands and of the result, all in IR_TYPES
    direction  of a comparison, else ""
    """
    name = ".".join(("integer", opcode, *((direction,) if direction else ()), *types))
    return name, "\n".join(
        (f'define void @"{name}"(ptr %words) {{', *_body(opcode, types, direction), "  ret void", "}")
    )


def _body(opcode: str, types: Sequence[str], direction: str) -> Iterator[str]:
    for number, element in enumerate(types):
        yield f"  %at{number} = getelementptr inbounds ptr, ptr %words, i64 {number}"
        yield f"  %p{number} = load ptr, ptr %at{number}"
        if number == len(types) - 1:
            break
        if element == "pred":
            yield f"  %byte{number} = load i8, ptr %p{number}"
            yield f"  %v{number} = icmp ne i8 %byte{number}, 0"
        else:
            yield f"  %v{number} = load {IR_TYPES[element]}, ptr %p{number}"
    yield from _value(opcode, types, direction)
    result = len(types) - 1
    if types[-1] == "pred":
        yield "  %stored = zext i1 %r to i8"
        yield f"  store i8 %stored, ptr %p{result}"
    else:
        yield f"  store {IR_TYPES[types[-1]]} %r, ptr %p{result}"


def _value(opcode: str, types: Sequence[str], direction: str) -> Iterator[str]:
    """Computes %r."""
    t, sign = IR_TYPES[types[0]], "s" if types[0][0] == "s" else "u"
    match opcode:
        case "compare":
            order = COMPARISONS[direction]
            yield f"  %r = icmp {order if order in ('eq', 'ne') else sign + order} {t} %v0, %v1"
        case "convert" if types[1] == "pred":
            yield f"  %r = icmp ne {t} %v0, {'false' if t == 'i1' else 0}"
        case "convert":
            to = IR_TYPES[types[1]]
            cast = "trunc" if (t, to) == ("i64", "i32") else "sext" if sign == "s" else "zext"
            yield f"  %r = {cast} {t} %v0 to {to}" if t != to else f"  %r = add {t} %v0, 0"
        case "not":
            yield f"  %r = xor {t} %v0, {'true' if t == 'i1' else -1}"
        case "select":
            yield f"  %r = select i1 %v0, {IR_TYPES[types[1]]} %v1, {IR_TYPES[types[1]]} %v2"
        case "maximum" | "minimum":
            yield f"  %first = icmp {sign}{'gt' if opcode == 'maximum' else 'lt'} {t} %v0, %v1"
            yield f"  %r = select i1 %first, {t} %v0, {t} %v1"
        case "clamp":
            yield f"  %above = icmp {sign}gt {t} %v1, %v0"
            yield f"  %least = select i1 %above, {t} %v1, {t} %v0"
            yield f"  %below = icmp {sign}lt {t} %least, %v2"
            yield f"  %r = select i1 %below, {t} %least, {t} %v2"
        case _:
            yield f"  %r = {BINARY[opcode]} {t} %v0, %v1"
