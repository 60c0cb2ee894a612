"""Vectorising changes no number, and every new op has a location."""

import itertools

import numpy as np
import pytest
from unit.transforms.places import after_with_places
from xdsl.dialects.builtin import ModuleOp

from xla_emitters.device import device
from xla_emitters.dialects.context import make_context, parse_ir
from xla_emitters.dialects.mlir import vector
from xla_emitters.dialects.mlir_printer import print_ir
from xla_emitters.rewrite.notes import take_notes
from xla_emitters.runtime.simt import execute
from xla_emitters.transforms.vectorize_loads_stores import VectorizeLoadsStoresPass

SIZE = 64

KERNEL = """
#read = #xla_gpu.indexing_map<"(th_x, v) -> (READ), domain: th_x in [0, 3], v in [0, LAST]">
#write = #xla_gpu.indexing_map<"(th_x, v) -> (WRITE), domain: th_x in [0, 3], v in [0, LAST]">
func.func @k(%in: tensor<64xf32> {llvm.align = 16 : index, xla.slice_index = 0 : index},
             %out: tensor<64xf32> {llvm.align = 16 : index, xla.slice_index = SLICE : index}) -> tensor<64xf32>
    attributes {xla.entry, gpu.known_block_size = array<i32: 4, 1, 1>, gpu.known_grid_size = array<i32: 1, 1, 1>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.constant TRIPS : index
  %t = gpu.thread_id x {xla.range = [0 : index, 3 : index]}
  %l = scf.for %v = %c0 to %n step %c1 iter_args(%iter = %out) -> (tensor<64xf32>) {
    %i = xla_gpu.apply_indexing #read(%t, %v)
    %j = xla_gpu.apply_indexing #write(%t, %v)
    %x = tensor.extract %in[%i] : tensor<64xf32>
    %y = arith.negf %x : f32
    %b = tensor.insert %y into %iter[%j] : tensor<64xf32>
    scf.yield %b : tensor<64xf32>
  }
  return %l : tensor<64xf32>
}
"""


def kernel(trips: int, read: str, write: str, slice_index: int = 1) -> str:
    fields = {"READ": read, "WRITE": write, "LAST": str(trips - 1), "TRIPS": str(trips), "SLICE": str(slice_index)}
    text = KERNEL
    for name, replacement in fields.items():
        text = text.replace(name, replacement)
    return text


def vectorized(text: str) -> ModuleOp:
    module = parse_ir(text)
    VectorizeLoadsStoresPass().apply(make_context(), module)
    module.verify()
    return module


def run(module: ModuleOp, in_place: bool) -> bytes:
    x = np.random.default_rng(0).standard_normal(SIZE).astype(np.float32)
    out = x if in_place else np.zeros(SIZE, np.float32)
    (result,) = execute(module, [x, out], results=1)
    return result.tobytes()


def accesses(module: ModuleOp) -> set[str]:
    return {op.name.split(".")[1] for op in module.walk() if op.name.startswith(("vector.transfer", "tensor."))}


# Each thread works in its own sixteen elements, so that in-place kernels are free of races between threads.
INDICES = {
    4: [
        "th_x * 16 + v",
        "th_x * 16 + v + 4",
        "th_x * 16 + v + 3",
        "th_x * 16 - v + 3",
        "th_x * 16 + v * 2",
        "th_x * 16 + (v + 2) mod 4",
    ],
    8: ["th_x * 16 + v", "th_x * 16 + v + 8", "th_x * 16 + v + 4"],
    6: ["th_x * 16 + v", "th_x * 16 - v + 5"],
}


@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("trips", INDICES)
def test_same_numbers_before_and_after(trips: int, in_place: bool):
    """All pairs of read and write index, with two buffers and with one: the pass takes some, and changes none."""
    taken = 0
    for read, write in itertools.product(INDICES[trips], repeat=2):
        text = kernel(trips, read, write, 1 - in_place)
        after = vectorized(text)
        assert run(after, in_place) == run(parse_ir(text), in_place), (read, write)
        taken += accesses(after) != {"extract", "insert"}
    assert (taken > 0) == (trips != 6)


