"""The seed's GELU kernel through the passes of this room: the listings that the seed shows, and locations at every step."""

from __future__ import annotations

import re

import pytest
from xdsl.dialects.builtin import FusedLoc, ModuleOp, NameLoc, UnknownLoc
from xdsl.ir import Attribute, Operation

from xla_emitters.dialects.context import make_context, parse_ir
from xla_emitters.dialects.printer import print_ir
from xla_emitters.rewrite.effects import is_constant, is_terminator
from xla_emitters.rewrite.kernel_pass import KernelPass
from xla_emitters.transforms.canonicalize import CanonicalizePass
from xla_emitters.transforms.cse import CsePass
from xla_emitters.transforms.erase_dead_functions import EraseDeadFunctionsPass
from xla_emitters.transforms.flatten_tensors import FlattenTensorsPass
from xla_emitters.transforms.inline import InlinePass
from xla_emitters.transforms.loop_invariant_code_motion import LoopInvariantCodeMotionPass
from xla_emitters.transforms.lower_xla_loops_to_scf import LowerXlaLoopsToScfPass
from xla_emitters.transforms.propagate_slice_indices import PropagateSliceIndicesPass
from xla_emitters.transforms.simplify_arith import SimplifyArithPass
from xla_emitters.transforms.symbol_dce import SymbolDcePass
from xla_emitters.transforms.unswitch_loops import UnswitchLoopsPass

# The seed's first listing, with the attributes that emission writes and the lines of the seed's HLO text.
KERNEL = """
#map = #xla_gpu.indexing_map<"(th_x, bl_x)[vector_index] -> (bl_x floordiv 4096, (bl_x floordiv 8) mod 512, "
  "(bl_x mod 8) * 512 + th_x * 4 + vector_index), "
  "domain: th_x in [0, 127], bl_x in [0, 24575], vector_index in [0, 3]">
module @fusion attributes {dlti.dl_spec = #dlti.dl_spec<index = 32 : i32>} {
  func.func @fusion(
      %input: tensor<6x512x4096xbf16> {llvm.align = 16 : index, llvm.dereferenceable = 25165824 : index,
                                       xla.invariant, xla.slice_index = 0 : index},
      %output: tensor<6x512x4096xbf16> {llvm.align = 256 : index, llvm.dereferenceable = 25165824 : index,
                                        xla.slice_index = 1 : index})
      -> tensor<6x512x4096xbf16> attributes {xla.entry, gpu.known_block_size = array<i32: 128, 1, 1>,
                                             gpu.known_grid_size = array<i32: 24576, 1, 1>} {
    %thread_id_x = gpu.thread_id x {xla.range = [0 : index, 127 : index]} loc("fusion"("gelu.hlo":29:8))
    %block_id_x = gpu.block_id x {xla.range = [0 : index, 24575 : index]} loc("fusion"("gelu.hlo":29:8))
    %xla_loop = xla_gpu.loop (%thread_id_x, %block_id_x)[%vector_index] -> (%dim0, %dim1, %dim2)
        in #map iter_args(%iter = %output) -> (tensor<6x512x4096xbf16>) {
      %pure_call = xla_gpu.pure_call @gelu_multiply_0(%input, %dim0, %dim1, %dim2)
        : (tensor<6x512x4096xbf16>, index, index, index) -> bf16 loc("fusion"("gelu.hlo":29:8))
      %inserted = tensor.insert %pure_call into %iter[%dim0, %dim1, %dim2]
        : tensor<6x512x4096xbf16> loc("multiply_0"("gelu.hlo":24:8))
      xla_gpu.yield %inserted : tensor<6x512x4096xbf16>
    } loc("fusion"("gelu.hlo":29:8))
    return %xla_loop : tensor<6x512x4096xbf16>
  } loc("fusion"("gelu.hlo":29:8))
  func.func private @gelu_multiply_0(%arg0: tensor<6x512x4096xbf16>, %i: index {xla.range = [0 : index, 5 : index]},
      %j: index {xla.range = [0 : index, 511 : index]}, %k: index {xla.range = [0 : index, 4095 : index]}) -> bf16 {
    %extracted = tensor.extract %arg0[%i, %j, %k] : tensor<6x512x4096xbf16> loc("param"("gelu.hlo":5:3))
    %0 = arith.mulf %extracted, %extracted : bf16 loc("square"("gelu.hlo":14:3))
    %1 = arith.mulf %0, %extracted : bf16 loc("cube"("gelu.hlo":15:3))
    %cst = arith.constant 4.467770e-02 : bf16 loc("constant_3"("gelu.hlo":12:3))
    %2 = arith.mulf %1, %cst : bf16 loc("multiply_3"("gelu.hlo":16:3))
    %3 = arith.addf %extracted, %2 : bf16 loc("add_1"("gelu.hlo":17:3))
    %cst_0 = arith.constant 7.968750e-01 : bf16 loc("constant_2"("gelu.hlo":10:3))
    %4 = arith.mulf %3, %cst_0 : bf16 loc("multiply_2"("gelu.hlo":18:3))
    %5 = math.tanh %4 : bf16 loc("tanh_0"("gelu.hlo":19:3))
    %cst_1 = arith.constant 1.000000e+00 : bf16 loc("constant_1"("gelu.hlo":8:3))
    %6 = arith.addf %5, %cst_1 : bf16 loc("add_0"("gelu.hlo":20:3))
    %cst_2 = arith.constant 5.000000e-01 : bf16 loc("constant_0"("gelu.hlo":6:3))
    %extracted_3 = tensor.extract %arg0[%i, %j, %k] : tensor<6x512x4096xbf16> loc("param"("gelu.hlo":5:3))
    %7 = arith.mulf %6, %cst_2 : bf16 loc("multiply_1"("gelu.hlo":21:3))
    %8 = arith.mulf %extracted_3, %7 : bf16 loc("multiply_0"("gelu.hlo":24:8))
    return %8 : bf16
  } loc("gelu"("gelu.hlo":4:1))
} loc("m"("gelu.hlo":1:1))
"""

