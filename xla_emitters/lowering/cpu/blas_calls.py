"""LLVM IR of loops that call BLAS: one call of Python computes all matrices of a batch.

    void @sgemm.step(ptr %words, i64 %first, i64 %last)    for each row of the table from `first` to `last`:
                                                           cblas_sgemm(order, forms, m, n, k, 1, left, lda, right, ldb, 0, result, ldc)
    words    function, left, right, result, table, then FORMS: numbers that are the same in all calls
    table    for each call 5 numbers: bytes from left, right and result, and two extents

A call from Python takes longer than BLAS takes for a small matrix, and takes Python's lock before and after, for which threads wait.
Source: the BLAS standard, C interface.
"""

from __future__ import annotations

from xla_emitters.lowering.cpu.cpu_steps import ENTRY

FUNCTION, LEFT, RIGHT, RESULT, TABLE, FORMS = range(6)
"""The places of words."""
ROW = 5
"""Numbers of a call in the table."""
ROW_MAJOR = 101
_SCALARS = {"s": "float", "d": "double"}
_ARGUMENTS = {
    "gemm": "i32 {order}, i32 %f0, i32 %f1, i32 %e0, i32 %e1, i32 %f2, {one}, ptr %p0, i32 %f3, ptr %p1, i32 %f4, {zero}, ptr %p2, i32 %f5",
    "gemv": "i32 {order}, i32 %f0, i32 %e0, i32 %e1, {one}, ptr %p0, i32 %f1, ptr %p1, i32 %f2, {zero}, ptr %p2, i32 %f3",
}
"""%f: the numbers behind FORMS, %e: the extents of the call, %p: its addresses."""
_FORMS = {"gemm": 6, "gemv": 4}


def blas_calls(letter: str) -> str:
    """The IR of the loops for one element type, by `gemm` and by `gemv`.

    letter  BLAS's of the type: s, d, c, z; the last two take the factors 1 and 0 by their addresses
    """
    if letter in _SCALARS:
        one, zero, declared = f"{_SCALARS[letter]} 1.0", f"{_SCALARS[letter]} 0.0", list[str]()
    else:
        part = _SCALARS[{"c": "s", "z": "d"}[letter]]
        one, zero = f"ptr @{letter}.one", f"ptr @{letter}.zero"
        declared = [
            f"@{letter}.{word} = private constant [2 x {part}] [{part} {value}, {part} 0.0]"
            for word, value in (("one", 1.0), ("zero", 0.0))
        ]
    return "\n".join([*declared, *(_loop(letter, name, one, zero) for name in _ARGUMENTS)])


def _loop(letter: str, name: str, one: str, zero: str) -> str:
    forms = range(_FORMS[name])
    held = [f"  {_loaded('ptr', f'%w{word}', '%words', str(word))}" for word in range(FORMS)]
    held += [f"  {_loaded('i32', f'%f{number}', '%words', str(FORMS + number))}" for number in forms]
    each = [f"  {_loaded('i64', f'%o{number}', '%row', str(number))}" for number in range(3)]
    each += [f"  %p{number} = getelementptr i8, ptr %w{LEFT + number}, i64 %o{number}" for number in range(3)]
    each += [f"  {_loaded('i32', f'%e{number}', '%row', str(3 + number))}" for number in range(2)]
    return "\n".join(
        (
            f'define void @"{letter}{name}{ENTRY}"(ptr %words, i64 %first, i64 %last) {{',
            "entry:",
            *held,
            "  br label %head",
            "head:",
            "  %i = phi i64 [ %first, %entry ], [ %next, %body ]",
            "  %more = icmp slt i64 %i, %last",
            "  br i1 %more, label %body, label %end",
            "body:",
            f"  %start = mul i64 %i, {ROW}",
            f"  %row = getelementptr i64, ptr %w{TABLE}, i64 %start",
            *each,
            f"  call void %w{FUNCTION}({_ARGUMENTS[name].format(order=ROW_MAJOR, one=one, zero=zero)})",
            "  %next = add i64 %i, 1",
            "  br label %head",
            "end:",
            "  ret void",
            "}",
            "",
        )
    )


def _loaded(ir_type: str, name: str, base: str, place: str) -> str:
    """Loads one of the numbers of 64 bits at `base`."""
    return f"{name}.at = getelementptr i64, ptr {base}, i64 {place}\n  {name} = load {ir_type}, ptr {name}.at"
