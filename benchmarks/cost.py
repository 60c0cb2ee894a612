"""The cost model's expectations for 40 memory-bound fusions, ours and the real XLA's: `python -m benchmarks.cost`.

    HLO ─ours──> PTX ─ptxas─> SASS ┐
        └─XLA──> PTX ─ptxas─> SASS ┴─ one launch, one set of accesses ─> expected time and its bound, of both

Nothing here is measured on a GPU: see docs/cost_model.md. Every fusion moves at least 100 MB. XLA's code is priced with the launch and the
accesses of ours, which have XLA's launch and elements a thread; where its blocks have another size, or it makes another number of
kernels, it is not priced. `--ours` leaves XLA out, which needs the extra 'xla'.

Columns: bytes that must move; bytes that do, relative to them; registers; instructions a thread executes at most; loads in flight on a
multiprocessor, relative to what it needs for the device's bandwidth; bound; expected time, its range; the share of the bandwidth. Where
ours and XLA's differ: `ours/XLA`.
"""

import argparse
import math
import sys
from dataclasses import dataclass

from benchmarks.code_quality import ptx_of_xla, threads_per_block
from benchmarks.table import header, print_table
from xla_emitters.device import device
from xla_emitters.errors import XlaEmittersError
from xla_emitters.explore.cost.cost import cost
from xla_emitters.pricing.model import KernelCost, with_code
from xla_emitters.pricing.price import machine_code_of
from xla_emitters.pricing.report import bytes_text, microseconds
from xla_emitters.settings import read_settings

TARGET = "h200"
REDUCERS = {
    name: f"{name} {{\n  a = {kind}[] parameter(0)\n  b = {kind}[] parameter(1)\n  ROOT r = {kind}[] {op}(a, b)\n}}\n"
    for name, kind, op in (
        ("add_f32", "f32", "add"),
        ("add_bf16", "bf16", "add"),
        ("add_s32", "s32", "add"),
        ("maximum_bf16", "bf16", "maximum"),
    )
}


@dataclass(frozen=True)
class Fusion:
    """A fusion as HLO.

    parameters  types of p0, p1 ...
    result      type of the last instruction
    body        instructions; the last one is the root
    """

    name: str
    parameters: tuple[str, ...]
    result: str
    body: str
    kind: str = "kLoop"
    alias: str = ""

    @property
    def hlo(self) -> str:
        parameters = "".join(f"  p{n} = {each} parameter({n})\n" for n, each in enumerate(self.parameters))
        names = ", ".join(f"p{n}" for n in range(len(self.parameters)))
        *lines, root = self.body.split("; ")
        body = "".join(f"  {line}\n" for line in (*lines, f"ROOT {root}"))
        reducers = "".join(text for name, text in REDUCERS.items() if f"to_apply={name}" in self.body)
        return (
            f"HloModule {self.name}{self.alias}\n\n{reducers}f {{\n{parameters}{body}}}\n\nENTRY e {{\n{parameters}"
            f"  ROOT fusion = {self.result} fusion({names}), kind={self.kind}, calls=f\n}}\n"
        )


def elementwise(name: str, kind: str, operations: str, operands: int = 1, size: str = "16384,4096") -> Fusion:
    shape = f"{kind}[{size}]"
    return Fusion(name, (shape,) * operands, shape, operations.replace("T", shape))


def transpose(name: str, shape: str, result: str, dimensions: str) -> Fusion:
    return Fusion(name, (shape,), result, f"t = {result} transpose(p0), dimensions={{{dimensions}}}", "kInput")


def reduction(
    name: str, shape: str, result: str, dimensions: str, before: str = "", combine: str = "add", start: str = "0"
) -> Fusion:
    kind = result.partition("[")[0]
    operand, how = "x" if before else "p0", f"dimensions={{{dimensions}}}, to_apply={combine}_{kind}"
    body = f"{before}z = {kind}[] constant({start}); r = {result} reduce({operand}, z), {how}"
    return Fusion(name, (shape,), result, body, "kInput")


