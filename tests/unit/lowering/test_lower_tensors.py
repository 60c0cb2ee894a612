"""Tensors to pointers: same numbers, located ops, and refusals by name."""

import ml_dtypes
import numpy as np
import pytest
from unit.transforms.places import after_with_places
from xdsl.dialects.builtin import ModuleOp

import xla_emitters as xe
from xla_emitters.dialects.context import make_context, parse_ir
from xla_emitters.errors import Unsupported
from xla_emitters.lowering.lower_tensors import LowerTensorsPass
from xla_emitters.runtime.simt import execute


def lower(text: str) -> ModuleOp:
    module = parse_ir(text)
    LowerTensorsPass().apply(make_context(), module)
    module.verify()
    return module


KERNEL = """
#map = #xla_gpu.indexing_map<"(th_x, bl_x) -> (th_x * 4 + bl_x * 16), domain: th_x in [0, 3], bl_x in [0, 1]">
#at = #xla_gpu.indexing_map<"(d0, d1) -> (d0 + d1), domain: d0 in [0, 28], d1 in [0, 3]">
#reverse = #xla_gpu.indexing_map<"(d0) -> (31 - d0), domain: d0 in [0, 31]">
module attributes {dlti.dl_spec = #dlti.dl_spec<index = 32 : i32>} {
  func.func @k(%in: tensor<32xTYPE> {llvm.align = 16 : index, xla.invariant, xla.slice_index = 0 : index},
               %out: tensor<32xTYPE> {llvm.align = 16 : index, xla.slice_index = 1 : index}) -> tensor<32xTYPE>
      attributes {xla.entry, gpu.known_block_size = array<i32: 4, 1, 1>, gpu.known_grid_size = array<i32: 2, 1, 1>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %pad = arith.constant PAD : TYPE
    %t = gpu.thread_id x {xla.range = [0 : index, 3 : index]}
    %b = gpu.block_id x {xla.range = [0 : index, 1 : index]}
    %base = xla_gpu.apply_indexing #map(%t, %b)
BODY
    return %result : tensor<32xTYPE>
  }
}
"""

# The kernel writes `in` reversed, four elements a thread, in one of these ways.
SCALAR = """
    %result = scf.for %v = %c0 to %c4 step %c1 iter_args(%iter = %out) -> (tensor<32xTYPE>) {
      %k = xla_gpu.apply_indexing #at(%base, %v)
      %l = xla_gpu.apply_indexing #reverse(%k)
      %p = arith.cmpi ult, %v, %c4 : index
      %n = scf.if %p -> (tensor<32xTYPE>) {
        %x = tensor.extract %in[%l] : tensor<32xTYPE>
        %i = tensor.insert %x into %iter[%k] : tensor<32xTYPE>
        scf.yield %i : tensor<32xTYPE>
      } else {
        scf.yield %iter : tensor<32xTYPE>
      }
      scf.yield %n : tensor<32xTYPE>
    }"""
VECTOR = """
    %zeros = vector.transfer_read %in[%base], %pad {in_bounds = [true]} : tensor<32xTYPE>, vector<4xTYPE>
    %v = scf.for %v = %c0 to %c4 step %c1 iter_args(%iter = %zeros) -> (vector<4xTYPE>) {
      %k = xla_gpu.apply_indexing #at(%base, %v)
      %l = xla_gpu.apply_indexing #reverse(%k)
      %x = tensor.extract %in[%l] : tensor<32xTYPE>
      %n = vector.insert %x, %iter[%v] : TYPE into vector<4xTYPE>
      scf.yield %n : vector<4xTYPE>
    }
    %result = vector.transfer_write %v, %out[%base] {in_bounds = [true]} : vector<4xTYPE>, tensor<32xTYPE>"""

TYPES = {
    "f32": (np.float32, "0.0"),
    "bf16": (ml_dtypes.bfloat16, "0.0"),
    "f64": (np.float64, "0.0"),
    "i64": (np.int64, "0"),
    "i8": (np.int8, "0"),
    "i1": (np.bool_, "false"),
    "f8E4M3FN": (ml_dtypes.float8_e4m3fn, "0.0"),
    "i4": (ml_dtypes.int4, "0"),
    "i2": (ml_dtypes.int2, "0"),
}


def kernel(body: str, type: str) -> str:
    return (
        KERNEL.replace("BODY", body)
        .replace("PAD : TYPE", "false" if type == "i1" else "PAD : TYPE")
        .replace("PAD", TYPES[type][1])
        .replace("TYPE", type)
    )


@pytest.mark.parametrize("type", TYPES)
@pytest.mark.parametrize("body", [SCALAR, VECTOR], ids=["scalar", "vector"])
def test_same_numbers_as_numpy(type: str, body: str):
    """Every element type through loads and stores of one element and of four."""
    dtype = TYPES[type][0]
    values = np.random.default_rng(1).integers(0, 256, 32).astype(np.uint8)
    x = {"i4": values & 15, "i2": values & 3, "i1": values & 1}.get(type, values).astype(
        np.int8 if type == "i8" else dtype
    )
    module = lower(kernel(body, type))
    (result,) = execute(module, [x, np.zeros_like(x)], results=1)
    assert result.tobytes() == x[::-1].tobytes()


