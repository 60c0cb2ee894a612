"""Each kind of fault, planted in a small kernel in the tensor form and in the LLVM form, and its sibling without the fault."""

import re

import numpy as np
import pytest
from unit.runtime.simt.kernels import launch
from unit.runtime.simt.watched_kernels import EXCHANGE, EXCHANGE_LLVM, THREADS, pointers, tensors

from xla_emitters.dialects.context import parse_ir
from xla_emitters.errors import ExecutionError
from xla_emitters.runtime.simt import execute
from xla_emitters.runtime.simt.sanitizer import Sanitizer


def run(text: str, out: int = 128, **options) -> np.ndarray:
    array = np.zeros(out, np.int32)
    execute(parse_ir(text), [array], watchers=[Sanitizer()], **options)
    return array


def fault(text: str, **options) -> ExecutionError:
    """The fault that is found; without a sanitizer the kernel runs to its end."""
    execute(parse_ir(text), [np.zeros(options.get("out", 128), np.int32)])
    with pytest.raises(ExecutionError) as caught:
        run(text, **options)
    return caught.value


def without(text: str, *pieces: str) -> str:
    """`text` less the lines that contain one of the pieces, of which there must be one each."""
    for piece in pieces:
        assert len(re.findall(f".*{re.escape(piece)}.*\n", text)) == 1
        text = re.sub(f".*{re.escape(piece)}.*\n", "", text)
    return text


# ---------------------------------------------------------------------------------------------- shared memory


@pytest.mark.parametrize("text", [EXCHANGE, EXCHANGE_LLVM])
def test_an_exchange_with_its_barrier_is_clean(text):
    assert run(text)[:64].tolist() == list(range(63, -1, -1))


@pytest.mark.parametrize(
    ("text", "barrier", "op", "name", "other"),
    [
        (EXCHANGE, "sync_threads", "tensor.extract", "the shared tensor<64xi32>", "tensor.insert"),
        (EXCHANGE_LLVM, "barrier0", "llvm.load", "@shared", "llvm.store"),
    ],
    ids=["tensors", "llvm"],
)
def test_a_read_before_the_barrier(text, barrier, op, name, other):
    error = fault(without(text, barrier).replace("%full", "%filled"))
    assert error.message == (
        f"{op} in block 0, thread 0 reads bytes 252 to 255 of {name}, which thread 63 of its block wrote: a race"
    )
    assert "from transpose.3 (t.hlo:4:8)" in error.details
    assert f"the other access: {other} from copy.1 (t.hlo:3:8)" in error.details


TWICE = """
  %again = xla_gpu.sync_threads %full : tensor<64xi32>
  %refilled = tensor.insert %w into %again[%t] : tensor<64xi32>
  %done ="""


def test_a_write_behind_a_read_needs_a_barrier_too():
    clean = EXCHANGE.replace("\n  %done =", TWICE)
    run(clean)
    message = fault(without(clean, "%again =").replace("%again", "%full")).message
    assert "tensor.insert in block 0, thread 0 writes bytes 0 to 3" in message
    assert "which thread 63 of its block read: a race" in message


def test_a_write_behind_reads_of_many():
    """All threads read element 0, then one writes it: it may be one that read it itself."""
    clean = EXCHANGE.replace("%full[%reversed]", "%full[%c0]").replace("\n  %done =", TWICE)
    run(clean)
    message = fault(without(clean, "%again =").replace("%again", "%full")).message
    assert "thread 0 writes bytes 0 to 3" in message
    assert "which threads of its block read: a race" in message


ONE_ELEMENT = EXCHANGE.replace("into %empty[%t]", "into %empty[%c1]").replace("%full[%reversed]", "%full[%c1]")
ONE_VALUE = ONE_ELEMENT.replace("insert %v", "insert %same").replace(
    "%empty =", "%same = arith.constant 7 : i32\n%empty ="
)


