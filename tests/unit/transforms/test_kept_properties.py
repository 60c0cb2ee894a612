"""Properties and attributes of an op are kept, or taken into account, by every pass that rebuilds the op.

An unsigned loop, a conversion that rounds otherwise than to nearest even, a division that is exact, a branch's weights: where a pass
drops one of the first two, numbers change.
"""

import numpy as np
import pytest
from unit.runtime.simt.kernels import launch
from xdsl.dialects.builtin import ModuleOp

from xla_emitters.dialects.context import make_context, parse_ir
from xla_emitters.dialects.mlir import scf
from xla_emitters.lowering.convert_index_type import ConvertIndexTypePass
from xla_emitters.lowering.convert_scf_to_cf import ConvertScfToCfPass
from xla_emitters.lowering.lower_tensors import LowerTensorsPass
from xla_emitters.lowering.lower_to_llvm_gpu import LowerToLlvmGpuPass
from xla_emitters.rewrite.accesses import trip_count
from xla_emitters.rewrite.kernel_pass import KernelPass
from xla_emitters.runtime.simt import execute
from xla_emitters.transforms.canonicalize import CanonicalizePass
from xla_emitters.transforms.cse import CsePass
from xla_emitters.transforms.flatten_tensors import FlattenTensorsPass
from xla_emitters.transforms.loop_invariant_code_motion import LoopInvariantCodeMotionPass
from xla_emitters.transforms.optimize_loops import OptimizeLoopsPass
from xla_emitters.transforms.simplify_arith import SimplifyArithPass
from xla_emitters.transforms.unswitch_loops import UnswitchLoopsPass
from xla_emitters.transforms.vectorize_loads_stores import VectorizeLoadsStoresPass


def after(text: str, *passes: KernelPass) -> ModuleOp:
    module, context = parse_ir(text), make_context()
    for each in passes:
        each.apply(context, module)
        module.verify()
    return module


def loop_of(module: ModuleOp) -> scf.ForOp:
    """The only one."""
    (found,) = (op for op in module.walk() if isinstance(op, scf.ForOp))
    return found


def loop(low: int, high: int) -> str:
    """Sums the induction variable, an i8; the unused carried value is there to be dropped."""
    return f"""
func.func @main(%out: tensor<4xi32>) -> tensor<4xi32> attributes {{xla.entry, {launch(4, 1)}}} {{
  %t = gpu.thread_id x {{xla.range = [0 : index, 3 : index]}}
  %low = arith.constant {low} : i8
  %high = arith.constant {high} : i8
  %step = arith.constant 50 : i8
  %zero = arith.constant 0 : i32
  %sum, %unused = scf.for unsigned %i = %low to %high step %step iter_args(%a = %zero, %b = %zero) -> (i32, i32) : i8 {{
    %wide = arith.extui %i : i8 to i32
    %next = arith.addi %a, %wide : i32
    scf.yield %next, %b : i32, i32
  }}
  %r = tensor.insert %sum into %out[%t] : tensor<4xi32>
  return %r : tensor<4xi32>
}}"""


TENSOR_PASSES: tuple[KernelPass, ...] = (
    CanonicalizePass(),
    CsePass(),
    FlattenTensorsPass(),
    LoopInvariantCodeMotionPass(),
    SimplifyArithPass(),
    UnswitchLoopsPass(),
    OptimizeLoopsPass(),
    VectorizeLoadsStoresPass(),
)
LOWERINGS: tuple[KernelPass, ...] = (
    LowerTensorsPass(),
    ConvertIndexTypePass(),
    ConvertScfToCfPass(),
    LowerToLlvmGpuPass(),
)


@pytest.mark.parametrize(("low", "high"), [(0, -6), (-106, -6), (100, -100), (-6, 100), (3, 3), (0, 40)])
def test_an_unsigned_loop_stays_one_after_every_pass(low: int, high: int):
    """Against Python's range of the unsigned numbers."""
    wanted = [sum(range(low % 256, high % 256, 50))] * 4
    text = loop(low, high)
    for count in range(len(TENSOR_PASSES + LOWERINGS) + 1):
        out = np.zeros(4, np.int32)
        execute(after(text, *(TENSOR_PASSES + LOWERINGS)[:count]), [out])
        assert out.tolist() == wanted, count


def test_how_often_an_unsigned_loop_runs_is_not_guessed():
    assert trip_count(loop_of(parse_ir(loop(0, -6)))) is None
    assert trip_count(loop_of(parse_ir(loop(0, 101)))) == 3


ROW = f"""
func.func @main(%in: tensor<64xf32> {{xla.invariant}}, %out: tensor<64xf32>) -> tensor<64xf32>
    attributes {{xla.entry, {launch(16, 1)}}} {{
  %t = gpu.thread_id x {{xla.range = [0 : index, 15 : index]}}
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %r = scf.for unsigned %i = %c0 to %c4 step %c1 iter_args(%o = %out) -> (tensor<64xf32>) {{
    %k = xla_gpu.apply_indexing #xla_gpu.indexing_map<"(a)[v] -> (a * 4 + v), domain: a in [0, 15], v in [0, 3]">(%t)[%i]
    %x = tensor.extract %in[%k] : tensor<64xf32>
    %y = arith.mulf %x, %x : f32
    %w = tensor.insert %y into %o[%k] : tensor<64xf32>
    scf.yield %w : tensor<64xf32>
  }}
  return %r : tensor<64xf32>
}}"""


def test_a_loop_unrolled_in_part_stays_unsigned():
    longer = ROW.replace("constant 4 :", "constant 1024 :").replace("tensor<64x", "tensor<16384x")
    longer = longer.replace("a * 4 + v", "a * 1024 + v").replace("v in [0, 3]", "v in [0, 1023]")
    made = loop_of(after(longer, OptimizeLoopsPass()))
    assert trip_count(made) in range(2, 1024)
    assert "unsignedCmp" in made.properties
