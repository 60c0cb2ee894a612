"""Each op as an instruction of LLVM IR: what `mlir-translate` of LLVM 22 makes of it, as LLVM reads both; and what is refused."""

from __future__ import annotations

import re
import subprocess
from functools import cache
from importlib import import_module
from typing import Any

import pytest
from tools_here import here, needs

from xla_emitters.dialects.context import parse_ir
from xla_emitters.dialects.mlir import nvvm
from xla_emitters.errors import Unsupported
from xla_emitters.lowering.llvm_ir.instructions import ROWS
from xla_emitters.lowering.llvm_ir.printer import print_llvm_ir
from xla_emitters.lowering.toolchain.tools import find_tool

ARGUMENTS = (
    "%p: !llvm.ptr, %q: !llvm.ptr<3>, %i: i32, %j: i64, %k: i8, %c: i1, %x: f32, %d: f64, %h: f16, %b: bf16, "
    "%v: vector<4xf32>, %u: vector<2xf32>, %w: vector<4xi32>, %m: vector<4xi1>, %s: !llvm.struct<(f32, i1)>"
)


def unary(*names: str) -> str:
    return "\n".join(f"%g{k} = llvm.intr.{n}(%x) : (f32) -> f32" for k, n in enumerate(names))


def binary(kind: str, value: str, *names: str, of: str = "llvm.intr.") -> str:
    return "\n".join(
        f'%b{k} = "{of}{name}"({value}, {value}) : ({kind}, {kind}) -> {kind}' for k, name in enumerate(names)
    )


def reductions(value: str, vector: str, scalar: str, *names: str) -> str:
    return "\n".join(
        f'%r{k} = "llvm.intr.vector.reduce.{name}"({value}) : ({vector}) -> {scalar}' for k, name in enumerate(names)
    )