def test_two_threads_that_write_one_element():
    """The same value too, but in one instruction."""
    where = "in block 0, thread 0 writes bytes 4 to 7 of the shared tensor<64xi32>, which thread"
    assert f"{where} 63 of its block" in fault(ONE_ELEMENT).message
    run(ONE_VALUE)
    again = "%again = tensor.insert %same into %filled[%c1] : tensor<64xi32>\n  %full ="
    text = ONE_VALUE.replace("%full =", again).replace("sync_threads %filled", "sync_threads %again")
    assert f"{where}s of its block wrote: a race" in fault(text).message


def test_shared_memory_of_two_blocks_is_not_one():
    text = EXCHANGE.replace("array<i32: 1, 1, 1>", "array<i32: 2, 1, 1>")
    assert run(text).reshape(2, 64)[:, ::-1].reshape(-1).tolist() == list(range(128))
    assert run(text, chunk_blocks=1).reshape(2, 64)[:, ::-1].reshape(-1).tolist() == list(range(128))


UNWRITTEN = tensors("""
  %empty = xla_gpu.allocate_shared : tensor<65xi32>
  %filled = tensor.insert %v into %empty[%t] : tensor<65xi32>
  %full = xla_gpu.sync_threads %filled : tensor<65xi32>
  %next = arith.addi %t, %c1 : index
  %w = tensor.extract %full[%next] : tensor<65xi32>
  %done = tensor.insert %w into %out[%k] : tensor<128xi32>""")


def test_shared_memory_that_nobody_wrote():
    message = fault(UNWRITTEN).message
    assert message == (
        "tensor.extract in block 0, thread 63 reads bytes 256 to 259 of the shared tensor<65xi32>, which no thread wrote"
    )
    message = fault(without(EXCHANGE_LLVM, "llvm.store %t, %own")).message
    assert message == "llvm.load in block 0, thread 0 reads bytes 252 to 255 of @shared, which no thread wrote"


def test_an_element_that_shares_its_byte_is_written_by_atomics_on_what_nobody_wrote():
    """Its own bits are cleared, then set. An addition would give the rest of the byte away, and so would the old value."""
    clear_and_set = EXCHANGE_LLVM.replace(
        "llvm.store %t, %own : i32, !llvm.ptr",
        "%a = llvm.atomicrmw _and %own, %c0 monotonic : !llvm.ptr, i32\n"
        "  %o = llvm.atomicrmw _or %own, %t monotonic : !llvm.ptr, i32",
    )
    assert run(clear_and_set)[:64].tolist() == list(range(63, -1, -1))
    unwritten = r"llvm.atomicrmw in block 0, thread 0 reads bytes 0 to 3 of @shared, which no thread wrote"
    with pytest.raises(ExecutionError, match=unwritten):
        run(clear_and_set.replace("_and", "add"))
    with pytest.raises(ExecutionError, match=unwritten):
        run(clear_and_set.replace("_or %own, %t", "_or %own, %a"))


def test_what_another_chunk_wrote_is_not_there():
    """Block 1 leaves its shared memory empty; that block 0 filled the same place before does not count."""
    text = EXCHANGE_LLVM.replace("array<i32: 1, 1, 1>", "array<i32: 2, 1, 1>").replace(
        "  llvm.store %t, %own",
        """  %is_first = llvm.icmp "eq" %b, %c0 : i32
  llvm.cond_br %is_first, ^fill, ^join
^fill:
  llvm.store %t, %own""",
    )
    text = text.replace("  nvvm.barrier0", "  llvm.br ^join\n^join:\n  nvvm.barrier0")
    for chunk_blocks in (1, 2):
        with pytest.raises(
            ExecutionError, match=r"block 1, thread 0 reads bytes 252 to 255 of @shared, which no thread"
        ):
            run(text, chunk_blocks=chunk_blocks)


