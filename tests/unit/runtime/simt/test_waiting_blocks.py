"""Blocks that wait for earlier ones cost what the others do, and those that wait for later ones all run at once."""

from typing import Any

import numpy as np
import pytest
from unit.text.ptx.one_instruction import HEAD

from xla_emitters.errors import ExecutionError
from xla_emitters.explore.check.any_ptx import PtxKernel, launch_of
from xla_emitters.runtime.simt.access_counts import AccessCounter
from xla_emitters.runtime.simt.memory import Access, Memory, Watcher
from xla_emitters.runtime.simt.sanitizer import Sanitizer

Array = np.ndarray[Any, Any]
START = """.visible .entry k(.param .u64 p0, .param .u64 p1) {
  .reg .b64 %x, %f, %a, %b; .reg .b32 %t, %c, %n, %v, %w, %i; .reg .pred %p, %q;
  ld.param.u64 %x, [p0]; ld.param.u64 %f, [p1];
  mov.u32 %t, %tid.x; mov.u32 %c, %ctaid.x; mov.u32 %n, %nctaid.x; setp.eq.u32 %p, %t, 0;
  mad.wide.u32 %a, %c, 4, %x; mad.wide.u32 %b, %c, 4, %f;
"""
CHAIN = """
  @!%p bra E;
W: ld.acquire.gpu.global.u32 %v, [%b]; setp.eq.u32 %q, %v, 0; @%q bra W;
  ld.global.u32 %w, [%a]; add.u32 %v, %v, %w; st.global.u32 [%a], %v; st.release.gpu.global.u32 [%b+4], %v;
E: ret; }"""
GRID = """
  @%p ld.global.u32 %v, [%a]; add.u32 %v, %v, 100; @%p st.global.u32 [%a], %v; COUNT
  @!%p bra B; membar.gl; atom.global.add.u32 %w, [%f], 1;
W: MORE ld.volatile.global.u32 %w, [%f]; setp.lt.u32 %q, %w, %n; @%q bra W;
B: bar.sync 0; add.u32 %i, %c, 1; setp.eq.u32 %q, %i, %n; selp.u32 %i, 0, %i, %q; mad.wide.u32 %b, %i, 4, %x;
  @%p ld.global.u32 %v, [%b]; mad.wide.u32 %b, %c, 4, %f; @%p st.global.u32 [%b+4], %v;
  ret; }"""


def run(body: str, blocks: int, *watchers: Watcher) -> list[Array]:
    launch, _, _ = launch_of(f"{blocks}x128")
    arrays = [np.arange(blocks, dtype=np.int32), np.zeros(blocks + 1, np.int32)]
    arrays[1][0] = int(body is CHAIN)
    found = PtxKernel.read(HEAD + START + body, "k.ptx").run(arrays, launch, watchers=watchers)
    return [found[0], found[1]]


class Work(Watcher):
    """The threads of the chunks whose accesses were seen."""

    done = 0

    def access(self, memory: Memory, access: Access) -> None:
        self.done += len(memory.blocks) * memory.launch.threads


def test_a_chain_of_blocks_costs_a_straight_line() -> None:
    short, long = Work(), Work()
    for blocks, work in ((80, short), (320, long)):
        found = run(CHAIN, blocks, work)
        np.testing.assert_array_equal(found[0], 1 + np.arange(blocks).cumsum())
    assert long.done < 5 * short.done


@pytest.mark.parametrize("more", ["", "add.u32 %i, %i, 1;"], ids=["waits", "counts its rounds"])
def test_a_barrier_of_the_whole_grid(more: str) -> None:
    """What has run before the launch begins anew leaves nothing behind: 12,800 threads are more than wait at first."""
    counted = AccessCounter()
    body = GRID.replace("COUNT", "mov.u32 %i, 0;").replace("MORE", more)
    found = run(body, 100, Sanitizer(), counted)
    np.testing.assert_array_equal(found[0], np.arange(100) + 100)
    np.testing.assert_array_equal(found[1][1:], np.roll(found[0], -1))
    first = next(count for count in counted.counts() if count.memory == "argument 0")
    assert first.requests == 100


def test_a_fault_is_found_in_the_launch_that_began_anew() -> None:
    body = GRID.replace("COUNT", "").replace("MORE", "").replace("membar.gl;", "")
    with pytest.raises(ExecutionError, match="a race"):
        run(body, 100, Sanitizer())