PIPELINE: tuple[tuple[KernelPass, str | None], ...] = (
    (SimplifyArithPass(), None),
    (CanonicalizePass(), None),
    (CsePass(), None),
    (EraseDeadFunctionsPass(), None),
    (InlinePass(), None),
    (CanonicalizePass(), None),
    (CsePass(), "inlined"),
    (LowerXlaLoopsToScfPass(), "scf"),
    (PropagateSliceIndicesPass(), None),
    (FlattenTensorsPass(), None),
    (LoopInvariantCodeMotionPass(), None),
    (UnswitchLoopsPass(), None),
    (LoopInvariantCodeMotionPass(), "flat"),
    (SymbolDcePass(), None),
)

# What each instruction of the fusion is computed by.
OPS = {
    "square": "arith.mulf",
    "cube": "arith.mulf",
    "multiply_3": "arith.mulf",
    "add_1": "arith.addf",
    "multiply_2": "arith.mulf",
    "tanh_0": "math.tanh",
    "add_0": "arith.addf",
    "multiply_1": "arith.mulf",
    "multiply_0": "arith.mulf",
}


def stage(name: str) -> ModuleOp:
    module, context = parse_ir(KERNEL), make_context()
    for kernel_pass, boundary in PIPELINE:
        kernel_pass.apply(context, module)
        module.verify()
        if boundary == name:
            return module
    raise KeyError(name)


def listing(module: ModuleOp) -> list[str]:
    """The module's text, without function attributes and with the body's ops only, blanks collapsed."""
    lines = [re.sub(r"\s+", " ", line).strip() for line in print_ir(module).splitlines()]
    start = next(i for i, line in enumerate(lines) if line.startswith("%thread_id_x"))
    return [line for line in lines[start:] if line != "}"]