def test_shared_memory_has_an_end():
    with pytest.raises(
        ExecutionError, match="thread 63 reads index 64 of the shared tensor<64xi32>, which has 64 of 4"
    ):
        run(UNWRITTEN.replace("65xi32", "64xi32"))
    beyond = EXCHANGE_LLVM.replace("%shared[%t]", "%shared[%past]").replace(
        "  %own =", "  %past = llvm.add %t, %c1 : i32\n  %own ="
    )
    with pytest.raises(ExecutionError, match="thread 63 writes index 64 of @shared, which has 64 of 4 bytes each"):
        run(beyond)


def test_accesses_of_different_sizes_share_bytes():
    """Each thread writes its word, then two bytes: the upper half of its own word, or of its neighbour's. Thread 0 writes what is there."""
    text = pointers("""
  llvm.store %t, %own : i32, !llvm.ptr
  %bytes = llvm.mul %{whose}, %c4 : i32
  %upper = llvm.add %bytes, %c2 : i32
  %half = llvm.getelementptr %shared[%upper] : (!llvm.ptr, i32) -> !llvm.ptr, i8
  %narrow = llvm.trunc %t : i32 to i16
  llvm.store %narrow, %half : i16, !llvm.ptr""").replace(
        "  %own =",
        """  %c2 = llvm.mlir.constant(2 : i32) : i32
  %c4 = llvm.mlir.constant(4 : i32) : i32
  %neighbour = llvm.xor %t, %c1 : i32
  %own =""",
    )
    run(text.replace("{whose}", "t"))
    message = fault(text.replace("{whose}", "neighbour")).message
    assert "thread 1 writes bytes 2 to 3 of @shared, which thread 0 of its block wrote: a race" in message


def test_a_wide_access_touches_all_its_bytes():
    """Threads write pairs that overlap by one word; the first that is in conflict is named."""
    text = pointers("""
  %pair = llvm.mlir.undef : vector<2xi32>
  %place = llvm.getelementptr %out[%{index}] : (!llvm.ptr, i32) -> !llvm.ptr, i32
  llvm.store %pair, %place {alignment = 4 : i64} : vector<2xi32>, !llvm.ptr""").replace(
        "  %own =", "  %twice = llvm.add %t, %t : i32\n  %own ="
    )
    run(text.replace("{index}", "twice"))
    message = fault(text.replace("{index}", "t")).message
    assert re.search(r"thread \d+ writes bytes 4 to 7 of argument 0, which thread [01] of its block wrote", message)


# ---------------------------------------------------------------------------------------------- global memory


@pytest.mark.parametrize(
    "text",
    [
        tensors("%done = tensor.insert %v into %out[%t] : tensor<128xi32>", blocks=2),
        pointers(
            "%place = llvm.getelementptr %out[%t] : (!llvm.ptr, i32) -> !llvm.ptr, i32\n"
            "llvm.store %t, %place : i32, !llvm.ptr",
            blocks=2,
        ),
    ],
    ids=["tensors", "llvm"],
)
@pytest.mark.parametrize("chunk_blocks", [1, 2])
def test_two_blocks_that_write_one_element(text, chunk_blocks):
    with pytest.raises(ExecutionError, match=r"writes bytes 0 to 3 of argument 0, which thread 0 of block [01] wrote"):
        run(text, chunk_blocks=chunk_blocks)


def test_a_barrier_does_not_order_blocks():
    body = """
  %first_half = tensor.insert %v into %out[%k] : tensor<128xi32>
  %synced = xla_gpu.sync_threads %first_half : tensor<128xi32>
  %w = tensor.extract %synced[{where}] : tensor<128xi32>
  %done = tensor.insert %w into %synced[%k] : tensor<128xi32>"""
    run(tensors(body.format(where="%k"), blocks=2))
    for chunk_blocks in (1, 2):
        with pytest.raises(
            ExecutionError, match=r"reads bytes .* of argument 0, which thread .* of block .* wrote: a race"
        ):
            run(tensors(body.format(where="%t"), blocks=2), chunk_blocks=chunk_blocks)


