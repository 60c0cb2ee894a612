"""What runs the loops of a host program as machine code: an interpreter of rows of numbers, in LLVM IR.

define i64 @interpreter.step(ptr %code, i64 %row, ptr %slots, ptr %numbers, ptr %fuel)
    runs rows from one on, and returns the row at which it stopped: END, or one that Python deals with before it goes on there

    row: op  a  b  c  result           x = numbers[a], y = numbers[b], z = numbers[c]
    CALL     code, words, first, last  calls code, as a row of `cpu_steps.CHAIN`
    POINT    slot, address             the address of a slot's memory, to a word of a launch
    TELL     number, address           a number, to a word of a launch
    HOLD     slot, result              a slot gets the memory of another one
    DROP     result                    a slot gets none
    TAKE     pool, count, result       a slot gets the first memory of a pool (how many, their addresses) that none of `count` slots has;
                                       stops where there is none
    LOAD.s8  slot, number, result      a number from memory, at an offset in bytes
    STORE.8  slot, number, value       the reverse
    JUMP     row
    UNLESS   number, row               jumps where the number is 0
    TURN     trips, wake               counts an iteration; stops where `trips` is `wake`, and where no fuel is left: each takes one
    add ...  a, b, c, result           FUNCTIONS of `program/steps`, in 64 bits; divisions stop where y is 0
    wrap.s8  a, result                 x in the range of a type
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from xla_emitters.lowering.cpu.cpu_steps import ENTRY

INTERPRETER = "interpreter"
"""The name of the function."""
ROW = 5
"""Numbers of a row."""

_REST_OF_ROW = ("a", "b", "c", "result")
TESTS = {"eq": "eq", "ne": "ne", "lt": "slt", "le": "sle", "gt": "sgt", "ge": "sge"}
"""Those of FUNCTIONS whose value is a truth value -> the comparison of LLVM."""
_PLAIN = {"add": "add", "subtract": "sub", "multiply": "mul", "and": "and", "or": "or", "xor": "xor"}
_TYPES = {f"{letter}{bits}": (f"{kind}ext", bits) for bits in (8, 16, 32) for letter, kind in (("s", "s"), ("u", "z"))}

# Op -> its code, from x and y (z), which ends with %found; `quotient` and `rest` divide as HLO does.
_COMPUTE: dict[str, str] = {
    "copy": "  %found = add i64 %x, 0",
    "minimum": "  %holds = icmp slt i64 %y, %x\n  %found = select i1 %holds, i64 %y, i64 %x",
    "maximum": "  %holds = icmp sgt i64 %y, %x\n  %found = select i1 %holds, i64 %y, i64 %x",
    "select": "  %holds = icmp ne i64 %x, 0\n  %found = select i1 %holds, i64 %y, i64 %z",
    **{name: f"  %found = {op} i64 %x, %y" for name, op in _PLAIN.items()},
    **{name: f"  %holds = icmp {test} i64 %x, %y\n  %found = zext i1 %holds to i64" for name, test in TESTS.items()},
    **{
        f"wrap.{name}": f"  %cut = trunc i64 %x to i{bits}\n  %found = {extend} i{bits} %cut to i64"
        for name, (extend, bits) in _TYPES.items()
    },
    "quotient": """  %none = icmp eq i64 %y, 0
  %minus = icmp eq i64 %y, -1
  %odd = or i1 %none, %minus
  %by = select i1 %odd, i64 1, i64 %y
  %whole = sdiv i64 %x, %by
  %negated = sub i64 0, %x
  %signed = select i1 %minus, i64 %negated, i64 %whole
  %found = select i1 %none, i64 -1, i64 %signed""",
    "rest": """  %none = icmp eq i64 %y, 0
  %minus = icmp eq i64 %y, -1
  %odd = or i1 %none, %minus
  %by = select i1 %odd, i64 1, i64 %y
  %left = srem i64 %x, %by
  %found = select i1 %none, i64 %x, i64 %left""",
}
# The quotient rounded towards zero, q, the rest r, and whether the exact one is less.
_FLOOR = """  %minus = icmp eq i64 %y, -1
  %by = select i1 %minus, i64 1, i64 %y
  %whole = sdiv i64 %x, %by
  %r = srem i64 %x, %by
  %reverse = sub i64 0, %x
  %q = select i1 %minus, i64 %reverse, i64 %whole
  %is.whole = icmp eq i64 %r, 0
  %signs = xor i64 %r, %y
  %differ = icmp slt i64 %signs, 0
  %not.whole = xor i1 %is.whole, true
  %is.less = and i1 %not.whole, %differ