def names_in(location: Attribute) -> set[str]:
    match location:
        case NameLoc():
            return {location.desc.data}
        case FusedLoc():
            return {name for part in location.locations for name in names_in(part)}
        case _:
            return set()


def is_excused(op: Operation) -> bool:
    """Terminators and constants at a function's entry may have no location."""
    return is_terminator(op) or (is_constant(op) and op.parent_op() is not None and op.parent_op().name == "func.func")


def test_every_op_keeps_a_location_after_every_pass():
    """Only terminators and function-level constants may be of unknown origin, and each instruction owns its op."""
    module, context = parse_ir(KERNEL), make_context()
    for kernel_pass, _ in PIPELINE:
        kernel_pass.apply(context, module)
        module.verify()
        lost = [op.name for op in module.walk() if isinstance(op.location, UnknownLoc) and not is_excused(op)]
        assert not lost, f"after {kernel_pass.name}: {lost}"
        for instruction, op_name in OPS.items():
            owned = [op for op in module.walk() if op.name == op_name and instruction in names_in(op.location)]
            assert len(owned) == 1, f"after {kernel_pass.name}: {instruction} owns {len(owned)} {op_name}"


def test_inlined_listing():
    """The seed's listing after the inliner."""
    assert listing(stage("inlined")) == [
        "%thread_id_x = gpu.thread_id x {xla.range = [0 : index, 127 : index]}",
        "%block_id_x = gpu.block_id x {xla.range = [0 : index, 24575 : index]}",
        "%xla_loop = xla_gpu.loop (%thread_id_x, %block_id_x)[%vector_index] -> (%dim0, %dim1, %dim2) in #map "
        "iter_args(%iter = %output) -> (tensor<6x512x4096xbf16>) {",
        "%extracted = tensor.extract %input[%dim0, %dim1, %dim2] : tensor<6x512x4096xbf16>",
        "%0 = arith.mulf %extracted, %extracted : bf16",
        "%1 = arith.mulf %0, %extracted : bf16",
        "%2 = arith.mulf %1, %cst : bf16",
        "%3 = arith.addf %extracted, %2 : bf16",
        "%4 = arith.mulf %3, %cst_0 : bf16",
        "%5 = math.tanh %4 : bf16",
        "%6 = arith.addf %5, %cst_1 : bf16",
        "%7 = arith.mulf %6, %cst_2 : bf16",
        "%8 = arith.mulf %extracted, %7 : bf16",
        "%inserted = tensor.insert %8 into %iter[%dim0, %dim1, %dim2] : tensor<6x512x4096xbf16>",
        "xla_gpu.yield %inserted : tensor<6x512x4096xbf16>",
        "return %xla_loop : tensor<6x512x4096xbf16>",
    ]


