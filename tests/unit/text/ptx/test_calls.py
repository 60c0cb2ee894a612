"""Calls of functions: the memory of their variables, and calls by address."""

import numpy as np
import pytest
from unit.text.ptx.one_instruction import HEAD

from xla_emitters.errors import ExecutionError, XlaEmittersError
from xla_emitters.explore.check.any_ptx import PtxKernel, launch_of
from xla_emitters.runtime.simt.sanitizer import Sanitizer

SUM_OF_TWO = """.func (.param .b32 total) sum(.param .b32 n) {
  .local .align 4 .b8 depot[8]; .reg .b64 %SP, %SPL; .reg .b32 %n, %a, %b, %first; .reg .pred %p;
  mov.u64 %SPL, depot; cvta.local.u64 %SP, %SPL; ld.param.u32 %n, [n];
  ld.local.u32 %first, [%SPL]; st.u32 [%SP], %n; st.local.u32 [%SPL+4], 7;
  MORE
  ld.u32 %a, [%SP]; ld.u32 %b, [%SP+4]; add.u32 %a, %a, %b; st.param.b32 [total], %a; ret;
}
"""
RECURSION = """setp.eq.u32 %p, %n, 0; @%p bra LAST; sub.u32 %b, %n, 1;
  { .param .b32 of; st.param.b32 [of], %b; .param .b32 got; call (got), sum, (of); ld.param.u32 %b, [got]; }
  add.u32 %b, %b, %n; st.u32 [%SP], %b; LAST:"""


def after(functions: str, body: str, threads: int = 32) -> np.ndarray:
    """What each thread leaves in %s, from 0."""
    start = """.visible .entry k(.param .u64 p0) {
      .reg .b64 %x, %a; .reg .b32 %t, %s, %i, %n, %v; .reg .pred %p; .param .b32 of; .param .b32 got;
      ld.param.u64 %x, [p0]; mov.u32 %t, %tid.x; mad.wide.u32 %a, %t, 4, %x; mov.u32 %s, 0; mov.u32 %i, 0;"""
    text = f"{HEAD}{functions}{start}{body} st.global.u32 [%a], %s; ret; }}"
    kernel = PtxKernel.read(text, "k.ptx")
    return kernel.run([np.zeros(threads, np.int32)], launch_of(f"1x{threads}")[0], watchers=[Sanitizer()])[0]


def test_a_function_with_a_stack_may_be_called_any_number_of_times() -> None:
    """As many as 300 calls had 300 stacks, whose addresses do not fit into 32 bits. Half the threads call it once more."""
    body = """LOOP: mad.lo.u32 %n, %t, 1000, %i; st.param.b32 [of], %n; call (got), sum, (of); ld.param.u32 %v, [got];
      add.u32 %s, %s, %v; add.u32 %i, %i, 1; and.b32 %n, %t, 1; add.u32 %n, %n, 300; setp.lt.u32 %p, %i, %n; @%p bra LOOP;"""
    wanted = [sum(1000 * t + i + 7 for i in range(300 + t % 2)) for t in range(32)]
    np.testing.assert_array_equal(after(SUM_OF_TWO.replace("MORE", ""), body), wanted)