"""
_DIVIDE = {
    "floordiv": _FLOOR + "  %down = sext i1 %is.less to i64\n  %found = add i64 %q, %down",
    "ceildiv": _FLOOR
    + "  %is.more = xor i1 %is.less, %not.whole\n  %up = zext i1 %is.more to i64\n  %found = add i64 %q, %up",
    "remainder": _FLOOR + "  %more = select i1 %is.less, i64 %y, i64 0\n  %found = add i64 %r, %more",
}
_LOADS = {**_TYPES, "s64": ("", 64)}
_STORES = (8, 16, 32, 64)


def _at(array: str, index: str, name: str) -> str:
    """The place of an element of `slots` or `numbers`."""
    return f"  %{name} = getelementptr i64, ptr %{array}, i64 %{index}\n"


def _operands(names: str) -> str:
    """x, y and z."""
    found = ""
    for name in names:
        found += _at("numbers", "abc"["xyz".index(name)], f"{name}.at") + f"  %{name} = load i64, ptr %{name}.at\n"
    return found


def _computed(code: str) -> str:
    return _operands("".join(sorted(set(re.findall(r"%([xyz])\b", code))))) + code + "\n" + _RESULT


_RESULT = _at("numbers", "result", "result.at") + "  store i64 %found, ptr %result.at\n  br label %next\n"
_ADDRESS = (
    _at("slots", "a", "slot.at")
    + "  %memory = load ptr, ptr %slot.at\n"
    + _operands("y")
    + "  %element = getelementptr i8, ptr %memory, i64 %y\n"
)


def _load(extend: str, bits: int) -> str:
    if not extend:
        return _ADDRESS + "  %found = load i64, ptr %element, align 1\n" + _RESULT
    held = f"  %held = load i{bits}, ptr %element, align 1\n  %found = {extend} i{bits} %held to i64\n"
    return _ADDRESS + held + _RESULT


def _store(bits: int) -> str:
    value = _at("numbers", "result", "value.at") + "  %value = load i64, ptr %value.at\n"
    if bits < 64:
        value += f"  %cut = trunc i64 %value to i{bits}\n"
    name = "value" if bits == 64 else "cut"
    return _ADDRESS + value + f"  store i{bits} %{name}, ptr %element, align 1\n  br label %next\n"


_CODE: Mapping[str, str] = {
    "END": "  ret i64 %row\n",
    "CALL": """  %code.called = inttoptr i64 %a to ptr
  %words = inttoptr i64 %b to ptr
  %ranged = icmp ne i64 %result, 0
  br i1 %ranged, label %CALL.range, label %CALL.plain
CALL.range:
  call void %code.called(ptr %words, i64 %c, i64 %result)
  br label %next
CALL.plain:
  call void %code.called(ptr %words)
  br label %next
""",
    "POINT": _at("slots", "a", "slot.at")
    + "  %memory = load i64, ptr %slot.at\n  %word = inttoptr i64 %b to ptr\n  store i64 %memory, ptr %word\n  br label %next\n",
    "TELL": _operands("x") + "  %word = inttoptr i64 %b to ptr\n  store i64 %x, ptr %word\n  br label %next\n",
    "HOLD": _at("slots", "a", "slot.at")
    + "  %memory = load i64, ptr %slot.at\n"
    + _at("slots", "result", "to.at")
    + "  store i64 %memory, ptr %to.at\n  br label %next\n",
    "DROP": _at("slots", "result", "to.at") + "  store i64 0, ptr %to.at\n  br label %next\n",
    "TAKE": """  %pool = inttoptr i64 %a to ptr
  %size = load i64, ptr %pool
  br label %TAKE.pool