def test_scf_listing():
    """The seed's listing of the loop as scf, with its bounds check."""
    assert listing(stage("scf")) == [
        "%thread_id_x = gpu.thread_id x {xla.range = [0 : index, 127 : index]}",
        "%block_id_x = gpu.block_id x {xla.range = [0 : index, 24575 : index]}",
        "%xla_loop = scf.for %vector_index = %c0 to %c4 step %c1 iter_args(%iter = %output) -> (tensor<6x512x4096xbf16>) {",
        "%0 = arith.cmpi sge, %thread_id_x, %c0 : index",
        "%1 = arith.cmpi sle, %thread_id_x, %c127 : index",
        "%2 = arith.andi %0, %1 : i1",
        "%3 = arith.cmpi sge, %block_id_x, %c0 : index",
        "%4 = arith.cmpi sle, %block_id_x, %c24575 : index",
        "%5 = arith.andi %3, %4 : i1",
        "%inbounds = arith.andi %2, %5 : i1",
        "%6 = scf.if %inbounds -> (tensor<6x512x4096xbf16>) {",
        "%dim0 = xla_gpu.apply_indexing #map(%thread_id_x, %block_id_x)[%vector_index]",
        "%dim1 = xla_gpu.apply_indexing #map1(%thread_id_x, %block_id_x)[%vector_index]",
        "%dim2 = xla_gpu.apply_indexing #map2(%thread_id_x, %block_id_x)[%vector_index]",
        "%extracted = tensor.extract %input[%dim0, %dim1, %dim2] : tensor<6x512x4096xbf16>",
        "%7 = arith.mulf %extracted, %extracted : bf16",
        "%8 = arith.mulf %7, %extracted : bf16",
        "%9 = arith.mulf %8, %cst : bf16",
        "%10 = arith.addf %extracted, %9 : bf16",
        "%11 = arith.mulf %10, %cst_0 : bf16",
        "%12 = math.tanh %11 : bf16",
        "%13 = arith.addf %12, %cst_1 : bf16",
        "%14 = arith.mulf %13, %cst_2 : bf16",
        "%15 = arith.mulf %extracted, %14 : bf16",
        "%inserted = tensor.insert %15 into %iter[%dim0, %dim1, %dim2] : tensor<6x512x4096xbf16>",
        "scf.yield %inserted : tensor<6x512x4096xbf16>",
        "} else {",
        "scf.yield %iter : tensor<6x512x4096xbf16>",
        "scf.yield %6 : tensor<6x512x4096xbf16>",
        "return %xla_loop : tensor<6x512x4096xbf16>",
    ]


@pytest.mark.tiny
def test_flat_listing():
    """The seed's listing of flat tensors: one index for the read and the write, and no check that always holds."""
    module = stage("flat")
    assert listing(module) == [
        "%thread_id_x = gpu.thread_id x {xla.range = [0 : index, 127 : index]}",
        "%block_id_x = gpu.block_id x {xla.range = [0 : index, 24575 : index]}",
        "%xla_loop = scf.for %vector_index = %c0 to %c4 step %c1 iter_args(%iter = %output) -> (tensor<12582912xbf16>) {",
        "%dim = xla_gpu.apply_indexing #map(%thread_id_x, %block_id_x, %vector_index)",
        "%extracted = tensor.extract %input[%dim] : tensor<12582912xbf16>",
        "%0 = arith.mulf %extracted, %extracted : bf16",
        "%1 = arith.mulf %0, %extracted : bf16",
        "%2 = arith.mulf %1, %cst : bf16",
        "%3 = arith.addf %extracted, %2 : bf16",
        "%4 = arith.mulf %3, %cst_0 : bf16",
        "%5 = math.tanh %4 : bf16",
        "%6 = arith.addf %5, %cst_1 : bf16",
        "%7 = arith.mulf %6, %cst_2 : bf16",
        "%8 = arith.mulf %extracted, %7 : bf16",
        "%inserted = tensor.insert %8 into %iter[%dim] : tensor<12582912xbf16>",
        "scf.yield %inserted : tensor<12582912xbf16>",
        "return %xla_loop : tensor<12582912xbf16>",
    ]
    assert (
        '#map = #xla_gpu.indexing_map<"(th_x, bl_x, vector_index) -> (th_x * 4 + bl_x * 512 + vector_index), '
        'domain: th_x in [0, 127], bl_x in [0, 24575], vector_index in [0, 3]">'
    ) in print_ir(module)


@pytest.mark.parametrize("kernel_pass", {type(p): p for p, _ in PIPELINE}.values(), ids=lambda p: p.name)
def test_each_pass_alone(kernel_pass: KernelPass):
    """A pass takes the kernel as emission leaves it, from text; what it makes is read back, and every op has a location."""
    module = parse_ir(KERNEL)
    kernel_pass.apply(make_context(), module)
    module.verify()
    again = parse_ir(print_ir(module, locations=True))
    assert not [op.name for op in again.walk() if isinstance(op.location, UnknownLoc) and not is_excused(op)]
