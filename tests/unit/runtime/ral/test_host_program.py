"""Host programs in IR: control flow, calls by name, memory that is counted, and what is refused."""

import numpy as np
import pytest

from xla_emitters.dialects.context import parse_ir
from xla_emitters.errors import DataError, ExecutionError, InternalError, Unsupported, UsageError
from xla_emitters.runtime.ral.host_program import HostProgram
from xla_emitters.support.limits import limited_memory


def run(text: str, *inputs: np.ndarray, log: list[str] | None = None) -> list[np.ndarray]:
    return HostProgram(parse_ir(text)).run_on_garbage(inputs, log)


SWAP = """
func.func @main(%n: memref<i32>, %x: memref<i32>, %y: memref<i32>) -> (memref<i32>, memref<i32>) {
  %a = memref.alloc() : memref<i32>
  lmhlo.copy %x -> %a {name = "a"} : (memref<i32>) -> memref<i32>
  %b = memref.alloc() : memref<i32>
  lmhlo.copy %y -> %b {name = "b"} : (memref<i32>) -> memref<i32>
  %k = memref.load %n[] : memref<i32>
  %one = arith.constant 1 : i32
  %zero = arith.constant 0 : i32
  cf.br ^head(%k, %a, %b : i32, memref<i32>, memref<i32>)
^head(%left: i32, %p: memref<i32>, %q: memref<i32>):
  %more = arith.cmpi sgt, %left, %zero : i32
  cf.cond_br %more, ^body, ^end
^body:
  %less = arith.subi %left, %one : i32
  cf.br ^head(%less, %q, %p : i32, memref<i32>, memref<i32>)
^end:
  return %p, %q : memref<i32>, memref<i32>
}
"""


@pytest.mark.parametrize("count", [0, 1, 2, 5, 100])
def test_blocks_pass_their_arguments_all_at_once(count: int) -> None:
    found = run(SWAP, *(np.array(value, np.int32) for value in (count, 10, 20)))
    assert [int(value) for value in found] == ([20, 10] if count % 2 else [10, 20])


SWITCH = """
func.func @main(%n: memref<i32>) -> memref<i32> {
  %k = memref.load %n[] : memref<i32>
  %o = memref.alloc() : memref<i32>
  %ten = arith.constant 10 : i32
  %eleven = arith.constant 11 : i32
  %last = arith.constant 99 : i32
  cf.switch %k : i32, [
    default: ^end(%last : i32),
    0: ^end(%ten : i32),
    1: ^end(%eleven : i32)
  ]
^end(%v: i32):
  memref.store %v, %o[] : memref<i32>
  return %o : memref<i32>
}
"""


@pytest.mark.parametrize(("selector", "wanted"), [(0, 10), (1, 11), (2, 99), (-1, 99)])
def test_a_switch_takes_its_default_for_every_other_number(selector: int, wanted: int) -> None:
    (found,) = run(SWITCH, np.array(selector, np.int32))
    assert found == wanted


LOOPS = """
func.func @main(%x: memref<?xf32>) -> memref<?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %n = memref.dim %x, %c0 : memref<?xf32>
  %y = memref.alloc(%n) : memref<?xf32>
  %rest = arith.remsi %n, %c4 : index
  %fits = arith.cmpi eq, %rest, %c0 : index
  scf.if %fits {
    "lmhlo.fusion"() ({
      scf.parallel (%i) = (%c0) to (%n) step (%c1) {
        %v = memref.load %x[%i] : memref<?xf32>
        %w = arith.addf %v, %v : f32
        memref.store %w, %y[%i] : memref<?xf32>
        scf.reduce
      }
      lmhlo.terminator
    }) {fusion_name = "twice"} : () -> ()
  } else {
    %t = memref.alloc(%n) : memref<?xf32>
    "lmhlo.fusion"() <{fusion_name = "minus_abs"}> ({
      lmhlo.abs %x -> %t {name = "t"} : (memref<?xf32>) -> memref<?xf32>
      lmhlo.negate %t -> %y {name = "y"} : (memref<?xf32>) -> memref<?xf32>
      lmhlo.terminator
    }) : () -> ()
    memref.dealloc %t : memref<?xf32>
  }
  return %y : memref<?xf32>
}
"""


@pytest.mark.parametrize("count", [0, 3, 4])
def test_fusions_of_loops_and_of_ops_in_a_choice(count: int) -> None:
    x = np.arange(-2, count - 2, dtype=np.float32)
    np.testing.assert_array_equal(run(LOOPS, x)[0], -np.abs(x) if count % 4 else 2 * x)