def test_each_call_in_a_call_has_a_stack_of_its_own() -> None:
    """sum(n) = n + 7 + sum(n - 1), sum(0) = 7, to different depths."""
    body = "st.param.b32 [of], %t; call (got), sum, (of); ld.param.u32 %s, [got];"
    wanted = [7 * (t + 1) + t * (t + 1) // 2 for t in range(200)]
    np.testing.assert_array_equal(after(SUM_OF_TWO.replace("MORE", RECURSION), body, 200), wanted)


def test_a_stack_begins_with_nothing_of_the_call_before() -> None:
    functions = SUM_OF_TWO.replace("MORE", "st.local.u32 [%SPL+4], 0; st.local.u32 [%SPL], %first;")
    call = "st.param.b32 [of], 5; call (got), sum, (of); ld.param.u32 %s, [got];"
    np.testing.assert_array_equal(after(functions, call + call), after(functions, call))


def test_more_stacks_than_addresses_of_32_bits() -> None:
    body = "add.u32 %t, %t, 900; st.param.b32 [of], %t; call (got), sum, (of); ld.param.u32 %s, [got];"
    with pytest.raises(ExecutionError, match="calls nest too deeply"):
        after(SUM_OF_TWO.replace("MORE", RECURSION), body)


def test_memory_of_a_size_that_each_thread_chooses() -> None:
    """The sum 0 + 4 + 8 ... of as many numbers as the thread's, stored in an array of that size first."""
    next_round = "add.u32 %i, %i, 1; setp.lt.u32 %p, %i, %n; @%p bra"
    body = f""".reg .b64 %size, %array, %at, %saved; stacksave.u64 %saved; add.u32 %n, %t, 1; mul.wide.u32 %size, %n, 4;
      alloca.u64 %array, %size, 16; and.b64 %at, %array, 15; setp.ne.u64 %p, %at, 0; @%p trap;
      STORE: mad.wide.u32 %at, %i, 4, %array; shl.b32 %v, %i, 2; st.local.u32 [%at], %v; {next_round} STORE;
      cvta.local.u64 %array, %array; mov.u32 %i, 0;
      LOAD: mad.wide.u32 %at, %i, 4, %array; ld.u32 %v, [%at]; add.u32 %s, %s, %v; {next_round} LOAD;
      stackrestore.u64 %saved;"""
    np.testing.assert_array_equal(after("", body), [2 * t * (t + 1) for t in range(32)])
    wrong = {"%size, 24": "24 is no alignment", "-4": "allocates a negative number", "4, 16": "writes index 1"}
    for given, message in wrong.items():
        with pytest.raises(XlaEmittersError, match=message):
            after("", body.replace("%size, 16", given))


# ---------------------------------------------------------------------------------------------- by address


def function(name: str, op: str, bits: int = 32) -> str:
    return f""".func (.param .b{bits} r) {name}(.param .b{bits} x) {{
  .reg .b{bits} %x; ld.param.u{bits} %x, [x]; {op} st.param.b{bits} [r], %x; ret; }}
"""


FUNCTIONS = (
    function("plus", "add.u32 %x, %x, 10;")
    + function("square", "mul.lo.u32 %x, %x, %x;")
    + function("minus", "neg.s32 %x, %x;")
    + function("wide", "", 64)
    + """.func leaves(.param .b32 x) { exit; }
.global .align 8 .u64 table[4] = {plus, square, generic(table) + 8, minus};
"""
)
BY_ADDRESS = """PROTOTYPE: .callprototype (.param .b32 _) _ (.param .b32 _);
  call (got), %f, (of), PROTOTYPE; ld.param.u32 %s, [got];"""
WANTED = {"plus": lambda t: t + 10, "square": lambda t: t * t, "minus": lambda t: -t}


def by_address(address: str, call: str = BY_ADDRESS) -> np.ndarray:
    return after(FUNCTIONS, f".reg .b64 %f, %g; {address} st.param.b32 [of], %t; {call}")


@pytest.mark.parametrize("name", WANTED)
def test_a_function_is_called_by_its_address(name: str) -> None:
    np.testing.assert_array_equal(by_address(f"mov.u64 %f, {name};"), [WANTED[name](t) for t in range(32)])
    of_targets = f"TARGETS: .calltargets {name}, minus; call (got), %f, (of), TARGETS; ld.param.u32 %s, [got];"
    np.testing.assert_array_equal(by_address(f"mov.u64 %f, {name};", of_targets), [WANTED[name](t) for t in range(32)])


def test_threads_call_functions_of_a_table_in_memory() -> None:
    """Each calls one of three, by an initial value of a variable; the third value is the address of the second."""
    address = """rem.u32 %n, %t, 4; mul.wide.u32 %g, %n, 8;
      mov.u64 %f, table; cvta.global.u64 %f, %f; add.u64 %g, %g, %f; ld.u64 %f, [%g];
      setp.eq.u32 %p, %n, 2; @%p ld.u64 %f, [%f];"""
    of = ["plus", "square", "square", "minus"]
    np.testing.assert_array_equal(by_address(address), [WANTED[of[t % 4]](t) for t in range(32)])


def test_values_of_several_lanes_are_those_of_their_functions_in_a_branch() -> None:
    """Threads that do not call keep their value."""
    address = "mov.u64 %f, plus; mov.u64 %g, minus; setp.gt.u32 %p, %t, 20; selp.b64 %f, %f, %g, %p; mov.u32 %s, 5;"
    guard = "and.b32 %n, %t, 1; setp.eq.u32 %p, %n, 0; @%p bra OVER;"
    found = by_address(address, f"{guard} {BY_ADDRESS} OVER:")
    np.testing.assert_array_equal(found, [5 if t % 2 == 0 else t + 10 if t > 20 else -t for t in range(32)])


def test_a_cycle_of_addresses_in_initial_values() -> None:
    functions = ".global .u64 one[2] = {7, two}; .global .u64 two[2] = {8, generic(one)};"
    body = (
        """.reg .b64 %f; mov.u64 %f, one; ld.global.u64 %f, [%f+8]; ld.global.u64 %f, [%f+8]; ld.global.u32 %s, [%f];"""
    )
    np.testing.assert_array_equal(after(functions, body), [7] * 32)


@pytest.mark.parametrize(
    ("address", "call", "message"),
    [
        ("mov.u64 %f, 64;", BY_ADDRESS, "calls address 0x40, where no function begins"),
        ("mov.u64 %f, plus; add.u64 %f, %f, 4;", BY_ADDRESS, "where no function begins"),
        ("mov.u64 %f, wide;", BY_ADDRESS, r"calls @wide, which is .*i64 \(i64\).*, as .*i32 \(i32\)"),
        ("mov.u64 %f, leaves;", BY_ADDRESS, "the address of 'leaves', which may end the thread, is not supported"),
        ("mov.u64 %f, k;", BY_ADDRESS, "the address of the kernel 'k' is not supported"),
        ("mov.u64 %f, plus;", "call (got), %f, (of), MISSING;", "ends in the name of a .callprototype"),
        ("mov.u64 %f, missing;", BY_ADDRESS, "'missing' is not declared"),
        ("mov.u64 %f, plus; ld.u32 %s, [%f];", "", "belongs to no buffer"),
    ],
)
def test_wrong_calls_of_addresses(address: str, call: str, message: str) -> None:
    with pytest.raises(XlaEmittersError, match=message):
        by_address(address, call)


def test_addresses_as_initial_values_are_of_64_bits() -> None:
    for declared in (".global .u32 x = table;", ".global .f64 x = table;"):
        with pytest.raises(XlaEmittersError, match=r"initialised with an address; .u64 and .b64 are supported"):
            after(FUNCTIONS + declared, "ld.global.u32 %s, [x];")
    with pytest.raises(XlaEmittersError, match="'missing' is not declared"):
        after(".global .u64 x = missing;", "ld.global.u32 %s, [x];")