FUSIONS = (
    elementwise("negate_f32", "f32", "n = T negate(p0)"),
    elementwise("negate_bf16", "bf16", "n = T negate(p0)"),
    elementwise("negate_s8", "s8", "n = T negate(p0)", size="16384,8192"),
    elementwise("negate_f64", "f64", "n = T negate(p0)"),
    elementwise("negate_c64", "c64", "n = T negate(p0)"),
    elementwise("add_f32", "f32", "s = T add(p0, p1)", 2),
    elementwise("add_bf16", "bf16", "s = T add(p0, p1)", 2),
    elementwise("multiply_add_f32", "f32", "m = T multiply(p0, p1); s = T add(m, p2)", 3),
    elementwise("tanh_f32", "f32", "t = T tanh(p0)"),
    elementwise("tanh_bf16", "bf16", "t = T tanh(p0)"),
    elementwise("exponential_f32", "f32", "t = T exponential(p0)"),
    elementwise("logistic_bf16", "bf16", "t = T logistic(p0)"),
    elementwise("rsqrt_f32", "f32", "t = T rsqrt(p0)"),
    elementwise("sine_f32", "f32", "t = T sine(p0)"),
    elementwise("divide_f32", "f32", "t = T divide(p0, p1)", 2),
    elementwise("shift_s32", "s32", "t = T shift-left(p0, p1)", 2),
    Fusion("f32_to_bf16", ("f32[16384,4096]",), "bf16[16384,4096]", "c = bf16[16384,4096] convert(p0)"),
    Fusion("bf16_to_f32", ("bf16[16384,4096]",), "f32[16384,4096]", "c = f32[16384,4096] convert(p0)"),
    Fusion("f32_to_f8", ("f32[16384,4096]",), "f8e4m3fn[16384,4096]", "c = f8e4m3fn[16384,4096] convert(p0)"),
    Fusion(
        "bias_f32",
        ("f32[16384,4096]", "f32[4096]"),
        "f32[16384,4096]",
        "b = f32[16384,4096] broadcast(p1), dimensions={1}; s = f32[16384,4096] add(p0, b)",
    ),
    Fusion(
        "scale_rows_bf16",
        ("bf16[16384,4096]", "bf16[16384]"),
        "bf16[16384,4096]",
        "b = bf16[16384,4096] broadcast(p1), dimensions={0}; s = bf16[16384,4096] multiply(p0, b)",
    ),
    Fusion("broadcast_f32", ("f32[4096]",), "f32[16384,4096]", "b = f32[16384,4096] broadcast(p0), dimensions={1}"),
    Fusion(
        "compare_f32",
        ("f32[16384,4096]", "f32[16384,4096]"),
        "pred[16384,4096]",
        "c = pred[16384,4096] compare(p0, p1), direction=LT",
    ),
    Fusion(
        "slice_columns_f32",
        ("f32[16384,8192]",),
        "f32[16384,4096]",
        "s = f32[16384,4096] slice(p0), slice={[0:16384], [0:4096]}",
    ),
    Fusion(
        "slice_strided_f32",
        ("f32[16384,8192]",),
        "f32[16384,4096]",
        "s = f32[16384,4096] slice(p0), slice={[0:16384], [0:8192:2]}",
    ),
    Fusion("reverse_f32", ("f32[16384,4096]",), "f32[16384,4096]", "r = f32[16384,4096] reverse(p0), dimensions={1}"),
    Fusion(
        "pad_f32",
        ("f32[16384,4000]",),
        "f32[16384,4096]",
        "z = f32[] constant(0); q = f32[16384,4096] pad(p0, z), padding=0_0x48_48",
    ),
    Fusion(
        "concatenate_f32",
        ("f32[16384,2048]", "f32[16384,2048]"),
        "f32[16384,4096]",
        "c = f32[16384,4096] concatenate(p0, p1), dimensions={1}",
    ),
    Fusion(
        "gather_rows_f32",
        ("f32[65536,1024]", "s32[32768,1]"),
        "f32[32768,1,1024]",
        "g = f32[32768,1,1024] gather(p0, p1), offset_dims={1,2}, collapsed_slice_dims={}, start_index_map={0}, "
        "index_vector_dim=1, slice_sizes={1,1024}",
    ),
    transpose("transpose_f32", "f32[8192,8192]", "f32[8192,8192]", "1,0"),
    transpose("transpose_bf16", "bf16[8192,8192]", "bf16[8192,8192]", "1,0"),
    transpose("transpose_s8", "s8[16384,8192]", "s8[8192,16384]", "1,0"),
    transpose("transpose_021_f32", "f32[64,1024,1024]", "f32[64,1024,1024]", "0,2,1"),
    transpose("transpose_102_f32", "f32[1024,64,1024]", "f32[64,1024,1024]", "1,0,2"),
    reduction("sum_rows_f32", "f32[16384,4096]", "f32[16384]", "1"),
    reduction("max_rows_bf16", "bf16[16384,4096]", "bf16[16384]", "1", combine="maximum"),
    reduction("sum_short_rows_f32", "f32[2097152,32]", "f32[2097152]", "1"),
    reduction("sum_columns_f32", "f32[64,1048576]", "f32[1048576]", "0"),
    reduction("sum_squares_rows_f32", "f32[16384,4096]", "f32[16384]", "1", "x = f32[16384,4096] multiply(p0, p0); "),
    reduction("sum_rows_s32", "s32[16384,4096]", "s32[16384]", "1"),
)


