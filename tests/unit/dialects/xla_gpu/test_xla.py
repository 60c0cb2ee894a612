"""Today's XLA's spelling is read into our ops; all that the real XLA prints for GELU can be read."""

import pytest

from xla_emitters.dialects.context import parse_ir
from xla_emitters.dialects.mlir_printer import UPSTREAM_NAMES, print_ir
from xla_emitters.dialects.xla_gpu.xla import SPELLINGS, BackendKindAttr
from xla_emitters.errors import ParseError

# What XLA prints before its first pass for a fusion of one element-wise op on f32[256], in its own spelling.
FIRST = """
#indexing_map = #xla.indexing_map<"(th_x, th_y, th_z, bl_x, bl_y, bl_z)[s0] -> (th_x * 2 + s0), domain: th_x in [0, 127], th_y in [0, 0], th_z in [0, 0], bl_x in [0, 0], bl_y in [0, 0], bl_z in [0, 0], s0 in [0, 1]">
module @fusion_kernel_module attributes {dlti.dl_spec = #dlti.dl_spec<index = 32 : i32>} {
  func.func @fusion(%arg0: tensor<256xf32> {llvm.align = 16 : index, xla.invariant, xla.slice_index = 0 : index}, %arg1: tensor<256xf32> {xla.slice_index = 1 : index}) -> tensor<256xf32> attributes {xla.backend_kind = #xla.backend_kind<gpu>, xla.entry} {
    %0 = xla.workgroup_id x {xla.range = [0 : index, 0 : index]}
    %1 = xla.workgroup_id y
    %2 = xla.workgroup_id z
    %3 = scf.forall (%arg2, %arg3, %arg4) in (128, 1, 1) shared_outs(%arg5 = %arg1) -> (tensor<256xf32>) {
      %xla_loop = xla.loop (%arg2, %arg3, %arg4, %0, %1, %2)[%i] -> (%ra) in #indexing_map iter_args(%iter = %arg5) -> (tensor<256xf32>) {
        %pure_call = xla.pure_call @g(%arg0, %ra) : (tensor<256xf32>, index) -> f32
        %inserted = tensor.insert %pure_call into %iter[%ra] : tensor<256xf32>
        xla.yield %inserted : tensor<256xf32>
      }
      scf.forall.in_parallel {
        tensor.parallel_insert_slice %xla_loop into %arg5[0] [256] [1] : tensor<256xf32> into tensor<256xf32>
      }
    }
    return %3 : tensor<256xf32>
  }
  func.func private @g(%arg0: tensor<256xf32>, %arg1: index {xla.range = [0 : index, 255 : index]}) -> f32 attributes {llvm.linkage = #llvm.linkage<internal>} {
    %extracted = tensor.extract %arg0[%arg1] : tensor<256xf32>
    return %extracted : f32
  }
}
"""  # noqa: E501


def test_what_xla_prints_first_is_read_and_printed_back():
    module = parse_ir(FIRST)
    assert {op.name for op in module.walk() if op.name.startswith("xla")} == {
        "xla.workgroup_id",
        "xla_gpu.loop",
        "xla_gpu.pure_call",
        "xla_gpu.yield",
    }
    assert print_ir(module, spelling="upstream").split() == FIRST.split()


def test_the_generic_form_is_read_too():
    module = parse_ir(FIRST)
    upstream = print_ir(module, spelling="upstream", generic=True)
    assert '"xla.loop"(' in upstream
    # XLA prints an invalid module in this form, as that of a clamp with scalar bounds.
    assert '"xla.workgroup_id"() <{dimension = #xla<dim y>}>' in upstream
    assert print_ir(parse_ir(upstream)) == print_ir(module)


def test_printer_and_reader_know_the_same_spellings():
    assert {ours: theirs for theirs, ours in UPSTREAM_NAMES.items()} == {
        name: op.name for name, op in SPELLINGS.items()
    }


@pytest.mark.parametrize("kind", ["cpu", "gpu", "tpu"])
def test_backend_kinds(kind: str):
    module = parse_ir(f"module attributes {{k = #xla.backend_kind<{kind}>}} {{}}")
    assert isinstance(module.attributes["k"], BackendKindAttr)
    assert f"#xla.backend_kind<{kind}>" in print_ir(module)


def test_an_unknown_backend_kind_is_refused():
    with pytest.raises(ParseError):
        parse_ir("module attributes {k = #xla.backend_kind<abacus>} {}")
