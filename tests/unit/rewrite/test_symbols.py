"""A module in another is its own scope: what passes make of a kernel does not depend on the modules around and beside it."""

import textwrap

from unit.dialects.mlir_opt import mlir_reads

from xla_emitters.dialects.context import make_context, parse_ir
from xla_emitters.dialects.mlir_printer import print_ir
from xla_emitters.pipelines.options import CompileOptions
from xla_emitters.pipelines.passes import KERNEL
from xla_emitters.rewrite.kernel_pass import run_pass
from xla_emitters.rewrite.symbols import functions, scopes
from xla_emitters.transforms.insert_pdl import InsertPdlPass

MAP = '#map = #xla_gpu.indexing_map<"(t)[j] -> (7 - t), domain: t in [0, 7], j in [0, 3]">'


def kernel(op: str) -> str:
    """A kernel with shared memory, a table, a function called twice, one called once, a dead one, and a function of libdevice."""
    return f"""
func.func private @twice(%a: tensor<8x4xf32>, %i: index, %j: index) -> f32 {{
  %x = tensor.extract %a[%i, %j] : tensor<8x4xf32>
  %y = {op} %x : f32
  return %y : f32
}}
func.func private @once(%a: f32) -> f32 {{
  %x = arith.addf %a, %a : f32
  return %x : f32
}}
func.func private @dead() {{
  return
}}
func.func @kernel(
    %in: tensor<8x4xf32> {{xla.slice_index = 0 : index, xla.invariant}},
    %out: tensor<8x4xf32> {{xla.slice_index = 1 : index}}
) -> tensor<8x4xf32> attributes {{xla.entry, xla.unroll_factor = 8 : index}} {{
  %t = gpu.thread_id x {{xla.range = [0 : index, 7 : index]}}
  %c0 = arith.constant 0 : index
  %table = arith.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
  %shared = xla_gpu.allocate_shared : tensor<8xf32>
  %u = xla_gpu.pure_call @twice(%in, %t, %c0) : (tensor<8x4xf32>, index, index) -> f32
  %v = xla_gpu.pure_call @once(%u) : (f32) -> f32
  %w = tensor.insert %v into %shared[%t] : tensor<8xf32>
  %ready = xla_gpu.sync_threads %w : tensor<8xf32>
  %r = xla_gpu.loop (%t)[%j] -> (%row) in #map iter_args(%it = %out) -> (tensor<8x4xf32>) {{
    %x = xla_gpu.pure_call @twice(%in, %t, %j) : (tensor<8x4xf32>, index, index) -> f32
    %y = tensor.extract %ready[%row] : tensor<8xf32>
    %z = tensor.extract %table[%j] : tensor<4xf32>
    %p = arith.addf %x, %y : f32
    %q = arith.mulf %p, %z : f32
    %n = tensor.insert %q into %it[%t, %j] : tensor<8x4xf32>
    xla_gpu.yield %n : tensor<8x4xf32>
  }}
  return %r : tensor<8x4xf32>
}}
"""


def lowered(text: str) -> str:
    module, context = parse_ir(f"{MAP}\n{text}"), make_context()
    for row in KERNEL:
        run_pass(row.make(CompileOptions()), context, module, verify=True)
    return print_ir(module)


def test_modules_beside_each_other_are_lowered_as_alone():
    """Their functions, globals and declarations have the same names."""
    exp, log = kernel("math.exp"), kernel("math.log")
    together = lowered(f"gpu.module @a {{{exp}}}\nmodule @b {{{log}}}")
    alone = [lowered(f"module {{{text}}}").removeprefix("module {\n").removesuffix("}") for text in (exp, log)]
    wanted = [textwrap.indent(text, "  ") for text in alone]
    assert together == f"module {{\n  gpu.module @a {{\n{wanted[0]}  }}\n  module @b {{\n{wanted[1]}  }}\n}}"
    assert mlir_reads(together)
    assert together.count("llvm.func @__nv_expf") == together.count("llvm.func @__nv_logf") == 1
    assert "@dead" not in together


def test_a_kernel_waits_wherever_its_module_is():
    module = parse_ir(f"{MAP}\nmodule {{ gpu.module @a {{{kernel('math.exp')}}} }}")
    InsertPdlPass().apply(make_context(), module)
    inner, outer = scopes(module)
    assert not functions(outer)
    first = functions(inner)["kernel"].body.block.first_op
    assert first.name == "xla_gpu.pdl_wait"