def priced(fusion: Fusion, *, with_xla: bool) -> tuple[KernelCost, KernelCost | None] | str:
    """The cost of ours, and of XLA's if its launch is known; or why there is none."""
    try:
        found = cost(fusion.hlo, targets=(TARGET,)).kernels
        if len(found) != 1:
            return f"{fusion.name}: {len(found)} kernels"
        (ours,) = found
        texts = ptx_of_xla(fusion.hlo) if with_xla else []
        if len(texts) != 1 or threads_per_block(texts[0]) != ours.threads:
            return ours, None
        code = machine_code_of(texts[0], "sm_90a", read_settings().toolchain)
        (resources,), (sass,) = code.resources.values(), code.sass.values()
        return ours, with_code(ours, device(TARGET), resources, sass)
    except XlaEmittersError as error:
        return f"{fusion.name}: {error.message}"


TITLES = (
    *("fusion", "must move", "ratio", "registers", "instructions", "in flight", "bound", "ours", "range"),
    *("XLA", "ours/XLA", "bandwidth"),
)


def cells(name: str, ours: KernelCost, theirs: KernelCost | None) -> list[str]:
    other = theirs or ours
    needed = ours.bytes_in_flight_needed
    return [
        name,
        bytes_text(ours.bytes_needed),
        f"{ours.bytes_ratio:.2f}",
        _both(str(ours.registers), str(other.registers)),
        _both(str(ours.instructions), str(other.instructions)),
        _both(f"{ours.bytes_in_flight / needed:.1f}", f"{other.bytes_in_flight / needed:.1f}")
        if needed > 1000
        else "-",
        _both(ours.bound, other.bound),
        microseconds(ours.time),
        f"{microseconds(ours.time_low)} - {microseconds(ours.time_high)}",
        microseconds(theirs.time) if theirs else "-",
        f"{ours.time / theirs.time:.3f}" if theirs else "-",
        f"{ours.bandwidth:.0%}",
    ]


def _both(ours: str, theirs: str) -> str:
    return ours if ours == theirs else f"{ours}/{theirs}"


def main() -> int:
    parser = argparse.ArgumentParser(description="Expected times of fusions that are bound by memory.")
    parser.add_argument("--ours", action="store_true", help="leave the real XLA out")
    parser.add_argument("names", nargs="*", help="only these fusions")
    options = parser.parse_args()
    chosen = [fusion for fusion in FUSIONS if not options.names or fusion.name in options.names]
    found = [(fusion.name, priced(fusion, with_xla=not options.ours)) for fusion in chosen]
    rows = [(name, *one) for name, one in found if not isinstance(one, str)]
    print(header(f"Expected by the cost model, not measured: {len(rows)} fusions bound by memory on {TARGET}"))
    print_table(TITLES, [cells(*row) for row in rows])
    ratios = [ours.time / theirs.time for _, ours, theirs in rows if theirs]
    if ratios:
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        print(f"{len(ratios)} with XLA's code: geometric mean of the expected times, ours over XLA's, {mean:.3f}")
    missing = [one for _, one in found if isinstance(one, str)]
    for reason in missing:
        print(f"not priced: {reason}")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
