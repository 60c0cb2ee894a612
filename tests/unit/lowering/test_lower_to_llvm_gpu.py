"""To the LLVM dialect: types, launches and ops that are refused; every row accepted by MLIR. GELU: `filecheck/pipelines`, `test_ptx`."""

import re
import subprocess

import pytest
from tools_here import here
from xdsl.dialects.builtin import ModuleOp

from xla_emitters.dialects.context import make_context, parse_ir
from xla_emitters.dialects.mlir import llvm
from xla_emitters.errors import ToolError, Unsupported
from xla_emitters.lowering import lower_to_llvm_gpu
from xla_emitters.lowering.convert_index_type import ConvertIndexTypePass
from xla_emitters.lowering.convert_math_to_libdevice import ConvertMathToLibdevicePass
from xla_emitters.lowering.convert_scf_to_cf import ConvertScfToCfPass
from xla_emitters.lowering.lower_to_llvm_gpu import LowerToLlvmGpuPass
from xla_emitters.lowering.simplify_affine import SimplifyAffinePass
from xla_emitters.lowering.toolchain.toolchain import compile_to_ptx, module_body_text
from xla_emitters.lowering.toolchain.tools import find_tools


def lowered(text: str) -> ModuleOp:
    module, ctx = parse_ir(text), make_context()
    for step in (
        SimplifyAffinePass(),
        ConvertIndexTypePass(),
        ConvertMathToLibdevicePass(),
        ConvertScfToCfPass(),
        LowerToLlvmGpuPass(),
    ):
        step.apply(ctx, module)
        module.verify()
    return module


def skip_without(*names: str) -> None:
    for name, found in find_tools(here()).items():
        if name in names and isinstance(found, ToolError):
            pytest.skip(found.message)


# Operand types of the ops that are not f32 to f32 or i32 to i32.
SIGNATURES = {
    "arith.extf": "(bf16) -> f32",
    "arith.truncf": "(f32) -> bf16",
    "arith.extsi": "(i8) -> i32",
    "arith.extui": "(i8) -> i32",
    "arith.trunci": "(i32) -> i8",
    "arith.sitofp": "(i32) -> f32",
    "arith.uitofp": "(i8) -> bf16",
    "arith.fptosi": "(f64) -> i32",
    "arith.fptoui": "(f16) -> i8",
    "arith.select": "(i1, f32, f32) -> f32",
    "math.copysign": "(bf16, bf16) -> bf16",
    "math.fma": "(f32, f32, f32) -> f32",
    "ub.poison": "() -> f32",
    "vector.fma": "(vector<4xf32>, vector<4xf32>, vector<4xf32>) -> vector<4xf32>",
}
FLOAT_UNARY = (
    "arith.negf",
    "math.absf",
    "math.ceil",
    "math.floor",
    "math.round",
    "math.roundeven",
    "math.sqrt",
    "math.trunc",
)


def signature(name: str) -> str:
    if name in SIGNATURES:
        return SIGNATURES[name]
    if name in FLOAT_UNARY:
        return "(f32) -> f32"
    if name in ("math.absi", "math.ctlz", "math.cttz", "math.ctpop"):
        return "(i32) -> i32"
    return "(f32, f32) -> f32" if name.endswith("f") else "(i32, i32) -> i32"


def test_every_row_becomes_ptx() -> None:
    """Each row of the table, in a function of its own, gets through MLIR's verifier and LLVM's backend, at once."""
    skip_without("mlir-opt")
    functions: list[str] = []
    for name in (*lower_to_llvm_gpu._RENAMED, *lower_to_llvm_gpu._WITH_POISON_FLAG):
        inputs, output = signature(name)[1:].split(") -> ")
        types = inputs.split(", ") if inputs else []
        loads = "".join(f"%{i} = llvm.load %p : !llvm.ptr -> {type}\n" for i, type in enumerate(types))
        operands = ", ".join(f"%{i}" for i in range(len(types)))
        properties = " <{value = #ub.poison}>" if name == "ub.poison" else ""
        functions.append(f"""func.func @k_{name.replace(".", "_")}(%p: !llvm.ptr) attributes {{xla.entry}} {{
          {loads} %r = "{name}"({operands}){properties} : ({inputs}) -> {output}
          llvm.store %r, %p : {output}, !llvm.ptr
          func.return
        }}""")
    ptx = compile_to_ptx(lowered("\n".join(functions)), "sm_75", here())
    assert ptx.count(".visible .entry") == len(functions)


