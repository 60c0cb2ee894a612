"""The host program as machine code has the bits, calls and messages of the one in Python. `make hosts` compares all programs."""

from __future__ import annotations

import gc
import threading
from typing import Any

import numpy as np
import pytest
from long_lists import but_long
from runtime.hosts_table import compare
from runtime.programs_table import programs
from xdsl.dialects.builtin import ModuleOp

from xla_emitters.dialects.context import parse_ir
from xla_emitters.errors import DataError, UsageError
from xla_emitters.host.disc_rewrite_ral_api import keep_names, name_buffer_ops
from xla_emitters.memory_limit import limited_memory
from xla_emitters.pipelines.options import CompileOptions
from xla_emitters.pipelines.program_host import CPU
from xla_emitters.pipelines.program_llvm import HOST, LlvmHost
from xla_emitters.pipelines.programs import DynamicProgram, compile_program
from xla_emitters.runtime.ral.dispatch_log import DispatchLog
from xla_emitters.runtime.ral.host_kernels import SHARED_WORK
from xla_emitters.stablehlo_text import parse_stablehlo

pytest.importorskip("llvmlite.binding", reason="llvmlite is not installed")

Array = np.ndarray[Any, Any]
SAMPLE = ("loop", "branches", "gather_rows", "donated_to_a_loop")


def compiled(text: str) -> DynamicProgram:
    return compile_program(parse_stablehlo(text, "<test>"), CompileOptions(record="none"))


@pytest.fixture
def by_llvm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CPU, "llvm")
    monkeypatch.setenv(HOST, "llvm")


# A loop has a branch for each trip.
@pytest.mark.parametrize("name", but_long(SAMPLE, ("branches",)))
def test_both_hosts_give_the_same_bits_and_ask_for_the_same(name: str, by_llvm: None) -> None:
    program = programs()[name]
    calls = compare(program.compiled(), [program.inputs(sizes) for sizes in program.case.sizes[:2]])
    assert any(call.name.startswith("ral_kernel_launch") for call in calls)


def test_a_host_program_whose_ops_numpy_computes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CPU, "numpy")
    calls = compare(compiled(DOUBLE), [[np.ones((2, 4), np.float32)]])
    assert any(call.name.startswith("lmhlo.") for call in calls)


def test_ops_of_one_name_keep_their_names_where_one_of_them_goes() -> None:
    """An op that passes compute in place has no call: the runtime must not confuse it with the other op of its name."""
    x = 'memref<4xf32, "gpu">'
    module = parse_ir(f"""func.func @main(%x: {x}, %y: {x}) {{
      lmhlo.abs %x -> %y {{name = "op.1"}} : ({x}) -> {x}
      lmhlo.abs %y -> %x {{name = "op.1"}} : ({x}) -> {x}
      return }}""")
    keep_names(module)
    (first, gone), (second, kept) = name_buffer_ops(module).items()
    gone.detach()
    gone.erase()
    assert first != second
    assert name_buffer_ops(module) == {second: kept}


# --------------------------------------------------------------------------------------------------------------- results

DOUBLE = """module @m { func.func public @main(%x: tensor<?x4xf32>) -> tensor<?x4xf32> {
  %y = stablehlo.add %x, %x : tensor<?x4xf32>
  return %y : tensor<?x4xf32> } }"""