CALLED = """
func.func @main(%ctx: !disc_ral.context) {
  %st = disc_ral.stream %ctx
  %x = disc_ral.recv_input %ctx, 0 : memref<?x4xf32, "gpu">
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %n = memref.dim %x, %c0 : memref<?x4xf32, "gpu">
  %y = disc_ral.dispatch "alloc" on "gpu"(%ctx, %n, %c4) : (!disc_ral.context, index, index) -> memref<?x4xf32, "gpu">
  disc_ral.dispatch "d2d" on "gpu"(%ctx, %st, %x, %y)
    : (!disc_ral.context, !disc_ral.stream, memref<?x4xf32, "gpu">, memref<?x4xf32, "gpu">) -> ()
  MORE
  disc_ral.send_output %ctx, 0, %y : memref<?x4xf32, "gpu">
  return
}
"""
FREE = 'disc_ral.dispatch "dealloc" on "gpu"(%ctx, %y) : (!disc_ral.context, memref<?x4xf32, "gpu">) -> ()'
AGAIN = """%v = disc_ral.dispatch "inc_ref" on "gpu"(%ctx, %y, %c4, %n)
    : (!disc_ral.context, memref<?x4xf32, "gpu">, index, index) -> memref<4x?xf32, "gpu">"""
ELEMENT = '%e = memref.load %y[%c0, %c0] : memref<?x4xf32, "gpu">'
COPY = """disc_ral.dispatch "d2d" on "gpu"(%ctx, %st, %x, %y)
    : (!disc_ral.context, !disc_ral.stream, memref<?x4xf32, "gpu">, memref<?x4xf32, "gpu">) -> ()"""
OTHER = '%o = memref.alloc() : memref<2xi32, "cpu">'


def test_calls_are_logged_by_their_full_names_with_sizes_and_numbers() -> None:
    x, log = np.arange(8, dtype=np.float32).reshape(2, 4), list[str]()
    (found,) = run(CALLED.replace("MORE", ""), x, log=log)
    np.testing.assert_array_equal(found, x)
    assert log == [
        "ral_recv_input___gpu___pvoid_i64___m2df32 0",
        "alloc___gpu___pvoid_i64_i64___m2df32 2 4",
        "d2d___gpu___pvoid_pvoid_m2df32_m2df32___void [2,4] [2,4]",
        "ral_send_output___gpu___pvoid_i64_m2df32___void 0 [2,4]",
    ]


@pytest.mark.parametrize(
    ("more", "error", "message"),
    [
        (FREE, InternalError, "not a buffer of its own"),
        (f"{FREE}\n{FREE}", InternalError, r"%y \(freed\) is freed, and the call does not own it"),
        (f"{FREE}\n{ELEMENT}", ExecutionError, r"reads index 0 of %y \(freed\), which has 0"),
        (f"{FREE}\n{COPY}", ExecutionError, r"a call uses %y \(freed\)"),
        (AGAIN, InternalError, "not a buffer of its own"),
        (OTHER, InternalError, "1 buffers were not freed, the first is %o"),
        (AGAIN.replace("%c4, %n)", "%c4, %c4)"), DataError, r"no reshape of \[2, 4\] to \[4, 4\]"),
        (FREE.replace("%y", "%x"), InternalError, "%x is freed, and the call does not own it"),
        (
            OTHER.replace("2xi32", "4x?xf64").replace("alloc()", "alloc(%m)"),
            DataError,
            r"%o: a size of \[4, -1\] is neg",
        ),
    ],
)
def test_every_buffer_is_freed_once_and_not_used_afterwards(more: str, error: type[Exception], message: str) -> None:
    text = CALLED.replace("MORE", f"%m = arith.constant -1 : index\n{more}")
    with pytest.raises(error, match=message):
        run(text, np.zeros((2, 4), np.float32))


def test_a_second_name_is_freed_alone() -> None:
    freed = FREE.replace("%y", "%v").replace("?x4", "4x?")
    x = np.ones((3, 4), np.float32)
    np.testing.assert_array_equal(run(CALLED.replace("MORE", f"{AGAIN}\n{freed}"), x)[0], x)


def test_a_buffer_beyond_the_limit_on_memory_is_named() -> None:
    with limited_memory(100), pytest.raises(DataError, match=r"out of memory: %y is float32\[7,4\], 112 bytes"):
        run(CALLED.replace("MORE", ""), np.zeros((7, 4), np.float32))


def test_what_nothing_computes_is_named() -> None:
    text = SWITCH.replace("  cf.switch", '  %z = "test.op"() : () -> index\n  cf.switch')
    with pytest.raises(Unsupported, match=r"no rule for op 'test.op'"):
        HostProgram(parse_ir(text, allow_unregistered=True))
    with pytest.raises(UsageError, match="no function on buffers"):
        HostProgram(parse_ir("module {}"))
    with pytest.raises(InternalError, match="no kernel 'k'"):
        run(CALLED.replace("MORE", LAUNCH), np.zeros((1, 4), np.float32))


LAUNCH = """%s = arith.constant 0 : i32
  disc_ral.dispatch "ral_kernel_launch" on "gpu"(%ctx, %st, %n, %n, %n, %n, %n, %n, %s, %y) config "k"
    : (!disc_ral.context, !disc_ral.stream, index, index, index, index, index, index, i32, memref<?x4xf32, "gpu">) -> ()"""
