"""Instructions and bytes of a launch, against numbers that are counted by hand."""

from __future__ import annotations

import numpy as np
import pytest

from xla_emitters.dialects.context import parse_ir
from xla_emitters.program import Launch
from xla_emitters.runtime.simt.work_counts import count_work

COPY = """
llvm.func @helper(%x: i32) -> i32 {{
  %one = llvm.mlir.constant(1 : i32) : i32
  %y = llvm.add %x, %one : i32
  llvm.return %y : i32
}}
llvm.func @kernel(%p: !llvm.ptr, %q: !llvm.ptr, %n: i32) attributes {{nvvm.kernel}} {{
  %t = nvvm.read.ptx.sreg.tid.x : i32
  %bound = llvm.mlir.constant(5 : i32) : i32
  %inside = llvm.icmp "slt" %t, %bound : i32
  llvm.cond_br %inside, ^then, ^end
^then:
{body}
  %from = llvm.getelementptr %p[%t] : (!llvm.ptr, i32) -> !llvm.ptr, i32
  %v = llvm.load %from : !llvm.ptr -> i32
  %to = llvm.getelementptr %q[%t] : (!llvm.ptr, i32) -> !llvm.ptr, i32
  llvm.store %v, %to : i32, !llvm.ptr
  llvm.br ^end
^end:
  llvm.return
}}
"""


@pytest.mark.parametrize(
    ("body", "added"),
    [
        ("", 0),
        ("%a = llvm.mul %t, %t : i32", 1),
        ("%a = llvm.sdiv %t, %n : i32", 20),
        ("%a = llvm.sdiv %t, %bound : i32", 4),
        ("%eight = llvm.mlir.constant(8 : i32) : i32\n%a = llvm.urem %t, %eight : i32", 1),
        ("%w = llvm.sext %n : i32 to i64\n%a = llvm.udiv %w, %w : i64", 61),
        # The call, and what the function does: an addition and its end.
        ("%a = llvm.call @helper(%t) : (i32) -> i32\n%b = llvm.call @helper(%t) : (i32) -> i32", 6),
    ],
)
def test_threads_that_take_a_branch_execute_it(body: str, added: int) -> None:
    """Eight threads of two blocks: id, compare, branch and end; five of each block: five instructions more, and what is added."""
    arrays = [np.arange(8, dtype=np.int32), np.zeros(8, np.int32)]
    work = count_work(parse_ir(COPY.format(body=body)), Launch((2, 1, 1), (8, 1, 1)), [*arrays, 3])
    assert work.instructions == 16 * 4 + 10 * (5 + added)
    assert work.bytes == 10 * (4 + 4)
    np.testing.assert_array_equal(arrays[1], [0, 1, 2, 3, 4, 0, 0, 0])
