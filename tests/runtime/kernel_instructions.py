"""Machine code of a program's kernels and of the static emitters', for the same fusions and sizes: instructions per element.

    python -m runtime.kernel_instructions                       the table, at 4096 x 1024
    python -m runtime.kernel_instructions softmax rms_norm      of these

Dynamic: StableHLO with both sizes unknown (norms: an unknown number of rows), the kernels that the host launches. Static: HLO of known
sizes. A fusion of HLO has one reduction, so the static emitters make several kernels of what is stitched here, each of which reads the rows
again; they are added. `pricing/sass_thread` counts the instructions of a thread on both sides; totals are instructions of warps times 32.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from tools_here import here

from xla_emitters.device import device
from xla_emitters.dtypes import dtype
from xla_emitters.explore.cost.program_cost import INDEX_BYTES, POINTER_BYTES, launches_of
from xla_emitters.pipelines.compiler import compile_module
from xla_emitters.pipelines.options import CompileOptions
from xla_emitters.pipelines.programs import compile_program
from xla_emitters.pricing.occupancy import occupancy
from xla_emitters.pricing.price import MachineCode, machine_code_of
from xla_emitters.pricing.sass_thread import WARP, run_threads
from xla_emitters.program import LaunchDimensions
from xla_emitters.text.hlo import parse_hlo
from xla_emitters.text.stablehlo import parse_stablehlo

ROWS, COLUMNS = 4096, 1024
TARGET = "h200"


class Kernels(NamedTuple):
    """Sums over several kernels.

    per_element   instructions of threads, over the elements of the matrix
    widest        bytes of the widest load and store of global memory
    registers     most of a kernel
    occupancy     least of a kernel
    """

    kernels: int
    per_element: float
    widest: tuple[int, int]
    registers: int
    occupancy: float

    def __str__(self) -> str:
        return (
            f"{self.kernels} x  {self.per_element:6.2f}  {self.widest[0]:2}/{self.widest[1]:<2}  "
            f"{self.registers:3}  {self.occupancy:4.0%}"
        )


class Case(NamedTuple):
    """A computation, twice.

    dynamic  the body of @main(%x: M ...) in StableHLO; M is the matrix's type, V that of a row, R that of a number a row, F f32's
    static   fusions of HLO: (result, operands, instructions); M, V and R likewise, F f32[] ...
    weights  arrays of a row's size that it takes too
    result   M, or what it returns
    """

    dynamic: str
    static: Sequence[tuple[str, str, str]]
    weights: int = 0
    result: str = "M"


def _add(name: str, value: str, into: str, dim: int) -> str:
    types = f"(W, tensor<f32>) -> {into}"
    return f"%{name} = stablehlo.reduce(%{value} init: %zero) applies stablehlo.add across dimensions = [{dim}] : {types}\n"


def _spread(name: str, value: str, dim: int, from_type: str) -> str:
    return f"%{name} = stablehlo.dynamic_broadcast_in_dim %{value}, %shape, dims = [{dim}] : ({from_type}, tensor<2xi32>) -> W\n"


WIDE = "%w = stablehlo.convert %x : (M) -> W\n"
GELU = """%c = stablehlo.multiply %w, %w : W
%d = stablehlo.multiply %c, %w : W
%e = stablehlo.add %d, %w : W
%f = stablehlo.tanh %e : W
%g = stablehlo.multiply %f, %w : W
%y = stablehlo.convert %g : (W) -> M
"""
IN_F32 = "w = W convert(x)\n"
SUM = "s = S reduce(w, zero), dimensions={1}, to_apply=add\n"
CASES: dict[str, Case] = {
    "gelu": Case(
        WIDE + GELU,
        [
            (
                "M",
                "x",
                IN_F32
                + "c = W multiply(w, w)\nd = W multiply(c, w)\ne = W add(d, w)\nf = W tanh(e)\ng = W multiply(f, w)\nROOT y = M convert(g)",
            )
        ],
    ),
    "bias": Case(
        WIDE
        + "%v = stablehlo.convert %b0 : (V) -> U\n"
        + _spread("b", "v", 1, "U")
        + "%a = stablehlo.add %w, %b : W\n%y = stablehlo.convert %a : (W) -> M\n",
        [
            (
                "M",
                "x b0",
                IN_F32
                + "v = U convert(b0)\nb = W broadcast(v), dimensions={1}\na = W add(w, b)\nROOT y = M convert(a)",
            )
        ],
        weights=1,
    ),
    "row_sums": Case(
        WIDE + _add("s", "w", "S", 1) + "%y = stablehlo.convert %s : (S) -> R\n",
        [("R", "x", IN_F32 + SUM + "ROOT y = R convert(s)")],
        result="R",
    ),
    "column_sums": Case(
        WIDE + _add("s", "w", "U", 0) + "%y = stablehlo.convert %s : (U) -> V\n",
        [("V", "x", IN_F32 + "s = U reduce(w, zero), dimensions={0}, to_apply=add\nROOT y = V convert(s)")],
        result="V",
    ),
    "column_sums_of_products": Case(
        WIDE
        + "%e = stablehlo.exponential %w : W\n%t = stablehlo.tanh %w : W\n%p = stablehlo.multiply %e, %t : W\n"
        + _add("s", "p", "U", 0)
        + "%y = stablehlo.convert %s : (U) -> V\n",
        [
            (
                "V",
                "x",
                IN_F32
                + "e = W exponential(w)\nt = W tanh(w)\np = W multiply(e, t)\n"
                + "s = U reduce(p, zero), dimensions={0}, to_apply=add\nROOT y = V convert(s)",
            )
        ],
        result="V",
    ),
    "softmax": Case(
        WIDE
        + "%m = stablehlo.reduce(%w init: %low) applies stablehlo.maximum across dimensions = [1] : (W, tensor<f32>) -> S\n"
        + _spread("mb", "m", 0, "S")
        + "%d = stablehlo.subtract %w, %mb : W\n%e = stablehlo.exponential %d : W\n"
        + _add("s", "e", "S", 1)
        + _spread("sb", "s", 0, "S")
        + "%q = stablehlo.divide %e, %sb : W\n%y = stablehlo.convert %q : (W) -> M\n",
        [
            ("S", "x", IN_F32 + "ROOT m = S reduce(w, low), dimensions={1}, to_apply=max"),
            (
                "S",
                "x r0",
                IN_F32
                + "b = W broadcast(r0), dimensions={0}\nd = W subtract(w, b)\ne = W exponential(d)\n"
                + "ROOT s = S reduce(e, zero), dimensions={1}, to_apply=add",
            ),
            (
                "M",
                "x r0 r1",
                IN_F32
                + "b = W broadcast(r0), dimensions={0}\nd = W subtract(w, b)\ne = W exponential(d)\n"
                + "t = W broadcast(r1), dimensions={0}\nq = W divide(e, t)\nROOT y = M convert(q)",
            ),
        ],
    ),
    "rms_norm": Case(
        WIDE
        + "%p = stablehlo.multiply %w, %w : W\n"
        + _add("s", "p", "S", 1)
        + "%i = stablehlo.rsqrt %s : S\n"
        + _spread("ib", "i", 0, "S")
        + "%n = stablehlo.multiply %w, %ib : W\n%v = stablehlo.convert %b0 : (V) -> U\n"
        + _spread("g", "v", 1, "U")
        + "%q = stablehlo.multiply %n, %g : W\n%y = stablehlo.convert %q : (W) -> M\n",
        [
            ("S", "x", IN_F32 + "p = W multiply(w, w)\nROOT s = S reduce(p, zero), dimensions={1}, to_apply=add"),
            (
                "M",
                "x b0 r0",
                IN_F32
                + "i = S rsqrt(r0)\nb = W broadcast(i), dimensions={0}\nn = W multiply(w, b)\nv = U convert(b0)\n"
                + "g = W broadcast(v), dimensions={1}\nq = W multiply(n, g)\nROOT y = M convert(q)",
            ),
        ],
        weights=1,
    ),
    "layer_norm": Case(
        WIDE
        + _add("t", "w", "S", 1)
        + "%m = stablehlo.multiply %t, %share : S\n"
        + _spread("mb", "m", 0, "S")
        + "%d = stablehlo.subtract %w, %mb : W\n%p = stablehlo.multiply %d, %d : W\n"
        + _add("s", "p", "S", 1)
        + "%i = stablehlo.rsqrt %s : S\n"
        + _spread("ib", "i", 0, "S")
        + "%n = stablehlo.multiply %d, %ib : W\n%v = stablehlo.convert %b0 : (V) -> U\n"
        + _spread("g", "v", 1, "U")
        + "%q = stablehlo.multiply %n, %g : W\n%u = stablehlo.convert %b1 : (V) -> U\n"
        + _spread("h", "u", 1, "U")
        + "%o = stablehlo.add %q, %h : W\n%y = stablehlo.convert %o : (W) -> M\n",
        [
            ("S", "x", IN_F32 + "ROOT s = S reduce(w, zero), dimensions={1}, to_apply=add"),
            (
                "S",
                "x r0",
                IN_F32
                + "k = f32[] constant(0.0009765625)\nkb = S broadcast(k), dimensions={}\nm = S multiply(r0, kb)\n"
                + "b = W broadcast(m), dimensions={0}\nd = W subtract(w, b)\np = W multiply(d, d)\n"
                + "ROOT s = S reduce(p, zero), dimensions={1}, to_apply=add",
            ),
            (
                "M",
                "x b0 b1 r0 r1",
                IN_F32
                + "k = f32[] constant(0.0009765625)\nkb = S broadcast(k), dimensions={}\nm = S multiply(r0, kb)\n"
                + "b = W broadcast(m), dimensions={0}\nd = W subtract(w, b)\ni = S rsqrt(r1)\nib = W broadcast(i), dimensions={0}\n"
                + "n = W multiply(d, ib)\nv = U convert(b0)\ng = W broadcast(v), dimensions={1}\nq = W multiply(n, g)\n"
                + "u = U convert(b1)\nh = W broadcast(u), dimensions={1}\no = W add(q, h)\nROOT y = M convert(o)",
            ),
        ],
        weights=2,
    ),
}


def stablehlo(case: Case, element: str) -> str:
    cols = str(COLUMNS) if case.weights else "?"
    types = {
        "M": f"tensor<?x{cols}x{element}>",
        "W": f"tensor<?x{cols}xf32>",
        "V": f"tensor<{cols}x{element}>",
        "U": f"tensor<{cols}xf32>",
        "R": f"tensor<?x{element}>",
        "S": "tensor<?xf32>",
    }
    body = f"""%zero = stablehlo.constant dense<0.0> : tensor<f32>