OVERFLOWS = [f"{sign}{name}.with.overflow" for sign in "su" for name in ("add", "sub", "mul")]
CODE = {
    "integers": binary("i32", "%i", "add", "sub", "mul", "udiv", "sdiv", "urem", "srem", "and", "or", "xor", of="llvm.")
    + """
      %0 = llvm.add %i, %i overflow<nsw, nuw> : i32
      %1 = llvm.shl %i, %i overflow<nuw> : i32
      %2 = llvm.lshr exact %i, %i : i32
      %3 = llvm.ashr %i, %i : i32
      %4 = llvm.or disjoint %i, %i : i32
      %5 = llvm.udiv exact %w, %w : vector<4xi32>
      %6 = llvm.icmp "slt" %i, %i : i32
      %7 = llvm.icmp "uge" %w, %w : vector<4xi32>
      %8 = llvm.icmp "eq" %p, %p : !llvm.ptr""",
    "floats": binary("f32", "%x", "fadd", "fsub", "fmul", "fdiv", "frem", of="llvm.")
    + """
      %0 = llvm.fadd %b, %b {fastmathFlags = #llvm.fastmath<nnan, nsz, contract>} : bf16
      %1 = llvm.fmul %v, %v {fastmathFlags = #llvm.fastmath<fast>} : vector<4xf32>
      %2 = llvm.fneg %d : f64
      %3 = llvm.fcmp "olt" %x, %x : f32
      %4 = llvm.fcmp "une" %v, %v {fastmathFlags = #llvm.fastmath<ninf>} : vector<4xf32>
      %5 = llvm.fcmp "_true" %x, %x : f32
      %6 = llvm.select %c, %x, %x : i1, f32
      %7 = llvm.select %m, %v, %v : vector<4xi1>, vector<4xf32>
      %8 = llvm.freeze %x : f32""",
    "casts": """
      %0 = llvm.trunc %i overflow<nsw> : i32 to i16
      %1 = llvm.zext nneg %k : i8 to i32
      %2 = llvm.sext %k : i8 to i64
      %3 = llvm.fptrunc %x : f32 to bf16
      %4 = llvm.fpext %h : f16 to f64
      %5 = llvm.fptosi %x : f32 to i32
      %6 = llvm.fptoui %v : vector<4xf32> to vector<4xi32>
      %7 = llvm.sitofp %i : i32 to f16
      %8 = llvm.uitofp nneg %i : i32 to f32
      %9 = llvm.bitcast %v : vector<4xf32> to i128
      %10 = llvm.inttoptr %j : i64 to !llvm.ptr
      %11 = llvm.ptrtoint %p : !llvm.ptr to i64
      %12 = llvm.addrspacecast %q : !llvm.ptr<3> to !llvm.ptr""",
    "parts": """
      %0 = llvm.extractelement %v[%i : i32] : vector<4xf32>
      %1 = llvm.insertelement %x, %v[%j : i64] : vector<4xf32>
      %2 = llvm.shufflevector %v, %v [3, -1, 4] : vector<4xf32>
      %3 = llvm.extractvalue %s[1] : !llvm.struct<(f32, i1)>
      %4 = llvm.insertvalue %x, %s[0] : !llvm.struct<(f32, i1)>""",
    "addresses": """
      %0 = llvm.getelementptr inbounds %p[%i] : (!llvm.ptr, i32) -> !llvm.ptr, bf16
      %1 = llvm.getelementptr nusw|nuw %p[%j] : (!llvm.ptr, i64) -> !llvm.ptr, f32
      %2 = llvm.getelementptr %q[0, %i, 2] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, !llvm.array<4 x struct<(f32, i32, i8)>>
      %3 = llvm.alloca %i x f32 {alignment = 16 : i64} : (i32) -> !llvm.ptr
      %4 = llvm.alloca %i x i8 : (i32) -> !llvm.ptr<5>""",
    "memory": """
      %0 = llvm.load %p : !llvm.ptr -> f32
      %1 = llvm.load volatile %p invariant {alignment = 8 : i64} : !llvm.ptr -> vector<4xbf16>
      %2 = llvm.load %p {nontemporal} : !llvm.ptr -> i8
      %3 = llvm.load %p atomic syncscope("agent") acquire {alignment = 4 : i64} : !llvm.ptr -> i32
      llvm.store %x, %q : f32, !llvm.ptr<3>
      llvm.store volatile %v, %p {alignment = 4 : i64, nontemporal} : vector<4xf32>, !llvm.ptr
      llvm.store %i, %p atomic release {alignment = 4 : i64} : i32, !llvm.ptr""",
    "atomics": """
      %0 = llvm.atomicrmw _and %p, %i syncscope("agent") monotonic {alignment = 4 : i64} : !llvm.ptr, i32
      %1 = llvm.atomicrmw volatile fadd %p, %x acq_rel : !llvm.ptr, f32
      %2 = llvm.atomicrmw umax %q, %j seq_cst : !llvm.ptr<3>, i64
      %3 = llvm.cmpxchg weak volatile %p, %i, %i syncscope("block") acq_rel monotonic : !llvm.ptr, i32
      %4 = llvm.cmpxchg %p, %i, %i seq_cst seq_cst {alignment = 8 : i64} : !llvm.ptr, i32
      llvm.fence syncscope("agent") seq_cst
      llvm.fence release""",
    "calls": """
      %0 = llvm.call @callee(%x) {fastmathFlags = #llvm.fastmath<nsz>} : (f32) -> f32
      %1 = llvm.call tail %p(%x) : !llvm.ptr, (f32 {llvm.noundef}) -> f32
      %2 = llvm.call @callee(%x) {no_unwind, will_return, convergent} : (f32) -> (f32 {llvm.noundef})
      %3 = llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz.f"(%x) : (f32) -> f32
      llvm.call @nothing() {memory_effects = #llvm.memory_effects<other = none, argMem = read, inaccessibleMem = none,
        errnoMem = none, targetMem0 = none, targetMem1 = none>} : () -> ()
      %true = llvm.mlir.constant(true) : i1
      llvm.intr.assume %true ["align"(%p, %i : !llvm.ptr, i32)] : i1
      %5 = llvm.inline_asm has_side_effects "atom.global.v2.f32.add {$0, $1}, [$2], {$3, $4};", "=f,=f,l,f,f" %p, %x, %x
        : (!llvm.ptr, f32, f32) -> !llvm.struct<(f32, f32)>
      llvm.inline_asm has_side_effects is_align_stack asm_dialect = intel "nop \\22a\\22", "" : () -> ()""",
    "functions of floats": unary(
        *("fabs", "ceil", "cos", "exp", "floor", "exp2", "log", "log2", "sin", "sqrt", "acos", "asin", "atan"),
        *("cosh", "exp10", "log10", "nearbyint", "rint", "round", "roundeven", "sinh", "tan", "tanh", "trunc"),
    )
    + "\n"
    + binary("f32", "%x", "copysign", "pow", "maxnum", "minnum", "atan2", "maximum", "minimum")
    + """
      %f0 = llvm.intr.fma(%x, %x, %x) {fastmathFlags = #llvm.fastmath<contract>} : (f32, f32, f32) -> f32
      %f1 = llvm.intr.fmuladd(%v, %v, %v) : (vector<4xf32>, vector<4xf32>, vector<4xf32>) -> vector<4xf32>
      %f2 = llvm.intr.powi(%x, %i) : (f32, i32) -> f32
      %f3 = llvm.intr.ldexp(%x, %i) : (f32, i32) -> f32
      %f4 = llvm.intr.lrint(%x) : (f32) -> i32
      %f5 = llvm.intr.llrint(%x) : (f32) -> i64
      %f6 = llvm.intr.lround(%x) : (f32) -> i32
      %f7 = llvm.intr.llround(%x) : (f32) -> i64
      %f8 = llvm.intr.frexp(%x) : (f32) -> !llvm.struct<(f32, i32)>
      %f9 = llvm.intr.sincos(%x) : (f32) -> !llvm.struct<(f32, f32)>
      %f10 = "llvm.intr.is.fpclass"(%x) <{bit = 3 : i32}> : (f32) -> i1""",
    "functions of integers": binary("i32", "%i", "smax", "smin", "umax", "umin", "sadd.sat", "uadd.sat", "ssub.sat")
    + "\n"
    + binary("vector<4xi32>", "%w", "usub.sat", "sshl.sat", "ushl.sat").replace("%b", "%n")
    + "\n"
    + "\n".join(
        f'%o{k} = "llvm.intr.{name}"(%i, %i) : (i32, i32) -> !llvm.struct<(i32, i1)>'
        for k, name in enumerate(OVERFLOWS)
    )
    + """
      %0 = llvm.intr.bitreverse(%i) : (i32) -> i32
      %1 = llvm.intr.bswap(%i) : (i32) -> i32
      %2 = llvm.intr.ctpop(%w) : (vector<4xi32>) -> vector<4xi32>
      %3 = llvm.intr.fshl(%i, %i, %i) : (i32, i32, i32) -> i32
      %4 = llvm.intr.fshr(%i, %i, %i) : (i32, i32, i32) -> i32
      %5 = "llvm.intr.ctlz"(%i) <{is_zero_poison = false}> : (i32) -> i32
      %6 = "llvm.intr.cttz"(%i) <{is_zero_poison = true}> : (i32) -> i32
      %7 = "llvm.intr.abs"(%i) <{is_int_min_poison = false}> : (i32) -> i32
      %8 = llvm.intr.scmp(%i, %i) : (i32, i32) -> i8
      %9 = llvm.intr.ucmp(%i, %i) : (i32, i32) -> i8
      %10 = llvm.intr.expect %i, %i : i32
      %11 = llvm.intr.expect.with.probability %i, %i, 5.000000e-01 : i32""",
    "vectors": reductions(
        "%w", "vector<4xi32>", "i32", "add", "mul", "and", "or", "xor", "smax", "smin", "umax", "umin"
    )
    + "\n"
    + reductions("%v", "vector<4xf32>", "f32", "fmax", "fmin", "fmaximum", "fminimum").replace("%r", "%f")
    + """
      %0 = llvm.intr.vector.extract %v[2] : vector<2xf32> from vector<4xf32>
      %1 = llvm.intr.vector.insert %u, %v[2] : vector<2xf32> into vector<4xf32>
      %2 = "llvm.intr.vector.interleave2"(%u, %u) : (vector<2xf32>, vector<2xf32>) -> vector<4xf32>
      %3 = "llvm.intr.vector.deinterleave2"(%v) : (vector<4xf32>) -> !llvm.struct<(vector<2xf32>, vector<2xf32>)>
      %4 = llvm.intr.stepvector : vector<4xi32>
      %5 = llvm.intr.get.active.lane.mask %i, %i : i32, i32 to vector<4xi1>
      %6 = "llvm.intr.vector.reduce.fadd"(%x, %v) : (f32, vector<4xf32>) -> f32
      %7 = "llvm.intr.vector.reduce.fmul"(%x, %v) : (f32, vector<4xf32>) -> f32""",
    "hints": """
      %0 = "llvm.intr.is.constant"(%i) : (i32) -> i1
      %1 = llvm.intr.ssa.copy %i : i32
      llvm.intr.trap
      llvm.intr.debugtrap
      "llvm.intr.memcpy"(%p, %p, %i) <{isVolatile = false}> : (!llvm.ptr, !llvm.ptr, i32) -> ()
      "llvm.intr.memmove"(%p, %p, %j) <{isVolatile = true}> : (!llvm.ptr, !llvm.ptr, i64) -> ()
      "llvm.intr.memset"(%p, %k, %i) <{isVolatile = false}> : (!llvm.ptr, i8, i32) -> ()
      %a = llvm.alloca %i x f32 : (i32) -> !llvm.ptr
      llvm.intr.lifetime.start %a : !llvm.ptr
      llvm.intr.lifetime.end %a : !llvm.ptr
      "llvm.intr.prefetch"(%p) <{rw = 0 : i32, hint = 3 : i32, cache = 1 : i32}> : (!llvm.ptr) -> ()
      %2 = llvm.intr.launder.invariant.group %p : !llvm.ptr
      %3 = llvm.intr.strip.invariant.group %p : !llvm.ptr
      %4 = llvm.intr.ptrmask %p, %j : (!llvm.ptr, i64) -> !llvm.ptr
      %5 = llvm.intr.stacksave : !llvm.ptr
      llvm.intr.stackrestore %5 : !llvm.ptr""",
    "registers": "\n".join(
        f"%r{k} = {op.name} : {'i64' if '64' in op.name or op.name.endswith('timer') else 'i32'}"
        for k, op in enumerate(op for op in nvvm.NVVM.operations if op.name.startswith("nvvm.read.ptx.sreg."))
    )
    + "\n%t = nvvm.read.ptx.sreg.tid.x range <i32, 0, 128> : i32",
    "threads": """
      nvvm.barrier0
      nvvm.barrier
      nvvm.barrier id = %i
      nvvm.barrier id = %i number_of_threads = %i
      nvvm.bar.warp.sync %i : i32
      %0 = nvvm.shfl.sync bfly %i, %x, %i, %i : f32 -> f32
      %1 = nvvm.shfl.sync up %i, %i, %i, %i {return_value_and_is_valid} : i32 -> !llvm.struct<(i32, i1)>
      %2 = nvvm.redux.sync umax %i, %i : i32 -> i32
      %3 = nvvm.redux.sync fmin %x, %i {abs = true, nan = true} : f32 -> f32
      %4 = nvvm.vote.sync ballot %i, %c -> i32
      %5 = nvvm.vote.sync any %i, %c -> i1
      %6 = nvvm.match.sync any %i, %i : i32 -> i32
      %7 = nvvm.match.sync all %i, %j : i64 -> !llvm.struct<(i32, i1)>
      %8 = nvvm.elect.sync -> i1
      %9 = nvvm.elect.sync %i -> i1
      %10 = nvvm.rcp.approx.ftz.f %x : f32
      nvvm.griddepcontrol wait
      nvvm.griddepcontrol launch_dependents
      nvvm.memory.barrier <gpu>
      nvvm.memory.barrier <cta>
      nvvm.memory.barrier <sys>
      nvvm.nanosleep %i""",
    "branches": """
      llvm.cond_br %c weights([2000, 1]), ^one(%i : i32), ^two
    ^one(%a: i32):
      llvm.switch %a : i32, ^two [ 1: ^one(%i : i32), -2: ^three ] {branch_weights = array<i32: 5, 2, 1>}
    ^two:
      llvm.br ^one(%i : i32)
    ^three:
      llvm.unreachable""",
    "constants": """
      %c0 = llvm.mlir.constant(-7 : i32) : i32
      %c1 = llvm.mlir.constant(true) : i1
      %c2 = llvm.mlir.constant(dense<[1.0, -0.0, 0x7F800000, 0x7FC00000]> : vector<4xf32>) : vector<4xf32>
      %c3 = llvm.mlir.constant(dense<3> : vector<4xi32>) : vector<4xi32>
      %c4 = llvm.mlir.poison : vector<4xf32>
      %c5 = llvm.mlir.undef : f32
      %c6 = llvm.mlir.zero : !llvm.ptr
      %c7 = llvm.mlir.addressof @tile : !llvm.ptr<3>
      %c8 = llvm.mlir.constant(1.1 : f64) : f64
      %c9 = llvm.mlir.constant(0.1 : bf16) : bf16
      %c10 = llvm.mlir.constant(0xFFC00001 : f32) : f32
      %c11 = llvm.mlir.constant([1 : i32, 2.0 : f32]) : !llvm.struct<(i32, f32)>
      llvm.store %c0, %p : i32, !llvm.ptr
      llvm.store %c1, %p : i1, !llvm.ptr
      llvm.store %c2, %p : vector<4xf32>, !llvm.ptr
      llvm.store %c3, %p : vector<4xi32>, !llvm.ptr
      llvm.store %c4, %p : vector<4xf32>, !llvm.ptr
      llvm.store %c5, %p : f32, !llvm.ptr
      llvm.store %c6, %p : !llvm.ptr, !llvm.ptr
      llvm.store %x, %c7 : f32, !llvm.ptr<3>
      llvm.store %c8, %p : f64, !llvm.ptr
      llvm.store %c9, %p : bf16, !llvm.ptr
      llvm.store %c10, %p : f32, !llvm.ptr
      llvm.store %c11, %p : !llvm.struct<(i32, f32)>, !llvm.ptr""",
}