@pytest.mark.parametrize("rows", [0, 1, 5, SHARED_WORK // 32 + 1])
def test_any_number_of_rows(rows: int, by_llvm: None) -> None:
    """The largest number is above the limit from which the runtime's threads share work."""
    program = compiled(DOUBLE)
    x = np.random.default_rng(0).standard_normal((rows, 4), np.float32)
    np.testing.assert_array_equal(program(x), x + x)
    assert program.counters.allocations == 1
    assert program.counters.peak_bytes == x.nbytes


def test_an_argument_may_begin_anywhere(by_llvm: None) -> None:
    x = np.arange(41, dtype=np.float32)[1:].reshape(10, 4)
    assert x.ctypes.data % 16
    np.testing.assert_array_equal(compiled(DOUBLE)(x), x + x)


def test_a_result_lives_as_long_as_a_view_of_it(by_llvm: None) -> None:
    program, x = compiled(DOUBLE), np.ones((1000, 4), np.float32)
    row = program(x)[7]
    gc.collect()
    others = [program(x * 3) for _ in range(20)]
    np.testing.assert_array_equal(row, [2, 2, 2, 2])
    row += 1
    np.testing.assert_array_equal(others[0], x * 6)


def test_threads_call_one_program(by_llvm: None) -> None:
    program, wrong = compiled(DOUBLE), list[int]()

    def work(seed: int) -> None:
        random = np.random.default_rng(seed)
        for _ in range(50):
            x = random.standard_normal((int(random.integers(0, 9)), 4), np.float32)
            if not np.array_equal(program(x), x + x):
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert program.counters.runs == 400
    assert program.counters.live == 0


def test_repeated_calls_take_plans(by_llvm: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """At each size the first call is machine code, Python records the second, and the others are repeated."""
    program, ran = compiled(DOUBLE), list[str]()
    loaded = program.host
    assert loaded.native is not None
    for name, holder, method in (("llvm", loaded.native, "run"), ("python", loaded, "_run")):
        run = getattr(holder, method)

        def noted(*arguments: Any, name: str = name, run: Any = run) -> Any:
            ran.append(name)
            return run(*arguments)

        monkeypatch.setattr(holder, method, noted)
    for _ in range(3):
        for rows in (2, 5):
            x = np.random.default_rng(rows).standard_normal((rows, 4), np.float32)
            found = program(x)
            np.testing.assert_array_equal(found, x + x)
            found += 1  # it is the caller's
    assert ran == ["llvm", "llvm", "python", "python"]
    assert program.counters.runs == 6
    assert program.counters.live == 0


OWNED = """func.func @main(%ctx: !disc_ral.context) {
  %x = disc_ral.recv_input %ctx, 0 {disc.donated} : memref<?xi32, "gpu">
  %y = disc_ral.recv_input %ctx, 1 {disc.donated} : memref<2xi32, "gpu">
  disc_ral.dispatch "dealloc" on "gpu"(%ctx, %y) : (!disc_ral.context, memref<2xi32, "gpu">) -> ()
  disc_ral.send_output %ctx, 0, %x : memref<?xi32, "gpu">
  return
}"""


@pytest.mark.parametrize("is_logged", [False, True])
def test_a_program_owns_copies_of_donated_arguments(is_logged: bool) -> None:
    log = DispatchLog() if is_logged else None
    program = LlvmHost("owned", parse_ir(OWNED), ModuleOp([]), None, CompileOptions(), log=log).program
    x = np.arange(5, dtype=np.int32)
    for _ in range(2):
        (found,) = program.run([x, x[:2].copy()])
        found += 1
    np.testing.assert_array_equal(x, range(5))
    assert (program.context.counters.allocations, program.context.counters.peak_bytes) == (4, 28)


# ---------------------------------------------------------------------------------------------------------------- errors


FILLED = """module @m { func.func public @main(%n: tensor<i32>) -> tensor<?x1000x1000xf32> {
  %rows = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
  %rest = stablehlo.constant dense<1000> : tensor<2xi32>
  %shape = stablehlo.concatenate %rows, %rest, dim = 0 : (tensor<1xi32>, tensor<2xi32>) -> tensor<3xi32>
  %one = stablehlo.constant dense<1.0> : tensor<f32>
  %y = stablehlo.dynamic_broadcast_in_dim %one, %shape, dims = [] : (tensor<f32>, tensor<3xi32>) -> tensor<?x1000x1000xf32>
  return %y : tensor<?x1000x1000xf32> } }"""


def test_a_failed_allocation_has_the_message_of_the_runtime(monkeypatch: pytest.MonkeyPatch) -> None:
    """A size is negative, or there is no such memory; the program can be called again."""
    said = dict[str, list[str]]()
    for host in ("python", "llvm"):
        monkeypatch.setenv(HOST, host)
        program, said[host] = compiled(FILLED), []
        for count in (-1, 2**31 - 1):
            with pytest.raises(DataError) as caught, limited_memory("1G"):
                program(np.int32(count))
            said[host].append(str(caught.value))
        assert program(np.int32(0)).shape == (0, 1000, 1000)
        assert program.counters.live == 0
    assert said["llvm"] == said["python"]
    assert "negative" in said["llvm"][0]
    assert "out of memory" in said["llvm"][1]


ASSERTED = """module @m { func.func public @main(%x: tensor<?xi32>) -> tensor<?xi32> {
  %n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?xi32>) -> tensor<i32>
  %two = stablehlo.constant dense<2> : tensor<i32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %rest = stablehlo.remainder %n, %two : tensor<i32>
  %even = stablehlo.compare EQ, %rest, %zero : (tensor<i32>, tensor<i32>) -> tensor<i1>
  stablehlo.custom_call @shape_assertion(%even, %n) {has_side_effect = true, error_message = "{0} is odd"} : (tensor<i1>, tensor<i32>) -> ()
  %y = stablehlo.add %x, %x : tensor<?xi32>
  return %y : tensor<?xi32> } }"""


def test_an_error_of_a_function_is_raised_where_the_program_was_called(by_llvm: None) -> None:
    program = compiled(ASSERTED)
    x = np.arange(6, dtype=np.int32)
    for _ in range(2):
        np.testing.assert_array_equal(program.host.run([x]), [x + x])
        with pytest.raises(DataError, match="3 is odd"):
            program.host.run([x[:3]])
    assert program.counters.runs == 2


def test_an_unknown_way_is_a_usage_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(HOST, "c")
    with pytest.raises(UsageError, match="XLA_EMITTERS_HOST is 'c'"):
        compiled(DOUBLE)(np.ones((1, 4), np.float32))