def test_a_write_to_what_several_blocks_read():
    """Every block reads element 0 of an array that is updated in place, and block 1 writes it."""
    body = """
  %old = tensor.extract %out[%c0] : tensor<128xi32>
  %is_last = arith.cmpi eq, %k, %c127 : index
  %done = scf.if %is_last -> (tensor<128xi32>) {
    %new = tensor.insert %old into %out[%c0] : tensor<128xi32>
    scf.yield %new : tensor<128xi32>
  } else {
    scf.yield %out : tensor<128xi32>
  }"""
    text = tensors(body, blocks=2).replace("  %first =", "  %c127 = arith.constant 127 : index\n  %first =")
    for chunk_blocks in (1, 2):
        with pytest.raises(ExecutionError, match="which threads of several blocks read: a race"):
            run(text, chunk_blocks=chunk_blocks)


def test_arguments_over_one_array_are_one_memory():
    """In-place: what is read through the first argument is written through the second."""
    text = f"""
func.func @main(%in: tensor<128xi32>, %out: tensor<128xi32>) -> tensor<128xi32>
    attributes {{xla.entry, {launch(THREADS, 2)}}} {{
  %t = gpu.thread_id x
  %b = gpu.block_id x
  %c64 = arith.constant {THREADS} : index
  %c127 = arith.constant 127 : index
  %first = arith.muli %b, %c64 : index
  %k = arith.addi %first, %t : index
  %reversed = arith.subi %c127, %k : index
  %v = tensor.extract %in[%where] : tensor<128xi32>
  %done = tensor.insert %v into %out[%k] : tensor<128xi32>
  return %done : tensor<128xi32>
}}"""
    array = np.arange(128, dtype=np.int32)
    execute(parse_ir(text.replace("%where", "%k")), [array, array], watchers=[Sanitizer()])
    reversed_ = parse_ir(text.replace("%where", "%reversed"))
    execute(reversed_, [array, np.zeros_like(array)], watchers=[Sanitizer()])
    with pytest.raises(
        ExecutionError, match="thread 0 writes bytes 0 to 3 of argument 1, which thread 63 of block 1 read"
    ):
        execute(reversed_, [array, array], watchers=[Sanitizer()])


# ---------------------------------------------------------------------------------------------- atomic updates

UPDATE = """
  %done = xla_gpu.atomic_rmw %out[%c0] : tensor<128xi32> {
  ^bb0(%old: i32):
    %new = arith.addi %old, %v : i32
    xla_gpu.yield %new : i32
  }"""


def test_atomic_updates_of_one_element_are_no_race():
    assert run(tensors(UPDATE, blocks=2))[0] == sum(range(128))
    added = "llvm.atomicrmw add %out, %k monotonic : !llvm.ptr, i32"
    assert run(pointers(f"%old = {added}", blocks=2))[0] == sum(range(128))


def test_machine_code_that_adds_to_vectors():
    added = (
        "%x = llvm.sitofp %k : i32 to f32\n"
        '  %old = llvm.inline_asm has_side_effects "atom.global.v2.f32.add {$0, $1}, [$2], {$3, $4};", "=f,=f,l,f,f" '
        "%out, %x, %x : (!llvm.ptr, f32, f32) -> !llvm.struct<(f32, f32)>"
    )
    assert run(pointers(added, blocks=2)).view(np.float32)[:2].tolist() == [sum(range(128))] * 2
    plain = "\n  %second = llvm.getelementptr %out[1] : (!llvm.ptr) -> !llvm.ptr, i32\n  llvm.store %t, %second : i32, !llvm.ptr"
    assert (
        "writes bytes 4 to 7 of argument 0, which threads of its block updated"
        in fault(pointers(added + plain)).message
    )