def function(name: str, code: str) -> str:
    end = "" if code.rstrip().endswith("unreachable") else "llvm.return"
    return f'llvm.func @"{name}"({ARGUMENTS}) {{\n{code}\n{end}\n}}\n'


MODULE = (
    "llvm.mlir.global internal @tile() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<32 x f32>\n"
    "llvm.func @callee(f32) -> f32\nllvm.func @nothing()\n" + "".join(function(*item) for item in CODE.items())
)


def binding() -> Any:
    return import_module("llvmlite.binding")


def as_llvm_reads(text: str) -> dict[str, list[str]]:
    """The functions of LLVM IR text after LLVM has read and verified it: name -> lines, values numbered in the order in which they come."""
    module = binding().parse_assembly(text)
    module.verify()
    return {found.name: numbered(str(found)) for found in module.functions if not found.is_declaration}


def numbered(function: str) -> list[str]:
    """The lines of a function; its first block, to which nothing branches, needs no label."""
    names: dict[str, str] = {}

    def rename(found: re.Match[str]) -> str:
        return names.setdefault(found[1] or found[2], f"%{len(names)}")

    function = re.sub(r"\{\n[\w.]+:.*\n", "{\n", function, count=1)
    lines = (re.sub(r"\s*;.*|, !prof !\d+|#\d+", "", line) for line in function.splitlines())
    return [re.sub(r"%([\w.]+)|^([\w.]+)(?=:$)", rename, line) for line in lines if line]