%low = stablehlo.constant dense<0xFF800000> : tensor<f32>
%part = stablehlo.constant dense<9.765625e-04> : tensor<f32>
%r = stablehlo.get_dimension_size %x, dim = 0 : (M) -> tensor<i32>
%c1 = stablehlo.get_dimension_size %x, dim = 1 : (M) -> tensor<i32>
%r1 = stablehlo.reshape %r : (tensor<i32>) -> tensor<1xi32>
%c2 = stablehlo.reshape %c1 : (tensor<i32>) -> tensor<1xi32>
%shape = stablehlo.concatenate %r1, %c2, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
%share = stablehlo.dynamic_broadcast_in_dim %part, %r1, dims = [] : (tensor<f32>, tensor<1xi32>) -> S
{case.dynamic}return %y : {case.result}"""
    for name, spelled in types.items():
        for before, after in ((": ", ""), ("(", ""), (", ", ""), ("-> ", "")):
            for end in ("\n", ")", ","):
                body = body.replace(f"{before}{name}{end}", f"{before}{spelled}{end}{after}")
    body = body if not body.endswith(f": {case.result}") else body[: -len(case.result)] + types[case.result]
    arguments = ", ".join((f"%x: {types['M']}", *(f"%b{n}: {types['V']}" for n in range(case.weights))))
    return f"func.func public @main({arguments}) -> {types[case.result]} {{\n{body}\n}}"


def hlo(case: Case, element: str) -> Iterator[str]:
    """A module for each fusion."""
    shapes = {
        "M": f"{element}[{ROWS},{COLUMNS}]",
        "W": f"f32[{ROWS},{COLUMNS}]",
        "V": f"{element}[{COLUMNS}]",
        "U": f"f32[{COLUMNS}]",
        "R": f"{element}[{ROWS}]",
        "S": f"f32[{ROWS}]",
    }
    for result, operands, body in case.static:
        kinds = [("M" if name == "x" else "V" if name[0] == "b" else "S", name) for name in operands.split()]
        text = body
        for name, spelled in shapes.items():
            text = text.replace(f" = {name} ", f" = {spelled} ")
        parameters = "\n".join(f"{name} = {shapes[kind]} parameter({n})" for n, (kind, name) in enumerate(kinds))
        constants = "zero = f32[] constant(0)\nlow = f32[] constant(-inf)"
        given = "\n".join(f"{name} = {shapes[kind]} parameter({n})" for n, (kind, name) in enumerate(kinds))
        inside = ", ".join(name for _, name in kinds)
        yield f"""HloModule m