@pytest.mark.parametrize(
    ("read", "write", "found"),
    [
        # Same element: both. Next vector: reads of what is not written yet.
        ("th_x * 16 + v", "th_x * 16 + v", {"transfer_read", "transfer_write"}),
        ("th_x * 16 + v + 4", "th_x * 16 + v", {"transfer_read", "transfer_write"}),
        # One iteration reads what one before has written: nothing moves, although both are contiguous and aligned.
        ("th_x * 16 + v", "th_x * 16 + v + 1", {"extract", "insert"}),
        # It reads what a later one writes: reads may go first. The write is not aligned.
        ("th_x * 16 + v + 4", "th_x * 16 + v + 3", {"transfer_read", "insert"}),
    ],
)
def test_in_place(read: str, write: str, found: set[str]):
    text = kernel(4, read, write, 0)
    after = vectorized(text)
    assert accesses(after) == found
    assert run(after, True) == run(parse_ir(text), True)


@pytest.mark.parametrize(("chip", "loops", "widths"), [("h200", 2, {2}), ("b200", 1, {4})])
def test_wide_accesses_go_by_halves(chip: str, loops: int, widths: set[int]):
    """Where 256 bits take two instructions: in maps, and where the loop's variable is a number, each half counts its own elements."""
    text = kernel(4, "th_x * 16 + v + 4", "th_x * 16 + v").replace("f32", "f64")
    text = text.replace("0 : index},", "0 : index, xla.invariant},")
    text = text.replace(
        "%y = arith.negf %x",
        "%w = arith.index_cast %v : index to i64\n%u = arith.sitofp %w : i64 to f64\n%y = arith.addf %x, %u",
    )
    before, after = parse_ir(text), parse_ir(text)
    VectorizeLoadsStoresPass(device(chip)).apply(make_context(), after)
    after.verify()
    assert sum(op.name == "scf.for" for op in after.walk()) == loops
    reads = [op for op in after.walk() if isinstance(op, vector.TransferReadOp)]
    assert accesses(after) == {"transfer_read", "transfer_write"}
    assert {width for op in reads for width in op.result.type.get_shape()} == widths
    x = np.random.default_rng(0).standard_normal(SIZE)
    (wanted,), (got,) = (execute(module, [x.copy(), np.zeros(SIZE)], results=1) for module in (before, after))
    assert got.tobytes() == wanted.tobytes()


def test_one_element_for_all_is_no_copy():
    """The inserted value comes out of a vector of the right length, but not from the same position."""
    text = kernel(4, "th_x * 16 + v", "th_x * 16 + v").replace("tensor.insert %y", "tensor.insert %one")
    text = text.replace(
        "  %l = scf.for", "  %all = arith.constant dense<[1.0, 2.0, 3.0, 4.0]> : vector<4xf32>\n  %l = scf.for"
    )
    text = text.replace("    %y =", "    %one = vector.extract %all[%c1] : f32 from vector<4xf32>\n    %y =")
    after = vectorized(text)
    assert [op for op in after.walk() if op.name == "vector.insert"]
    assert run(after, False) == run(parse_ir(text), False)


def test_every_new_op_has_the_location_of_the_op_that_it_stands_for():
    module, places = after_with_places(kernel(4, "th_x * 16 + v", "th_x * 16 + v"), VectorizeLoadsStoresPass())
    now = {op.name: op.location for op in module.walk()}
    assert now["vector.transfer_read"] == now["vector.extract"] == places["tensor.extract"]
    assert now["vector.transfer_write"] == now["vector.insert"] == places["tensor.insert"]
    assert now["xla_gpu.apply_indexing"] == places["xla_gpu.apply_indexing"]
    assert now["scf.for"] == places["scf.for"]


def test_remarks_say_where():
    text = kernel(4, "th_x * 16 + v * 2", "th_x * 16 + v").replace(
        "%x = tensor.extract %in[%i] : tensor<64xf32>",
        '%x = tensor.extract %in[%i] : tensor<64xf32> loc("slice.1"("k.hlo":7:3))',
    )
    with take_notes() as notes:
        vectorized(text)
    assert [str(remark) for remark in notes.remarks] == [
        "xla-vectorize-loads-stores: skipped tensor.extract: its stride is 2, not 1 at slice.1 (k.hlo:7:3)"
    ]


def test_twice_is_once():
    """Nothing is left to take after one run."""
    module = vectorized(kernel(4, "th_x * 16 + v", "th_x * 16 + v"))
    text = print_ir(module)
    VectorizeLoadsStoresPass().apply(make_context(), module)
    assert print_ir(module) == text