DIVISIONS = [
    (name, x, y)
    for name in ("floordivsi", "ceildivsi", "ceildivui")
    for x in (-7, -6, -1, 0, 1, 6, 7)
    for y in (-3, -1, 1, 2, 3)
    if "u" not in name or (x >= 0 and y > 0)
]


def test_rounding_divisions() -> None:
    """Against Python's own floor division; LLVM folds the constants, so the answer is in the optimised IR."""
    skip_without("mlir-opt", "opt", "mlir-translate", "llc")
    functions = [
        f"""func.func @f{number}(%p: !llvm.ptr) attributes {{xla.entry}} {{
          %x = arith.constant {x} : i32
          %y = arith.constant {y} : i32
          %r = arith.{name} %x, %y : i32
          llvm.store %r, %p : i32, !llvm.ptr
          func.return
        }}"""
        for number, (name, x, y) in enumerate(DIVISIONS)
    ]
    ptx = compile_to_ptx(lowered("\n".join(functions)), "sm_90", here())
    got = [int(text) for text in re.findall(r"st\.global\.b32\s+\[\S+\], (-?\d+);", ptx)]
    wanted = [x // y if name == "floordivsi" else -(-x // y) for name, x, y in DIVISIONS]
    assert got == wanted


def test_mlir_takes_branches_and_switches() -> None:
    skip_without("mlir-opt")
    module = lowered("""
    func.func @f(%x: index, %n: index, %p: !llvm.ptr) attributes {xla.entry} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      scf.for %i = %c0 to %n step %c1 {
        %r = scf.index_switch %x -> i32
        case 2 {
          %a = arith.constant 20 : i32
          scf.yield %a : i32
        }
        case 5 {
          %a = arith.constant 50 : i32
          scf.yield %a : i32
        }
        default {
          %a = arith.constant 0 : i32
          scf.yield %a : i32
        }
        llvm.store %r, %p : i32, !llvm.ptr
      }
      func.return
    }""")
    mlir_opt = find_tools(here())["mlir-opt"]
    assert not isinstance(mlir_opt, ToolError)
    subprocess.run([mlir_opt.path, "-"], input=module_body_text(module), text=True, check=True, capture_output=True)
    ptx = compile_to_ptx(module, "sm_90", here())
    assert "20" in ptx
    assert "50" in ptx


def test_control_flow_computes() -> None:
    """Loops, a branch, a while and a switch over constants: LLVM folds them all, so their sum is in the PTX."""
    skip_without("mlir-opt")
    ptx = compile_to_ptx(
        lowered("""
    func.func @f(%p: !llvm.ptr) attributes {xla.entry} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c6 = arith.constant 6 : index
      %zero = arith.constant 0 : i32
      %ten = arith.constant 10 : i32
      %hundred = arith.constant 100 : i32
      %sum = scf.for %i = %c0 to %c6 step %c1 iter_args(%a = %zero) -> (i32) {
        %inner = scf.for %j = %i to %c6 step %c1 iter_args(%b = %a) -> (i32) {
          %is_even = arith.cmpi eq, %i, %j : index
          %add = scf.if %is_even -> (i32) {
            scf.yield %hundred : i32
          } else {
            %k = scf.index_switch %j -> i32
            case 2 {
              scf.yield %ten : i32
            }
            default {
              %n = arith.index_cast %j : index to i32
              scf.yield %n : i32
            }
            scf.yield %k : i32
          }
          %next = arith.addi %b, %add : i32
          scf.yield %next : i32
        }
        scf.yield %inner : i32
      }
      %doubled = scf.while (%w = %sum) : (i32) -> i32 {
        %limit = arith.constant 5000 : i32
        %go = arith.cmpi slt, %w, %limit : i32
        scf.condition(%go) %w : i32
      } do {
      ^bb0(%w: i32):
        %more = arith.addi %w, %w : i32
        scf.yield %more : i32
      }
      llvm.store %doubled, %p : i32, !llvm.ptr
      func.return
    }"""),
        "sm_90",
        here(),
    )
    wanted = sum(100 if i == j else {2: 10}.get(j, j) for i in range(6) for j in range(i, 6))
    while wanted < 5000:
        wanted += wanted
    assert re.findall(r"st\.global\.b32\s+\[\S+\], (\d+);", ptx) == [str(wanted)]


def test_unreachable_blocks_go() -> None:
    module = lowered("""
    func.func @f(%x: index) {
      cf.br ^end
    ^never(%y: index):
      %z = arith.addi %y, %x : index
      cf.br ^never(%z : index)
    ^end:
      func.return
    }""")
    assert [op.name for op in module.walk()] == ["builtin.module", "llvm.func", "llvm.br", "llvm.return"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("func.func @f(%x: f6E3M2FN) { func.return }", "no LLVM type for f6E3M2FN"),
        (
            "func.func @f(%x: f8E5M2) { %0 = arith.addf %x, %x : f8E5M2\n func.return }",
            "arith.addf computes with floats of eight bits or fewer",
        ),
        ("func.func @f(%x: tensor<4xf32>) { func.return }", "no LLVM type for tensor<4xf32>"),
        ("func.func @f(%x: ui8) { func.return }", "no LLVM type for ui8"),
        ("func.func @f(%x: vector<2x4xf32>) { func.return }", "no LLVM type for vector<2x4xf32>"),
        (
            "func.func @f(%x: i32) { %0, %1 = gpu.shuffle down %x, %x, %x : i32\n func.return }",
            "gpu.shuffle whose width is not a constant from 1 to 32",
        ),
        (
            "func.func @f(%x: i32) { %0 = builtin.unrealized_conversion_cast %x : i32 to f32\n func.return }",
            "a cast of i32 to f32 remains",
        ),
        (
            "func.func @f() attributes {xla.entry, gpu.known_block_size = array<i32: 1024, 2, 1>} { func.return }",
            "a block of 2048 threads; h200 runs 1024 at most",
        ),
    ],
)
def test_refused_by_name(text: str, message: str) -> None:
    with pytest.raises(Unsupported, match=re.escape(message)):
        LowerToLlvmGpuPass().apply(make_context(), parse_ir(text))