TAKE.pool:
  %i = phi i64 [ 0, %TAKE ], [ %i.next, %TAKE.taken ]
  %i.next = add i64 %i, 1
  %is.left = icmp slt i64 %i, %size
  br i1 %is.left, label %TAKE.one, label %stop
TAKE.one:
  %one.at = getelementptr i64, ptr %pool, i64 %i.next
  %one = load i64, ptr %one.at
  br label %TAKE.slots
TAKE.slots:
  %j = phi i64 [ 0, %TAKE.one ], [ %j.next, %TAKE.slot ]
  %others = icmp slt i64 %j, %b
  br i1 %others, label %TAKE.slot, label %TAKE.free
TAKE.slot:
  %held.at = getelementptr i64, ptr %slots, i64 %j
  %held = load i64, ptr %held.at
  %j.next = add i64 %j, 1
  %same = icmp eq i64 %held, %one
  br i1 %same, label %TAKE.taken, label %TAKE.slots
TAKE.taken:
  br label %TAKE.pool
TAKE.free:
"""
    + _at("slots", "result", "to.at")
    + "  store i64 %one, ptr %to.at\n  br label %next\n",
    "JUMP": "  br label %jump\n",
    "UNLESS": _operands("x") + "  %is.zero = icmp eq i64 %x, 0\n  br i1 %is.zero, label %jump, label %next\n",
    "TURN": _operands("xy")
    + """  %wakes = icmp eq i64 %x, %y
  br i1 %wakes, label %stop, label %TURN.fuel
TURN.fuel:
  %left = load i64, ptr %fuel
  %empty = icmp sle i64 %left, 0
  br i1 %empty, label %stop, label %TURN.turn
TURN.turn:
  %less = sub i64 %left, 1
  store i64 %less, ptr %fuel
  %trips = add i64 %x, 1
  store i64 %trips, ptr %x.at
  br label %next
""",
    **{f"LOAD.{name}": _load(*kind) for name, kind in _LOADS.items()},
    **{f"STORE.{bits}": _store(bits) for bits in _STORES},
    **{name: _computed(code) for name, code in _COMPUTE.items()},
    **{
        name: _operands("xy")
        + f"  %is.zero = icmp eq i64 %y, 0\n  br i1 %is.zero, label %stop, label %{name}.go\n{name}.go:\n{code}\n"
        + _RESULT
        for name, code in _DIVIDE.items()
    },
}
OPS: Mapping[str, int] = {name: number for number, name in enumerate(_CODE)}
"""Op -> its number in a row."""


_SHARED = ("a", "b", "c", "result", "row", "slots", "numbers", "fuel", "next", "jump", "stop")


def _block(name: str, code: str) -> str:
    """The code of an op, whose values have names of its own; labels in it begin with the name of the op."""

    def own(found: re.Match[str]) -> str:
        is_known = found[1] in (*_SHARED, name) or found[1].startswith(f"{name}.")
        return found[0] if is_known else f"%{name}.v.{found[1]}"

    return f"{name}:\n" + re.sub(r"%([\w.]+)", own, code)


INTERPRETER_IR = (
    f"""
define i64 @"{INTERPRETER}{ENTRY}"(ptr %code, i64 %start, ptr %slots, ptr %numbers, ptr %fuel) {{
entry:
  br label %head
head:
  %row = phi i64 [ %start, %entry ], [ %row.next, %next ], [ %result, %jump ]
  %at = getelementptr [{ROW} x i64], ptr %code, i64 %row
  %op = load i64, ptr %at
"""
    + "".join(
        f"  %at.{name} = getelementptr i64, ptr %at, i64 {place}\n  %{name} = load i64, ptr %at.{name}\n"
        for place, name in enumerate(_REST_OF_ROW, 1)
    )
    + "  switch i64 %op, label %stop [\n"
    + "".join(f"    i64 {number}, label %{name}\n" for name, number in OPS.items())
    + "  ]\n"
    + "".join(_block(name, code) for name, code in _CODE.items())
    + """next:
  %row.next = add i64 %row, 1
  br label %head
jump:
  br label %head
stop:
  ret i64 %row
}
"""
)
"""LLVM IR of the interpreter."""
