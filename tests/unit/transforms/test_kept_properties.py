"""Properties and attributes of an op are kept, or taken into account, by every pass that rebuilds the op.

An unsigned loop, a conversion that rounds otherwise than to nearest even, a division that is exact, a branch's weights: where a pass
drops one of the first two, numbers change.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from unit.runtime.simt.kernels import launch
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from xla_emitters.dialects.context import make_context, parse_ir
from xla_emitters.dialects.mlir import arith, cf, scf
from xla_emitters.dialects.printer import print_ir
from xla_emitters.errors import Unsupported
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


def ops_of(module: ModuleOp, kind: type[Operation]) -> Sequence[Operation]:
    return [op for op in module.walk() if isinstance(op, kind)]


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


def test_an_unsigned_loop_without_its_unused_values_is_unsigned():
    (made,) = ops_of(after(loop(0, -6), CanonicalizePass()), scf.ForOp)
    assert "unsignedCmp" in made.properties
    assert len(made.results) == 1


def test_how_often_an_unsigned_loop_runs_is_not_guessed():
    (negative,) = ops_of(parse_ir(loop(0, -6)), scf.ForOp)
    (positive,) = ops_of(parse_ir(loop(0, 101)), scf.ForOp)
    assert isinstance(negative, scf.ForOp)
    assert isinstance(positive, scf.ForOp)
    assert (trip_count(negative), trip_count(positive)) == (None, 3)


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


def test_a_vectorized_loop_stays_unsigned():
    module = after(ROW, VectorizeLoadsStoresPass())
    (made,) = ops_of(module, scf.ForOp)
    assert "unsignedCmp" in made.properties
    assert "vector.transfer_write" in print_ir(module)


def test_a_loop_unrolled_in_part_stays_unsigned():
    longer = ROW.replace("constant 4 :", "constant 1024 :").replace("tensor<64x", "tensor<16384x")
    longer = longer.replace("a * 4 + v", "a * 1024 + v").replace("v in [0, 3]", "v in [0, 1023]")
    (made,) = ops_of(after(longer, OptimizeLoopsPass()), scf.ForOp)
    assert isinstance(made, scf.ForOp)
    assert trip_count(made) in range(2, 1024)
    assert "unsignedCmp" in made.properties


def test_a_region_that_asks_to_be_kept_is_kept():
    text = """
    func.func @f(%a: i32) -> i32 {
      %r = scf.execute_region -> i32 KEPT {
        %b = arith.muli %a, %a : i32
        scf.yield %b : i32
      }
      return %r : i32
    }"""
    assert len(ops_of(after(text.replace("KEPT", "no_inline"), CanonicalizePass()), scf.ExecuteRegionOp)) == 1
    assert not ops_of(after(text.replace("KEPT", ""), CanonicalizePass()), scf.ExecuteRegionOp)


ROUNDING = """
func.func @f() -> bf16 {
  %a = arith.constant 1.001 : f32
  %r = arith.truncf %a MODE : f32 to bf16
  return %r : bf16
}"""


@pytest.mark.parametrize(("mode", "is_folded"), [("", True), ("to_nearest_even", True), ("upward", False)])
def test_a_conversion_that_rounds_otherwise_is_not_folded(mode: str, is_folded: bool):
    module = after(ROUNDING.replace("MODE", mode), CanonicalizePass())
    assert (not ops_of(module, arith.TruncFOp)) is is_folded


def test_a_conversion_that_rounds_otherwise_is_refused_by_llvm():
    with pytest.raises(Unsupported, match=r"arith\.truncf that does not round to nearest even"):
        after(ROUNDING.replace("MODE", "upward"), LowerToLlvmGpuPass())


def test_flags_of_integers_reach_llvm():
    text = """
    func.func @f(%a: i32, %b: i32, %v: vector<4xi1>, %x: vector<4xi32>) -> i32 {
      %0 = arith.shrui %a, %b exact : i32
      %1 = arith.divsi %0, %b exact : i32
      %2 = arith.trunci %1 overflow<nsw> : i32 to i8
      %3 = arith.extui %2 : i8 to i32
      %4 = arith.select %v, %x, %x : vector<4xi1>, vector<4xi32>
      %5 = arith.index_cast %4 : vector<4xi32> to vector<4xindex>
      return %3 : i32
    }"""
    module = after(text, LowerToLlvmGpuPass())
    found = {op.name: op for op in module.walk()}
    assert "isExact" in found["llvm.lshr"].properties
    assert "isExact" in found["llvm.sdiv"].properties
    assert "overflowFlags" in found["llvm.trunc"].properties
    assert "llvm.select" in found


def test_a_branchs_weights_reach_llvm():
    text = """
    func.func @f(%c: i1) {
      cf.cond_br %c weights([1, 2000]), ^bb1, ^bb2
    ^bb1:
      cf.br ^bb2
    ^bb2:
      return
    }"""
    assert ops_of(parse_ir(text), cf.ConditionalBranchOp)
    (made,) = [op for op in after(text, LowerToLlvmGpuPass()).walk() if op.name == "llvm.cond_br"]
    assert "branch_weights" in made.properties
