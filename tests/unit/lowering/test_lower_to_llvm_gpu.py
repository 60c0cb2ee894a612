"""To the LLVM dialect: types, launches and ops that are refused; every row accepted by MLIR. GELU: `filecheck/pipelines`, `test_ptx`."""

import re

import numpy as np
import pytest
from tools_here import PTX, here, needs
from xdsl.dialects.builtin import ModuleOp

import xla_emitters as xe
from xla_emitters.dialects.context import make_context, parse_ir
from xla_emitters.errors import Unsupported
from xla_emitters.lowering import lower_to_llvm_gpu
from xla_emitters.lowering.convert_index_type import ConvertIndexTypePass
from xla_emitters.lowering.convert_math_to_libdevice import ConvertMathToLibdevicePass
from xla_emitters.lowering.convert_scf_to_cf import ConvertScfToCfPass
from xla_emitters.lowering.lower_to_llvm_gpu import LowerToLlvmGpuPass
from xla_emitters.lowering.simplify_affine import SimplifyAffinePass
from xla_emitters.lowering.toolchain.toolchain import compile_to_ptx


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


@needs(*PTX)
def test_every_row_becomes_ptx() -> None:
    """Each row of the table, in a function of its own, gets through MLIR's verifier and LLVM's backend, at once."""
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


@needs(*PTX)
def test_rounding_divisions() -> None:
    """Against Python's own floor division; LLVM folds the constants, so the answer is in the optimised IR."""
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


SHIFTS_64 = """
    f {
      x = s64[12] parameter(0)
      by = s64[12] parameter(1)
      left = s64[12] shift-left(x, by)
      right = s64[12] shift-right-logical(x, by)
      half = s64[12] constant({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11})
      arithmetic = s64[12] shift-right-arithmetic(half, by)
      signed = s64[12] shift-right-arithmetic(x, by)
      ROOT out = (s64[12], s64[12], s64[12], s64[12]) tuple(left, right, arithmetic, signed)
    }
    ENTRY e {
      x = s64[12] parameter(0)
      by = s64[12] parameter(1)
      ROOT r = (s64[12], s64[12], s64[12], s64[12]) fusion(x, by), kind=kLoop, calls=f
    }"""


def test_shifts_of_64_bits_by_amounts_of_64_bits() -> None:
    """PTX's amounts have 32 bits. LLVM 22 drops the upper ones where a select guards the shift: 2**32 would shift by nothing."""
    amounts = [0, 1, 63, 64, 2**31, 2**32 - 1, 2**32, 2**32 + 5, 2**40 + 1, 2**63 - 1, -1, -(2**63)]
    numbers = [-(2**63), -5, 2**62 + 3, 7, -1, 1, -(2**62), 2**63 - 1, 3, -3, 1, -1]
    program = xe.compile(SHIFTS_64)
    by = [amount if 0 <= amount < 64 else 64 for amount in amounts]
    bits = [number % 2**64 for number in numbers]
    left = np.array([(x << n) % 2**64 for x, n in zip(bits, by, strict=True)], np.uint64).view(np.int64)
    right = np.array([x >> n for x, n in zip(bits, by, strict=True)], np.uint64).view(np.int64)
    wanted = left, right, [x >> n for x, n in enumerate(by)], [x >> n for x, n in zip(numbers, by, strict=True)]
    for stage in ("llvm-dialect", "llvm", "ptx"):
        results = program.run_cpu(np.array(numbers), np.array(amounts), stage=stage)
        for got, numbers_wanted in zip(results, wanted, strict=True):
            np.testing.assert_array_equal(got, numbers_wanted, stage)


@needs(*PTX)
def test_control_flow_computes() -> None:
    """Loops, a branch, a while and a switch over constants: LLVM folds them all, so their sum is in the PTX."""
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


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("func.func @f(%x: f6E3M2FN) { func.return }", "no LLVM type for f6E3M2FN"),
        (
            "func.func @f(%x: f8E5M2) { %0 = arith.addf %x, %x : f8E5M2\n func.return }",
            "arith.addf computes with floats of eight bits or fewer",
        ),
        (
            "func.func @f(%x: f32) { %0 = arith.truncf %x upward : f32 to bf16\n func.return }",
            "arith.truncf that does not round to nearest even",
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