add {{ a = f32[] parameter(0)
b = f32[] parameter(1)
ROOT r = f32[] add(a, b) }}
max {{ a = f32[] parameter(0)
b = f32[] parameter(1)
ROOT r = f32[] maximum(a, b) }}
fused {{ {parameters}
{constants}
{text} }}
ENTRY e {{ {given}
ROOT out = {shapes[result]} fusion({inside}), kind={"kInput" if " reduce(" in text else "kLoop"}, calls=fused }}"""


def counted(
    launches: Sequence[tuple[str, LaunchDimensions, Sequence[object], Sequence[int], int]], code: MachineCode
) -> Kernels:
    """launches: (kernel, launch, arguments, bytes of each, dynamic shared memory)."""
    chip, total = device(TARGET), 0.0
    loads, stores, registers, shares = set[int](), set[int](), list[int](), list[float]()
    for name, launch, values, widths, shared in launches:
        run = run_threads(code.sass[name], chip.architecture, launch, values, widths)
        total += run.warp_instructions * WARP * launch.blocks
        loads |= run.executed.loads.keys()
        stores |= run.executed.stores.keys()
        resources = code.resources[name]
        registers.append(resources.registers)
        shares.append(occupancy(chip, launch.threads, resources.registers, resources.shared_bytes + shared).share)
    widest = (max(loads, default=0), max(stores, default=0))
    return Kernels(len(launches), total / (ROWS * COLUMNS), widest, max(registers), min(shares))


def dynamic(case: Case, element: str) -> Kernels:
    options = CompileOptions(target=TARGET, record="none")
    program = compile_program(parse_stablehlo(stablehlo(case, element), "m.mlir"), options)
    x = np.zeros((ROWS, COLUMNS), dtype(element).numpy)
    inputs = [x, *([x[0]] * case.weights)]
    launches = [
        (
            at.name,
            at.launch,
            at.arguments,
            [POINTER_BYTES if isinstance(value, np.ndarray) else INDEX_BYTES for value in at.arguments],
            at.shared_bytes,
        )
        for at in launches_of(program, inputs)
    ]
    return counted(
        launches,
        machine_code_of(program.compilation.lowering.ptx, device(TARGET).architecture, here()),
    )


def static(case: Case, element: str) -> Kernels:
    found = list[Kernels]()
    for text in hlo(case, element):
        program = compile_module(parse_hlo(text, "m.hlo"), CompileOptions(target=TARGET, record="none"))
        code = machine_code_of(program.code, device(TARGET).architecture, here())
        launches = [(k.name, k.launch, [object()] * 8, [POINTER_BYTES] * 8, 0) for k in program.kernels]
        found.append(counted(launches, code))
    return Kernels(
        sum(each.kernels for each in found),
        sum(each.per_element for each in found),
        (max(each.widest[0] for each in found), max(each.widest[1] for each in found)),
        max(each.registers for each in found),
        min(each.occupancy for each in found),
    )


def main() -> int:
    asked = sys.argv[1:] or list(CASES)
    print(
        f"{ROWS} x {COLUMNS} on {TARGET}: kernels, instructions an element, widest load/store in bytes, registers, occupancy"
    )
    print(f"{'':18} {'dynamic':32} {'static':32} ratio of instructions")
    for name in asked:
        for element in ("f32", "bf16"):
            one, other = dynamic(CASES[name], element), static(CASES[name], element)
            print(
                f"{name:12} {element:5} {one!s:32} {other!s:32} {one.per_element / other.per_element:.2f}", flush=True
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
