"""Execution of the entry: its arrays, and which blocks run."""

import ml_dtypes
import numpy as np
import pytest
from unit.runtime.simt.kernels import launch

from xla_emitters.dialects.context import parse_ir
from xla_emitters.errors import DataError, ExecutionError, Unsupported, VerifyError
from xla_emitters.program import LaunchDimensions
from xla_emitters.runtime.simt import execute, written_elements
from xla_emitters.runtime.simt.memory import Access, Watcher

ELEMENTS, THREADS = 64, 8


def doubling(ir_type: str = "i32", elements: int = ELEMENTS, attributes: str | None = None) -> str:
    """out[k] = 2 * in[k], one element per thread."""
    attributes = attributes if attributes is not None else f"xla.entry, {launch(THREADS, ELEMENTS // THREADS)}"
    tensor = f"tensor<{elements}x{ir_type}>"
    return f"""
func.func @main(%in: {tensor} {{xla.invariant}}, %out: {tensor}) -> {tensor} attributes {{{attributes}}} {{
  %t = gpu.thread_id x
  %b = gpu.block_id x
  %n = arith.constant {THREADS} : index
  %row = arith.muli %b, %n : index
  %k = arith.addi %row, %t : index
  %x = tensor.extract %in[%k] : {tensor}
  %y = arith.addi %x, %x : {ir_type}
  %w = tensor.insert %y into %out[%k] : {tensor}
  return %w : {tensor}
}}"""


def arrays() -> list[np.ndarray]:
    return [np.arange(ELEMENTS, dtype=np.int32), np.full(ELEMENTS, -1, np.int32)]


@pytest.mark.parametrize("chunk_blocks", [None, 1, 3, 8, 100])
def test_chunks_make_no_difference(chunk_blocks):
    source, out = arrays()
    (result,) = execute(parse_ir(doubling()), [source, out], chunk_blocks=chunk_blocks)
    assert result is out
    np.testing.assert_array_equal(out, 2 * source)


@pytest.mark.parametrize("blocks", [[0], [7, 2], range(3, 6), []])
def test_only_the_blocks_that_are_asked_for(blocks):
    source, out = arrays()
    execute(parse_ir(doubling()), [source, out], blocks=blocks)
    touched = np.isin(np.arange(ELEMENTS) // THREADS, list(blocks))
    np.testing.assert_array_equal(out, np.where(touched, 2 * source, -1))


@pytest.mark.tiny
def test_written_elements_are_those_of_the_blocks():
    source, out = arrays()
    (written,) = written_elements(parse_ir(doubling()), [source, out], blocks=[1, 6])
    np.testing.assert_array_equal(written, np.isin(np.arange(ELEMENTS) // THREADS, [1, 6]))
    np.testing.assert_array_equal(out[written], 2 * source[written])


def test_a_block_that_the_grid_does_not_have():
    with pytest.raises(DataError, match="blocks 0 to 7"):
        execute(parse_ir(doubling()), arrays(), blocks=[8])


def test_arrays_of_any_shape_are_flat_memory():
    source = np.arange(ELEMENTS, dtype=np.int32).reshape(4, 4, 4)
    out = np.zeros((2, 32), np.int32)
    execute(parse_ir(doubling()), [source, out])
    np.testing.assert_array_equal(out.reshape(-1), 2 * source.reshape(-1))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda source, out: [source], "takes 2 arrays, not 1"),
        (
            lambda source, out: [source[:-1], out],
            r"argument 0 of @main is tensor<64xi32>, but the array is int32\[63\]",
        ),
        (lambda source, out: [source.astype(np.int64), out], "elements of 4 bytes are expected"),
        (lambda source, out: [np.repeat(source, 2)[::2], out], "argument 0 of @main is not contiguous"),
        (lambda source, out: [source, np.broadcast_to(out[:1], 64).copy().view()], ""),
    ],
)
def test_arrays_that_do_not_fit(wrong, message):
    given = wrong(*arrays())
    if not message:
        given[1].flags.writeable = False
        message = "argument 1 of @main is a result, but cannot be written"
    with pytest.raises(DataError, match=message):
        execute(parse_ir(doubling()), given)


def test_the_launch_may_be_given_instead():
    source, out = arrays()
    module = parse_ir(doubling(attributes="xla.entry"))
    with pytest.raises(VerifyError, match="launch of the entry is not known"):
        execute(module, [source, out])
    execute(module, [source, out], launch=LaunchDimensions((8, 1, 1), (THREADS, 1, 1)))
    np.testing.assert_array_equal(out, 2 * source)


def test_there_is_one_entry():
    with pytest.raises(DataError, match="one entry function, but here it is none"):
        execute(parse_ir(doubling(attributes=launch(8, 8))), arrays())
    two = doubling() + doubling().replace("@main", "@other")
    with pytest.raises(DataError, match="here it is @main, @other"):
        execute(parse_ir(two), arrays())


def test_an_entry_inside_a_gpu_module():
    source, out = arrays()
    execute(parse_ir(f'"gpu.module"() ({{{doubling()}}}) {{sym_name = "m"}} : () -> ()'), [source, out])
    np.testing.assert_array_equal(out, 2 * source)


def test_an_unknown_op_is_refused_by_name_and_place():
    module = parse_ir(
        f"""func.func @main(%out: tensor<4xf32>) -> tensor<4xf32> attributes {{xla.entry, {launch(4, 1)}}} {{
          "test.strange"() : () -> () loc("tanh_0"("gelu.hlo":19:3))
          return %out : tensor<4xf32>
        }}""",
        allow_unregistered=True,
    )
    with pytest.raises(Unsupported, match=r"no rule for op '.*'") as refusal:
        execute(module, [np.zeros(4, np.float32)])
    assert "at tanh_0 (gelu.hlo:19:3)" in refusal.value.details


