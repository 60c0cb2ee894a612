"""Predicated accesses, shared memory and barriers."""

import numpy as np
import pytest
from unit.runtime.simt.kernels import launch

from xla_emitters.dialects.context import parse_ir
from xla_emitters.errors import ExecutionError
from xla_emitters.runtime.simt import execute


def run(body: str, *arrays: np.ndarray, threads: int = 8, blocks: int = 1, **options) -> list[np.ndarray]:
    """Runs a kernel over i32 vectors %in0, %in1 ... and the last one, %out."""
    names = [f"%in{n}" for n in range(len(arrays) - 1)] + ["%out"]
    types = [f"tensor<{array.size}xi32>" for array in arrays]
    arguments = ", ".join(f"{name}: {type}" for name, type in zip(names, types, strict=True))
    module = parse_ir(f"""
func.func @main({arguments}) -> {types[-1]} attributes {{xla.entry, {launch(threads, blocks)}}} {{
  %thread = gpu.thread_id x
  %block = gpu.block_id x
  %width = arith.constant {threads} : index
  %first = arith.muli %block, %width : index
  %lane = arith.addi %first, %thread : index
  %number = arith.index_cast %lane : index to i32
{body}
}}""")
    return execute(module, list(arrays), **options)


GUARDED = """
  %limit = arith.constant {limit} : index
  %condition = arith.cmpi ult, %thread, %limit : index
  %fallback = arith.constant -1 : i32
  %v = xla_gpu.predicated_extract %in0[%lane] if %condition else %fallback : tensor<5xi32>
  %t = xla_gpu.predicated_insert %v into %out[%lane] if %condition : tensor<6xi32>
"""


@pytest.mark.parametrize("limit", [0, 3, 5])
def test_guarded_elements_touch_nothing_where_the_condition_fails(limit):
    """8 threads on 5 and 6 elements: unguarded, the last ones would leave both tensors."""
    source, out = np.arange(10, 15, dtype=np.int32), np.full(6, 99, np.int32)
    run(GUARDED.format(limit=limit) + "return %t : tensor<6xi32>", source, out)
    assert out.tolist() == [*source[:limit], *[99] * (6 - limit)]


def test_a_guarded_element_outside_of_the_tensor_is_an_error():
    with pytest.raises(ExecutionError, match=r"predicated_extract in block 0, thread 5 reads index 5 of argument 0"):
        run(GUARDED.format(limit=6) + "return %t : tensor<6xi32>", np.zeros(5, np.int32), np.zeros(6, np.int32))


def test_the_fallback_is_given_where_the_condition_fails():
    body = GUARDED.format(limit=3).replace(
        "insert %v into %out[%lane] if %condition", "insert %v into %out[%lane] if %true"
    )
    out = np.full(6, 99, np.int32)
    body = "%true = arith.cmpi ult, %thread, %six : index\n" + body
    run("%six = arith.constant 6 : index\n" + body + "return %t : tensor<6xi32>", np.arange(5, dtype=np.int32), out)
    assert out.tolist() == [0, 1, 2, -1, -1, -1]


REVERSED = """
  %shared = xla_gpu.allocate_shared : tensor<8xi32>
  %filled = tensor.insert %number into %shared[%thread] : tensor<8xi32>
  {wait}
  %c7 = arith.constant 7 : index
  %other = arith.subi %c7, %thread : index
  %v = tensor.extract %synced[%other] : tensor<8xi32>
  %t = tensor.insert %v into %out[%lane] : tensor<24xi32>
  return %t : tensor<24xi32>"""


@pytest.mark.parametrize("chunk_blocks", [1, 2, 3])
def test_each_block_has_its_own_shared_memory(chunk_blocks):
    out = np.zeros(24, np.int32)
    body = REVERSED.format(wait="%synced = xla_gpu.sync_threads %filled : tensor<8xi32>")
    run(body, out, blocks=3, chunk_blocks=chunk_blocks)
    assert out.reshape(3, 8)[:, ::-1].reshape(-1).tolist() == list(range(24))


def test_waiting_hands_on_several_tensors_and_needs_whole_blocks():
    wait = """%more = xla_gpu.allocate_shared : tensor<2xf32>
  %synced, %rest = xla_gpu.sync_threads %filled, %more : tensor<8xi32>, tensor<2xf32>"""
    out = np.zeros(24, np.int32)
    run(REVERSED.format(wait=wait), out, blocks=3)
    assert sorted(out) == list(range(24))
    apart = """%c3 = arith.constant 3 : index
  %some = arith.cmpi ult, %thread, %c3 : index
  %synced = scf.if %some -> (tensor<8xi32>) {
    %a = xla_gpu.sync_threads %filled : tensor<8xi32>
    scf.yield %a : tensor<8xi32>
  } else {
    scf.yield %filled : tensor<8xi32>
  }"""
    with pytest.raises(ExecutionError, match="in block 0, thread 3 is not reached with the other threads of the block"):
        run(REVERSED.format(wait=apart), out, blocks=3)


def test_shared_memory_holds_rubbish_at_first():
    out = np.zeros(8, np.int32)
    run(
        """
  %shared = xla_gpu.allocate_shared : tensor<8xi32>
  %v = tensor.extract %shared[%thread] : tensor<8xi32>
  %t = tensor.insert %v into %out[%lane] : tensor<8xi32>
  return %t : tensor<8xi32>""",
        out,
    )
    assert (out.view(np.uint32) == 0xA5A5A5A5).all()


def test_an_allocation_in_a_loop_is_one_allocation():
    """As on the GPU, where it becomes a global: the second round finds what the first left."""
    out = np.zeros(8, np.int32)
    run(
        """
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %t = scf.for %i = %c0 to %c2 step %c1 iter_args(%o = %out) -> (tensor<8xi32>) {
    %shared = xla_gpu.allocate_shared : tensor<8xi32>
    %v = tensor.extract %shared[%thread] : tensor<8xi32>
    %is_first = arith.cmpi eq, %i, %c0 : index
    %w = arith.select %is_first, %number, %v : i32
    %kept = tensor.insert %w into %shared[%thread] : tensor<8xi32>
    %synced = xla_gpu.sync_threads %kept : tensor<8xi32>
    %n = tensor.insert %v into %o[%lane] : tensor<8xi32>
    scf.yield %n : tensor<8xi32>
  }
  return %t : tensor<8xi32>""",
        out,
    )
    assert out.tolist() == list(range(8))


def test_a_tensor_that_was_overwritten_cannot_be_waited_with():
    body = REVERSED.format(
        wait="%again = tensor.insert %number into %filled[%thread] : tensor<8xi32>\n"
        "%synced = xla_gpu.sync_threads %filled : tensor<8xi32>"
    )
    with pytest.raises(ExecutionError, match="from before a later write"):
        run(body, np.zeros(24, np.int32), blocks=3)


def test_kernels_wait_for_nothing_here():
    out = np.zeros(8, np.int32)
    run(
        """
  "xla_gpu.pdl_wait"() : () -> ()
  %t = tensor.insert %number into %out[%lane] : tensor<8xi32>
  "xla_gpu.pdl_launch_dependents"() : () -> ()
  return %t : tensor<8xi32>""",
        out,
    )
    assert out.tolist() == list(range(8))
