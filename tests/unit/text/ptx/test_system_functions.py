"""Memory of the device's heap, by `malloc` and `free` as nvcc, Julia and Numba declare and call them."""

import numpy as np
import pytest
from unit.text.ptx.one_instruction import HEAD

from xla_emitters.errors import ExecutionError, Unsupported
from xla_emitters.explore.check.any_ptx import PtxKernel, launch_of
from xla_emitters.runtime.simt.sanitizer import Sanitizer

DECLARED = """.extern .func (.param .b64 func_retval0) malloc(.param .b64 malloc_param_0);
.extern .func free(.param .b64 free_param_0);
"""
CALL = """{ .param .b64 param0; st.param.b64 [param0+0], %n; .param .b64 retval0;
  call.uni (retval0), malloc, (param0); ld.param.b64 %m, [retval0+0]; }"""
FREE = "{ .param .b64 param0; st.param.b64 [param0+0], %m; call.uni free, (param0); }"
START = """.visible .entry k(.param .u64 p0) {
  .reg .b64 %x, %a, %n, %m, %o; .reg .b32 %t, %v, %w; .reg .pred %p; .shared .align 8 .b64 given[64];
  ld.param.u64 %x, [p0]; mov.u32 %t, %tid.x; mad.wide.u32 %a, %t, 8, %x; mov.u64 %n, BYTES;
"""


def after(body: str, size: int, declared: str = DECLARED) -> np.ndarray:
    text = HEAD + declared + START.replace("BYTES", str(size)) + body + " ret; }"
    kernel = PtxKernel.read(text, "k.ptx")
    return kernel.run([np.zeros(64, np.int64)], launch_of("1x64")[0], watchers=[Sanitizer()])[0]


def test_each_thread_has_memory_of_its_own() -> None:
    body = CALL + "st.u32 [%m+8], %t; ld.u32 %v, [%m+8]; cvt.u64.u32 %o, %v; st.global.u64 [%a], %o;" + FREE
    np.testing.assert_array_equal(after(body, 12), np.arange(64))


def test_another_thread_reads_it_behind_a_barrier() -> None:
    """An object that one thread makes and another reads through its address in shared memory."""
    body = (
        CALL
        + """st.u32 [%m], %t; mad.lo.u32 %w, %t, 8, 0; mov.u32 %v, given; add.u32 %w, %v, %w; st.shared.u64 [%w], %m;
      MEET sub.u32 %w, %w, %v; sub.u32 %w, 504, %w; add.u32 %w, %v, %w; bar.warp.sync -1; ld.shared.u64 %m, [%w]; ld.u32 %v, [%m];
      cvt.u64.u32 %o, %v; st.global.u64 [%a], %o;"""
    )
    np.testing.assert_array_equal(after(body.replace("MEET", "bar.sync 0;"), 16), np.arange(64)[::-1])
    with pytest.raises(ExecutionError, match=r"a race|which no thread wrote"):
        after(body.replace("MEET", ""), 16)


def test_a_heap_that_is_full_gives_null() -> None:
    """8 MiB have room for seven pieces of 1 MiB and 16 bytes: CUDA's default limit."""
    found = after(CALL + "st.global.u64 [%a], %m;", (1 << 20) + 16)
    assert np.count_nonzero(found) == 7
    assert len({*found.tolist()} - {0}) == 7


def test_an_access_behind_the_heap_is_found() -> None:
    body = CALL + "add.u64 %m, %m, 8388608; st.u32 [%m], 1;"
    with pytest.raises(ExecutionError, match=r"__heap_of_device|belongs to no buffer"):
        after(body, 16)


def test_other_functions_of_the_system_are_refused_by_name() -> None:
    declared = DECLARED.replace("malloc(", "cudaMalloc(")
    with pytest.raises(Unsupported, match="a call of 'cudaMalloc', which is defined elsewhere") as found:
        after(CALL.replace("malloc", "cudaMalloc"), 16, declared)
    assert "-lto -ptx" in found.value.render()