def test_a_plain_access_beside_atomic_updates():
    read = UPDATE + "\n  %seen = tensor.extract %done[%c0] : tensor<128xi32>"
    message = fault(tensors(read)).message
    assert "reads bytes 0 to 3 of argument 0, which threads of its block updated: a race" in message
    plain = "\n  llvm.store %t, %out : i32, !llvm.ptr"
    added = "%old = llvm.atomicrmw add %out, %k monotonic : !llvm.ptr, i32"
    assert "llvm.store" in fault(pointers(added + plain)).message
    only_one = UPDATE.replace("%done =", "%updated =").replace("%out[", "%zeroed[")
    zeroed = """
  %is_one = arith.cmpi eq, %t, %c1 : index
  %zeroed = scf.if %is_one -> (tensor<128xi32>) {
    %zero = arith.constant 0 : i32
    %set = tensor.insert %zero into %out[%c0] : tensor<128xi32>
    scf.yield %set : tensor<128xi32>
  } else {
    scf.yield %out : tensor<128xi32>
  }"""
    message = fault(tensors(zeroed + only_one.replace("%updated", "%done"))).message
    assert "thread 0 updates bytes 0 to 3 of argument 0, which thread 1 of its block wrote: a race" in message


# Thread n puts a one into nibble n: bit 4 * (n mod 8) of word n / 8.
NIBBLES = pointers("""
  %c2 = llvm.mlir.constant(2 : i32) : i32
  %c3 = llvm.mlir.constant(3 : i32) : i32
  %c7 = llvm.mlir.constant(7 : i32) : i32
  %nibble = llvm.and %t, %c7 : i32
  %bit = llvm.shl %nibble, %c2 : i32
  %mask = llvm.shl %c1, %bit : i32
  %word = llvm.lshr %t, %c3 : i32
  %place = llvm.getelementptr %out[%word] : (!llvm.ptr, i32) -> !llvm.ptr, i32
  {store}""")


def test_nibbles_of_one_byte_go_together_only_by_atomic_updates():
    out = run(NIBBLES.replace("{store}", "%old = llvm.atomicrmw _or %place, %mask monotonic : !llvm.ptr, i32"))
    assert out[:8].tolist() == [0x11111111] * 8
    plain = """%old = llvm.load %place : !llvm.ptr -> i32
  %new = llvm.or %old, %mask : i32
  llvm.store %new, %place : i32, !llvm.ptr"""
    message = fault(NIBBLES.replace("{store}", plain)).message
    assert "llvm.store in block 0, thread 0 writes bytes 0 to 3 of argument 0" in message


def test_the_guess_of_a_compare_and_swap_is_no_race():
    text = pointers("""
  %guess = llvm.load %out : !llvm.ptr -> i32
  %new = llvm.add %guess, %c1 : i32
  %swap = llvm.cmpxchg %out, %guess, %new monotonic monotonic : !llvm.ptr, i32""")
    assert run(text)[0] == 1
    apart = text.replace("llvm.load %out", "llvm.load %again").replace(
        "  %guess =", "  %again = llvm.getelementptr %out[0] : (!llvm.ptr) -> !llvm.ptr, i32\n  %guess ="
    )
    assert run(apart)[0] == 1
    assert "cmpxchg" in fault(apart.replace("cmpxchg %out, %guess,", "cmpxchg %out, %c1,")).message


def test_accesses_that_are_atomic_or_volatile():
    for store in ("volatile %t, %out", "%t, %out atomic monotonic {alignment = 4 : i64}"):
        run(pointers(f"llvm.store {store} : i32, !llvm.ptr"))
    assert "llvm.store" in fault(pointers("llvm.store %t, %out : i32, !llvm.ptr")).message


# ---------------------------------------------------------------------------------------------- exchanges, barriers


