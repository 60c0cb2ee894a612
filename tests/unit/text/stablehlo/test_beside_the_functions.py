"""What stands in a program's text beside its functions and does not change values: locations, ops of other dialects, shardings."""

import re

import numpy as np
import pytest

import xla_emitters as xe
from xla_emitters.errors import ParseError, Unsupported
from xla_emitters.program import Program
from xla_emitters.text.stablehlo import is_stablehlo, parse_stablehlo

X = np.asarray([1, -2, 3, 4], np.float32)
T = "tensor<4xf32>"
LOCATIONS = [
    'loc("f.py":1:2)', 'loc("jit(f)/add"("f.py":1:2 to 3:4))', "loc(#loc1)", "loc(unknown)", "loc(callsite(#loc1 at #loc1))",
    'loc(fused<#di>["a", #loc1])', 'loc(fused<{a = 1 : i64}>[unknown])', 'loc("a"(callsite("b" at "f.py":1:2 to :5)))',
]  # fmt: skip


@pytest.mark.parametrize("location", LOCATIONS)
def test_a_location_may_follow_every_op_argument_and_region(location: str) -> None:
    text = f"""
        #loc1 = loc("f.py":9:9)
        #di = #llvm.di_subprogram<id = distinct[0]<>, name = "f">
        #unit = distinct[1]<#llvm.di_compile_unit<sourceLanguage = DW_LANG_C>>
        module @m {{
          func.func private @nothing({T} {location}) {location}
          func.func private @empty() {{
            return {location}
          }} {location}
          func.func public @main(%x: {T} {location}, %p: tensor<i1> {location}) -> {T} {{
            call @empty() : () -> () {location}
            %t = stablehlo.create_token : !stablehlo.token {location}
            %u = "stablehlo.after_all"() : () -> !stablehlo.token {location}
            %zero = stablehlo.constant dense<0.0> : tensor<f32> {location}
            %n = stablehlo.iota dim = 0 : {T} {location}
            %sum = stablehlo.reduce(%x init: %zero) across dimensions = [0] : ({T}, tensor<f32>) -> tensor<f32>
              reducer(%a: tensor<f32> {location}, %b: tensor<f32> {location}) {{
                %s = stablehlo.add %a, %b : tensor<f32> {location}
                stablehlo.return %s : tensor<f32> {location}
              }} {location}
            %both = "stablehlo.if"(%p) ({{
              stablehlo.return %n : {T} {location}
            }}, {{
              stablehlo.return %x : {T} {location}
            }}) : (tensor<i1>) -> {T} {location}
            %w = shape.const_witness true {location}
            %y = shape.assuming %w -> ({T}) {{
              shape.assuming_yield %both : {T} {location}
            }} {location}
            %all = stablehlo.broadcast_in_dim %sum, dims = [] : (tensor<f32>) -> {T} {location}
            %r = stablehlo.add %y, %all : {T} {location}
            return %r : {T} {location}
          }} {location}
        }} {location}
    """
    program = xe.compile(text)
    np.testing.assert_array_equal(program(X, np.asarray(True)), np.arange(4) + X.sum())
    np.testing.assert_array_equal(program(X, np.asarray(False)), X + X.sum())


BESIDE = """
llvm.module_flags [#llvm.mlir.module_flag<warning, "Debug Info Version", 3 : i32>]
====
llvm.mlir.global internal constant @text("a { ( [\\00") {addr_space = 0 : i32} : !llvm.array<8 x i8>
====
llvm.mlir.global external @g() {addr_space = 0 : i32} : i32 {
    %0 = llvm.mlir.constant(1 : i32) : i32
    llvm.return %0 : i32
  }
====
llvm.func @puts(!llvm.ptr) -> i32
====
llvm.func internal @f(%arg0: !llvm.ptr) attributes {passthrough = ["nounwind"]} {
    llvm.br ^bb1
  ^bb1:
    llvm.return
  }
====
ml_program.global private mutable @state(dense<0.0> : tensor<4xf32>) : tensor<4xf32>
====
transform.named_sequence @__transform_main(%m: !transform.any_op {transform.readonly})
    attributes {a.b} {
    transform.yield
  }
====
gpu.module @kernels {
    gpu.func @k() kernel {
      gpu.return
    }
  }
====
memref.global "private" constant @w : memref<2xf32> = dense<[1.0, 2.0]>
====
"llvm.mlir.global"() <{global_type = i32, sym_name = "h", linkage = #llvm.linkage<internal>}> ({
  }) : () -> ()
====
shape.function_library @lib {
    func @f(%a: !shape.size) -> !shape.size {
      return %a : !shape.size
    }
  } mapping {
    foo.op = @f
  }
====
sdy.mesh @mesh = <["x"=2, "y"=1], device_ids=[1, 0]>
====
irdl.dialect @d {
  }
""".strip().split("\n====\n")


@pytest.mark.parametrize("op", BESIDE)
@pytest.mark.parametrize("before", [False, True])
@pytest.mark.parametrize("location", ["", " loc(unknown)"])
def test_an_op_of_another_dialect_is_skipped(op: str, before: bool, location: str) -> None:
    function = f"func.func @main(%x: {T}) -> {T} {{\n    %r = stablehlo.add %x, %x : {T}\n    return %r : {T}\n  }}"
    op += location
    ops = [op, op.replace("@", "@an"), function] if before else [function, op]
    attributes = (
        'dlti.dl_spec = #dlti.dl_spec<"dlti.endianness" = "little", i64 = dense<64> : vector<2xi64>>, llvm.triple = ""'
    )
    text = (
        f"#set = affine_set<(d0) : (d0 - 1 >= 0)>\nmodule attributes {{{attributes}}} {{\n  " + "\n  ".join(ops) + "\n}"
    )
    program = xe.compile(text)
    np.testing.assert_array_equal(program(X), X + X)
    name = op.partition(" ")[0].partition("(")[0]
    assert isinstance(program, Program)
    remarks = [remark for remark in program.compilation.passes.remarks if remark.pass_name == "read"]
    assert len(remarks) == (not name.startswith("sdy"))
    assert all(name in remark.text and ("<hlo>:3:3" if before else "<hlo>:7:3") in remark.text for remark in remarks)