def test_narrow_floats_are_integers() -> None:
    """1.0 of f8E4M3FN is 0x38, -2.0 of f4E2M1FN is 0xC; a bitcast to the integer is nothing any more."""
    module = lowered("""
    func.func @f(%x: f8E4M3FN, %p: i1, %i: index) -> (i8) {
      %one = arith.constant 1.0 : f8E4M3FN
      %v = arith.constant dense<[1.0, -2.0]> : vector<2xf4E2M1FN>
      %w = vector.bitcast %v : vector<2xf4E2M1FN> to vector<2xi4>
      %s = arith.select %p, %x, %one : f8E4M3FN
      %b = arith.bitcast %s : f8E4M3FN to i8
      func.return %b : i8
    }""")
    text = str(module)
    assert "f8E4M3FN" not in text
    assert "56 : i8" in text
    assert "dense<[2, -4]> : vector<2xi4>" in text
    assert [op.name for op in module.walk()][2:] == [*["llvm.mlir.constant"] * 2, "llvm.select", "llvm.return"]


def test_linkage() -> None:
    """What is private and has a body is internal, so that LLVM can drop it once it is inlined."""
    module = lowered("""
    func.func private @declared(f32) -> f32
    func.func private @helper(%x: f32) -> f32 { func.return %x : f32 }
    func.func private @said() attributes {llvm.linkage = #llvm.linkage<"linkonce_odr">} { func.return }
    func.func @kernel() attributes {xla.entry} { func.return }
    """)
    found = {op.sym_name.data: op.linkage.linkage.data for op in module.body.ops if isinstance(op, llvm.FuncOp)}
    assert found == {"declared": "external", "helper": "internal", "said": "linkonce_odr", "kernel": "external"}


def test_an_op_without_a_lowering_is_named_with_its_place() -> None:
    text = (
        "func.func @f(%x: vector<2xf32>) -> vector<2xf32> {"
        ' %0 = math.tanh %x : vector<2xf32> loc("tanh_0"("gelu.hlo":19:3))\n func.return %0 : vector<2xf32> }'
    )
    with pytest.raises(Unsupported, match=r"no lowering to LLVM for math.tanh") as raised:
        LowerToLlvmGpuPass().apply(make_context(), parse_ir(text))
    assert raised.value.details == ("at tanh_0 (gelu.hlo:19:3)",)
    assert str(raised.value.place) == "gelu.hlo:19:3"