@pytest.mark.parametrize("type", ["bf16", "i1", "f8E4M3FN", "i4"])
def test_every_new_op_has_the_location_of_the_op_that_it_stands_for(type: str):
    module, places = after_with_places(kernel(VECTOR, type), LowerTensorsPass())
    assert {op.location for op in module.walk() if op.name == "llvm.store"} == {places["vector.transfer_write"]}
    assert {op.location for op in module.walk() if op.name == "llvm.load"} == {
        places["vector.transfer_read"],
        places["tensor.extract"],
    }


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            """%m = arith.select %p, %t, %u : tensor<8xf32>
               return""",
            "'arith.select' has no lowering on tensors",
        ),
        (
            """%y = tensor.extract %r[%i, %i] : tensor<8x8xf32>
               return""",
            "'tensor.extract' has a tensor that cannot be stored: tensor<8x8xf32>: more than one dimension (xla-flatten-tensors makes",
        ),
        (
            """%y = tensor.extract %d[%i] : tensor<?xf32>
               return""",
            "tensor<?xf32>: its size is not known",
        ),
        (
            """%y = tensor.extract %e[%i] : tensor<8xf32, dense<0> : tensor<1xi64>>
               return""",
            "it has an encoding",
        ),
        (
            """%y = tensor.extract %s[%i] : tensor<8xui8>
               return""",
            "kernels do not store elements of type ui8",
        ),
        (
            """%y = vector.transfer_read %t[%i], %x : tensor<8xf32>, vector<4xf32>
               return""",
            "'vector.transfer_read' may access elements outside the tensor",
        ),
        (
            """%y = vector.transfer_read %n[%i], %z {in_bounds = [true]} : tensor<8xi4>, vector<4xi4>
               return""",
            "'vector.transfer_read' is not known to move whole bytes of i4",
        ),
        (
            """%y = xla_gpu.pure_call @g(%t) : (tensor<8xf32>) -> f32
               return""",
            "'xla_gpu.pure_call' has no lowering on tensors\n    help: run xla-convert-pure-call-ops first",
        ),
        (
            """%y = func.call @h(%t) : (tensor<8xf32>) -> tensor<8xf32>
               return""",
            "'func.call' returns a tensor",
        ),
    ],
)
def test_refuses_by_name(body: str, message: str):
    signature = (
        "%t: tensor<8xf32>, %u: tensor<8xf32>, %x: f32, %i: index, %p: i1, %r: tensor<8x8xf32>, %d: tensor<?xf32>, "
        "%e: tensor<8xf32, dense<0> : tensor<1xi64>>, %s: tensor<8xui8>, %n: tensor<8xi4>, %z: i4"
    )
    text = f"""
        func.func private @g(tensor<8xf32>) -> f32
        func.func private @h(tensor<8xf32>) -> tensor<8xf32>
        func.func @f({signature}) {{
          {body}
        }}"""
    with pytest.raises(Unsupported) as caught:
        lower(text)
    assert caught.value.stage == "xla-lower-tensors"
    assert message in str(caught.value)


def test_updates_that_cannot_happen_in_place_are_refused():
    with pytest.raises(Unsupported) as caught:
        lower("""
            func.func @f(%t: tensor<8xf32>, %x: f32, %i: index) -> tensor<8xf32> {
              %y = tensor.insert %x into %t[%i] : tensor<8xf32> loc("add.1"("f.hlo":3:5))
              %w = tensor.extract %t[%i] : tensor<8xf32> loc("slice.2"("f.hlo":4:5))
              %v = tensor.insert %w into %y[%i] : tensor<8xf32>
              return %v : tensor<8xf32>
            }""")
    assert caught.value.stage == "xla-lower-tensors"
    text = str(caught.value)
    assert "f.hlo:4:5: error: [xla-lower-tensors] tensors of @f cannot be updated in place" in text
    assert "'tensor.extract': it reads an older value" in text
    assert "at slice.2 (f.hlo:4:5)" in text
    assert "note: updated at add.1 (f.hlo:3:5)" in text


def test_indices_must_reach_every_element():
    """2^31 elements need 64-bit indices: a 32-bit one is sign-extended when it becomes an address."""
    text = """
        module attributes {dlti.dl_spec = #dlti.dl_spec<index = 32 : i32>} {
          func.func @f(%t: tensor<SIZExi8>, %i: index) -> i8 {
            %x = tensor.extract %t[%i] : tensor<SIZExi8>
            return %x : i8
          }
        }"""
    lower(text.replace("SIZE", str(2**31 - 1)))
    lower(text.replace("SIZE", str(2**31)).replace("index = 32", "index = 64"))
    with pytest.raises(Unsupported, match="32-bit indices do not reach all its elements"):
        lower(text.replace("SIZE", str(2**31)))


@pytest.mark.parametrize(("type", "kind"), [("s4", ml_dtypes.int4), ("u2", ml_dtypes.uint2)])
def test_shared_elements_that_share_a_byte(type: str, kind: np.dtype[np.generic]) -> None:
    """The least of 3000 elements: six warps put a few bits each into shared memory, by atomic updates, which PTX has of words only."""
    text = f"""m {{ a = {type}[] parameter(0)
      b = {type}[] parameter(1)
      ROOT r = {type}[] minimum(a, b) }}
    f {{ x = {type}[3000] parameter(0)
      z = {type}[] constant(1)
      ROOT r = {type}[] reduce(x, z), dimensions={{0}}, to_apply=m }}
    ENTRY e {{ x = {type}[3000] parameter(0)
      ROOT r = {type}[] fusion(x), kind=kInput, calls=f }}"""
    program, ones = xe.compile(text), np.ones(3000, np.int8)
    one_less = ones.copy()
    one_less[2900] = 0
    for stage in ("flat", "llvm-dialect", "llvm", "ptx"):
        assert [int(program.run_cpu(given.astype(kind), stage=stage)) for given in (one_less, ones)] == [0, 1], stage
