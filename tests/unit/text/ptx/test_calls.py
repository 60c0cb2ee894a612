"""Calls of functions: the memory of their variables."""

from __future__ import annotations

import numpy as np
import pytest
from unit.text.ptx.one_instruction import HEAD

from xla_emitters.errors import ExecutionError
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