def test_a_call_of_an_op_that_is_skipped_names_it() -> None:
    text = f"""module {{
      func.func @main(%x: {T}) -> {T} {{
        %r = call @f(%x) : ({T}) -> {T}
        return %r : {T}
      }}
      llvm.func internal @f(!llvm.ptr) -> i32
    }}"""
    with pytest.raises(Unsupported, match=r"@f is 'llvm.func', which is not taken") as found:
        parse_stablehlo(text)
    assert [place.line for place, _ in found.value.notes if place] == [6]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("module {\n  llvm.func @main()\n}", "no function in this text"),
        ("module {\n  stablehlo.add %a, %b : tensor<f32>\n}", "expected a function"),
        ("module {\n  add\n}", "expected a function"),
        ("llvm.func @main() {\n", "no function in this text"),
    ],
)
def test_a_text_without_functions_is_none(text: str, said: str) -> None:
    with pytest.raises(ParseError, match=said):
        parse_stablehlo(text)


@pytest.mark.parametrize(
    "text",
    [
        "vhlo.func_v1 @main(%a: !vhlo.tensor_v1<4x!vhlo.f32_v1>) -> (!vhlo.tensor_v1<4x!vhlo.f32_v1>) {\n}",
        'module {\n  "vhlo.func_v1"() <{sym_name = #vhlo.string_v1<"main">}> ({\n  }) : () -> ()\n}',
        f'func.func @main(%x: {T}) -> {T} {{\n  %0 = "vhlo.add_v1"(%x, %x) : ({T}, {T}) -> {T}\n  return %0 : {T}\n}}',
    ],
)
def test_vhlo_is_named_with_the_way_out(text: str) -> None:
    assert is_stablehlo(text)
    with pytest.raises(Unsupported, match=r'vhlo\.\w+_v1"? is of VHLO') as found:
        parse_stablehlo(text)
    assert "--vhlo-legalize-to-stablehlo" in found.value.help
    assert found.value.place is not None


# ------------------------------------------------------------------------------------------------------------------ Shardy

SHARDING = '#sdy.sharding<@mesh, [{"x":(1)2, ?}p1], replicated={"y"}>'


def manual(operand: str, inner: str, result: str, *, generic: bool = False) -> str:
    cut = '[<@mesh, [{"x"}]>]'
    body = f"%1 = stablehlo.negate %arg1 : {inner}\n      sdy.return %1 : {inner}"
    pretty = f"""%0 = sdy.manual_computation(%x) in_shardings={cut} out_shardings={cut} manual_axes={{"x"}} (%arg1: {inner}) {{
      {body}
    }} : ({operand}) -> {result}"""
    other = f"""%0 = "sdy.manual_computation"(%x) <{{in_shardings = #sdy.sharding_per_value<{cut}>, manual_axes = #sdy<manual_axes{{"x"}}>,
      out_shardings = #sdy.sharding_per_value<{cut}>}}> ({{
    ^bb0(%arg1: {inner}):
      {body}
    }}) : ({operand}) -> {result}"""
    return f"""module {{
  sdy.mesh @mesh = <["x"=1]>
  func.func @main(%x: {operand} {{sdy.sharding = {SHARDING}}}) -> ({result} {{sdy.sharding = {SHARDING}}}) {{
    {other if generic else pretty}
    return %0 : {result}
  }}
}}"""


@pytest.mark.parametrize("generic", [False, True])
def test_a_manual_computation_of_whole_arrays_is_its_region(generic: bool) -> None:
    np.testing.assert_array_equal(xe.compile(manual(T, T, T, generic=generic))(X), -X)


@pytest.mark.parametrize("generic", [False, True])
def test_a_manual_computation_of_parts_is_refused_by_name(generic: bool) -> None:
    said = r"'sdy.manual_computation' is not taken: its region runs on each of several devices: tensor<4xf32> is cut to tensor<2xf32>"
    with pytest.raises(Unsupported, match=re.escape(said)):
        parse_stablehlo(manual(T, "tensor<2xf32>", T, generic=generic))


def test_what_marks_shardings_keeps_values() -> None:
    text = f"""module {{
      sdy.mesh @mesh = <["x"=2]>
      func.func @main(%x: {T}) -> {T} {{
        %m = stablehlo.custom_call @Sharding(%x) {{mhlo.sharding = "{{devices=[2]<=[2]}}"}} : ({T}) -> {T}
        %0 = sdy.sharding_constraint %m <@mesh, [{{"x"}}]> : {T}
        %1 = sdy.reshard %0 <@mesh, [{{}}]> : {T}
        %2 = sdy.propagation_barrier %1 allowed_direction=NONE : {T}
        sdy.sharding_group %2 group_id=7 : {T}
        %3 = sdy.data_flow_edge %2 sharding=<@mesh, [{{"x", ?}}]> : {T}
        %4 = sdy.named_computation<"f">(%3) in_shardings=[<@mesh, [{{}}]>] out_shardings=[<@mesh, [{{}}]>] (%a: {T}) {{
          %5 = stablehlo.add %a, %x {{sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{{}}]>]>}} : {T}
          sdy.return %5 : {T}
        }} : ({T}) -> {T}
        return %4 : {T}
      }}
    }}"""
    np.testing.assert_array_equal(xe.compile(text)(X), X + X)