@pytest.mark.parametrize(
    ("ir_type", "numpy_type"),
    [("bf16", ml_dtypes.bfloat16), ("f8E4M3FN", ml_dtypes.float8_e4m3fn), ("f16", np.float16), ("f64", np.float64)],
)
def test_element_types(ir_type, numpy_type):
    source = np.linspace(-3, 3, ELEMENTS).astype(numpy_type)
    out = np.zeros_like(source)
    execute(parse_ir(doubling(ir_type).replace("addi %x", "addf %x")), [source, out])
    np.testing.assert_array_equal(
        out.astype(np.float64), (2 * source.astype(np.float64)).astype(numpy_type).astype(np.float64)
    )


def test_pred_is_a_byte():
    text = doubling("i8").replace(
        "%y = arith.addi %x, %x : i8",
        "%zero = arith.constant 0 : i8\n%c = arith.cmpi eq, %x, %zero : i8\n%y = arith.extui %c : i1 to i8",
    )
    source = np.arange(ELEMENTS) % 3 == 0
    out = np.zeros(ELEMENTS, np.bool_)
    execute(parse_ir(text), [source, out])
    np.testing.assert_array_equal(out, ~source)


def test_results_of_a_pointer_kernel():
    """By default the last arguments that are not invariant; or as many as one says."""
    text = """
llvm.func @main(%a: !llvm.ptr {xla.invariant}, %b: !llvm.ptr, %c: !llvm.ptr)
    attributes {nvvm.kernel, nvvm.reqntid = array<i32: 4, 1, 1>, gpu.known_grid_size = array<i32: 1, 1, 1>} {
  %t = nvvm.read.ptx.sreg.tid.x : i32
  %p = llvm.getelementptr %c[%t] : (!llvm.ptr, i32) -> !llvm.ptr, i32
  llvm.store %t, %p : i32, !llvm.ptr
  llvm.return
}"""
    given = [np.zeros(4, np.int32) for _ in range(3)]
    assert [id(r) for r in execute(parse_ir(text), given)] == [id(given[1]), id(given[2])]
    (result,) = execute(parse_ir(text), given, results=1)
    assert result is given[2]
    assert result.tolist() == [0, 1, 2, 3]
    (written,) = written_elements(parse_ir(text), given, results=1)
    assert written.all()


def test_packed_arrays_that_are_one_stay_one():
    """The same s4 array as input and output: what one argument writes, the other reads."""
    text = f"""
llvm.func @main(%a: !llvm.ptr, %b: !llvm.ptr) attributes {{nvvm.kernel, {launch(1, 1)}}} {{
  %two = llvm.mlir.constant(33 : i8) : i8
  llvm.store %two, %a : i8, !llvm.ptr
  %v = llvm.load %b : !llvm.ptr -> i8
  %q = llvm.getelementptr %b[1] : (!llvm.ptr) -> !llvm.ptr, i8
  llvm.store %v, %q : i8, !llvm.ptr
  llvm.return
}}"""
    both = np.zeros(4, ml_dtypes.int4)
    (written,) = written_elements(parse_ir(text), [both, both], results=1)
    assert both.astype(np.int8).tolist() == [1, 2, 1, 2]
    # The two arguments are one buffer: what is written through the one is written for the other.
    assert written.tolist() == [True, True, True, True]


def test_too_small_an_array_behind_a_pointer():
    text = f"""
llvm.func @main(%a: !llvm.ptr {{llvm.dereferenceable = 64 : index}}) attributes {{nvvm.kernel, {launch(1, 1)}}} {{
  llvm.return
}}"""
    with pytest.raises(DataError, match="is 64 bytes, but the array has 60"):
        execute(parse_ir(text), [np.zeros(15, np.float32)])


def test_a_watcher_sees_every_access():
    seen: list[Access] = []

    class Seen(Watcher):
        def access(self, memory, access):
            seen.append(access)

    execute(parse_ir(doubling()), arrays(), watchers=[Seen()], chunk_blocks=8)
    assert [(access.op.name, access.is_store, access.buffer.number, access.size) for access in seen] == [
        ("tensor.extract", False, 0, 4),
        ("tensor.insert", True, 1, 4),
    ]
    assert seen[0].active is None
    np.testing.assert_array_equal(seen[0].offsets.reshape(-1), 4 * np.arange(ELEMENTS))


def test_coordinates_name_threads_of_deep_launches():
    text = """
func.func @main(%out: tensor<1xindex>) -> tensor<1xindex> attributes {xla.entry,
    gpu.known_block_size = array<i32: 2, 3, 1>, gpu.known_grid_size = array<i32: 2, 2, 1>} {
  %y = gpu.thread_id y
  %v = tensor.insert %y into %out[%y] : tensor<1xindex>
  return %v : tensor<1xindex>
}"""
    with pytest.raises(ExecutionError, match=r"in block \(0, 0, 0\), thread \(0, 1, 0\) writes index 1"):
        execute(parse_ir(text), [np.zeros(1, np.int64)])


def test_empty_arrays():
    text = f"""
func.func @main(%out: tensor<0xi32>) -> tensor<0xi32> attributes {{xla.entry, {launch(4, 1)}}} {{
  return %out : tensor<0xi32>
}}"""
    assert execute(parse_ir(text), [np.zeros(0, np.int32)])[0].size == 0