@pytest.mark.parametrize(
    ("mask", "distance", "is_clean"), [(-1, 16, True), (0xFFFF, 8, False)], ids=["whole warp", "beyond the mask"]
)
def test_a_shuffle_reads_lanes_that_take_part(mask, distance, is_clean):
    text = pointers(f"""
  %in_warp = llvm.and %t, %c31 : i32
  %c16 = llvm.mlir.constant(16 : i32) : i32
  %takes_part = llvm.icmp "ult" %in_warp, %{"c16" if mask > 0 else "c64"} : i32
  llvm.cond_br %takes_part, ^swap, ^end
^swap:
  %mask = llvm.mlir.constant({mask} : i32) : i32
  %distance = llvm.mlir.constant({distance} : i32) : i32
  %w = nvvm.shfl.sync down %mask, %t, %distance, %c31 : i32 -> i32
  llvm.store %w, %result : i32, !llvm.ptr
  llvm.br ^end
^end:""").replace("  %own =", "  %c31 = llvm.mlir.constant(31 : i32) : i32\n  %own =")
    if is_clean:
        run(text)
    else:
        assert "nvvm.shfl.sync in block 0, thread 8 takes a value from a lane" in fault(text).message


def test_a_shuffle_of_the_last_warp_that_is_not_whole():
    text = tensors("""
  %distance = arith.constant 16 : i32
  %width = arith.constant 32 : i32
  %w, %valid = gpu.shuffle down %v, %distance, %width : i32
  %done = tensor.insert %w into %out[%k] : tensor<128xi32>""")
    run(text)
    found = run(text.replace(f"array<i32: {THREADS}, 1, 1>", "array<i32: 40, 1, 1>")).view(np.uint32)
    assert found[:16].tolist() == list(range(16, 32))
    # What lanes 8 to 31 of the second warp would give is poison; it is for those that take it to drop it.
    assert set(found[32:40].tolist()) == {0xA5A5A5A5}


def test_a_barrier_that_not_all_threads_reach():
    """This is found without a sanitizer too."""
    text = EXCHANGE_LLVM.replace(
        "  nvvm.barrier0\n",
        """  %is_low = llvm.icmp "ult" %t, %c32 : i32
  llvm.cond_br %is_low, ^wait, ^join
^wait:
  nvvm.barrier0
  llvm.br ^join
^join:
""",
    )
    with pytest.raises(ExecutionError, match="thread 32 is not reached with the other threads of the block"):
        run(text)


def test_blocks_count_their_barriers_apart():
    """Block 0 waits twice, block 1 once: each knows what its own threads did since."""
    body = """
  %empty = xla_gpu.allocate_shared : tensor<64xi32>
  %is_first = arith.cmpi eq, %b, %c0 : index
  %filled = scf.if %is_first -> (tensor<64xi32>) {
    %one = tensor.insert %v into %empty[%t] : tensor<64xi32>
    %waited = xla_gpu.sync_threads %one : tensor<64xi32>
    %two = tensor.insert %v into %waited[%reversed] : tensor<64xi32>
    scf.yield %two : tensor<64xi32>
  } else {
    %one = tensor.insert %v into %empty[%t] : tensor<64xi32>
    scf.yield %one : tensor<64xi32>
  }
  %full = xla_gpu.sync_threads %filled : tensor<64xi32>
  %w = tensor.extract %full[%t] : tensor<64xi32>
  %done = tensor.insert %w into %out[%k] : tensor<128xi32>"""
    assert run(tensors(body, blocks=2)).tolist() == [*range(63, -1, -1), *range(64, 128)]
    early = tensors(body.replace("xla_gpu.sync_threads %filled", "xla_gpu.sync_threads %late"), blocks=2).replace(
        "  %full =",
        """  %late = scf.if %is_first -> (tensor<64xi32>) {
    scf.yield %filled : tensor<64xi32>
  } else {
    %again = tensor.insert %v into %filled[%reversed] : tensor<64xi32>
    scf.yield %again : tensor<64xi32>
  }
  %full =""",
    )
    with pytest.raises(ExecutionError, match="block 1, thread 0 writes bytes 252 to 255 of the shared"):
        run(early)