@cache
def by_both() -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    ours = print_llvm_ir(parse_ir(MODULE))
    command = [find_tool("mlir-translate", here()).path, "--mlir-to-llvmir"]
    theirs = subprocess.run(command, input=MODULE, capture_output=True, text=True, check=True, timeout=60).stdout
    return as_llvm_reads(ours), as_llvm_reads(theirs)


@needs("llvmlite", "mlir-translate")
@pytest.mark.parametrize("name", CODE)
def test_instructions_are_those_of_mlir_translate(name: str) -> None:
    ours, theirs = by_both()
    assert ours[name] == theirs[name]


def test_every_row_is_compared() -> None:
    written = {op.name for op in parse_ir(MODULE).walk()}
    assert ROWS.keys() <= written


@needs("llvmlite")
def test_branch_weights_are_kept() -> None:
    module = binding().parse_assembly(print_llvm_ir(parse_ir(MODULE)))
    assert re.findall(r'!\{!"branch_weights", (.*)\}', str(module)) == ["i32 2000, i32 1", "i32 5, i32 2, i32 1"]


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("nvvm.breakpoint", "no LLVM IR for nvvm.breakpoint"),
        ("%0 = llvm.mlir.constant(1.0 : f128) : f128", "no LLVM IR for a float constant of type f128"),
        ("%0 = llvm.alloca inalloca %i x f32 : (i32) -> !llvm.ptr", "no LLVM IR for llvm.alloca with inalloca"),
        ("%0 = nvvm.shfl.sync bfly %i, %h, %i, %i : f16 -> f16", "no LLVM IR for nvvm.shfl.sync of f16"),
        ("nvvm.memory.barrier <cluster>", "no LLVM IR for nvvm.memory.barrier of the scope cluster"),
        (
            "%0 = llvm.call fastcc @callee(%x) : (f32) -> f32",
            "no LLVM IR for llvm.call by the calling convention fastcc",
        ),
        (
            "%0 = llvm.call @callee(%x) : (f32 {llvm.swiftself}) -> f32",
            "no LLVM IR for the parameter attribute llvm.swiftself",
        ),
    ],
)
def test_what_has_no_llvm_ir_is_refused_by_name(code: str, message: str) -> None:
    module = parse_ir(f"llvm.func @callee(f32) -> f32\n{function('f', code)}")
    with pytest.raises(Unsupported) as raised:
        print_llvm_ir(module)
    assert raised.value.message.startswith(message)
    assert raised.value.stage == "llvm-ir"


def test_the_place_of_a_refused_op_is_said() -> None:
    module = parse_ir(function("f", 'nvvm.breakpoint loc("add.1"("gelu.hlo":3:5))'))
    with pytest.raises(Unsupported) as raised:
        print_llvm_ir(module)
    assert raised.value.details == ("add.1 (gelu.hlo:3:5)",)


def test_hints_are_left_out() -> None:
    """Scopes of aliases permit and do not oblige. Of loops see `test_nodes.py`."""
    text = print_llvm_ir(
        parse_ir(
            function(
                "f",
                "%0 = llvm.load %p {alias_scopes = [#llvm.alias_scope<id = distinct[0]<>, domain = <id = distinct[1]<>>>]}"
                " : !llvm.ptr -> f32\nllvm.br ^bb1\n^bb1:",
            )
        )
    )
    assert re.search(r"%v\S* = load float, ptr %p\n  br label %bb1\n", text)
