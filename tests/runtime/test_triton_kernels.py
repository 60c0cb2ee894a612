"""Triton's kernels for Hopper and Blackwell as the real XLA makes them: `wgmma`, `tcgen05`, tensor maps, softmax; run, against NumPy."""

import re
from collections.abc import Collection
from functools import cache
from typing import Any, TypeAlias

import ml_dtypes
import numpy as np
import pytest
from long_lists import but_long, every
from runtime.corpus import CORPUS

from xla_emitters.dialects.mlir.tensor_maps import TensorMap
from xla_emitters.explore.check.any_ptx import PtxKernel
from xla_emitters.explore.compare.compare import XlaKernel, kernels_of_xla
from xla_emitters.pipelines.options import CompileOptions
from xla_emitters.program import LaunchDimensions

PRODUCT = """
product_{name} {{
  p0 = {word}[256,192]{{1,0}} parameter(0)
  p1 = {word}[192,256]{{1,0}} parameter(1)
  dot = {sums}[256,256]{{1,0}} dot(p0, p1), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}, backend_config={{"sizes":["{depth}"]}}
  ROOT result = {to}[256,256]{{1,0}} convert(dot)
}}
"""
FUSION = """  x_{name} = {word}[256,192]{{1,0}} parameter({first})
  w_{name} = {word}[192,256]{{1,0}} parameter({second})
  {name} = {to}[256,256]{{1,0}} fusion(x_{name}, w_{name}), kind=kCustom, calls=product_{name}, backend_config={{"fusion_backend_config":{{
    "kind":"__triton_nested_gemm_fusion","block_level_fusion_config":{{"num_warps":"{warps}","output_tiles":[{{"sizes":["{rows}","{columns}"]}}],
    "num_ctas":1,"num_stages":{stages},"is_tma_allowed":{tma}}}}}}}
"""
OPTIONS = CompileOptions(target="h100")
NUMPY: dict[str, Any] = {
    **{
        "f16": np.float16,
        "bf16": ml_dtypes.bfloat16,
        "f8e4m3fn": ml_dtypes.float8_e4m3fn,
        "f8e5m2": ml_dtypes.float8_e5m2,
    },
    **{"s8": np.int8, "s32": np.int32, "f32": np.float32},
}
Cases: TypeAlias = dict[str, tuple[str, str, str, tuple[int, int], int, int, int, bool]]
CASES: Cases = {
    # factors, sums, result, tile, depth of a step, warps, stages, by tensor maps
    "of_f16": ("f16", "f32", "f16", (64, 64), 64, 4, 3, False),
    "of_bf16": ("bf16", "f32", "f32", (128, 64), 32, 4, 3, False),
    "of_e4m3": ("f8e4m3fn", "f32", "bf16", (64, 64), 64, 4, 2, False),
    "of_e5m2": ("f8e5m2", "f32", "f32", (64, 128), 64, 4, 1, False),
    "of_s8": ("s8", "s32", "s32", (64, 64), 64, 4, 2, False),
    "of_tf32": ("f32", "f32", "f32", (64, 64), 32, 4, 2, False),
    "of_f16_boxes": ("f16", "f32", "bf16", (64, 64), 64, 4, 3, True),
    "of_bf16_boxes": ("bf16", "f32", "bf16", (128, 128), 64, 8, 3, True),
}


LONG = ("of_bf16", "of_e4m3", "of_e5m2", "of_tf32", "of_f16_boxes")


def module(names: Collection[str], of: Cases) -> str:
    """Several products in one module: XLA is started once."""
    cases = {name: of[name] for name in names}
    products, fusions, results = list[str](), list[str](), list[str]()
    for number, (name, (word, sums, to, (rows, columns), depth, warps, stages, tma)) in enumerate(cases.items()):
        words = {"name": name, "word": word, "sums": sums, "to": to, "first": 2 * number, "second": 2 * number + 1}
        numbers = {"rows": rows, "columns": columns, "depth": depth, "warps": warps, "stages": stages}
        products.append(PRODUCT.format(**words, **numbers))
        fusions.append(FUSION.format(**words, **numbers, tma=str(tma).lower()))
        results.append(f"{to}[256,256]{{1,0}}")
    root = f"  ROOT all = ({', '.join(results)}) tuple({', '.join(cases)})\n"
    return (
        "HloModule products, is_scheduled=true\n"
        + "".join(products)
        + "\nENTRY main {\n"
        + "".join(fusions)
        + root
        + "}\n"
    )


@cache
def products(is_long: bool) -> dict[str, XlaKernel]:
    """XLA's kernels of the products in LONG, or of the others."""
    names = [name for name in CASES if (name in LONG) is is_long]
    return {kernel.name: kernel for kernel in kernels_of_xla(module(names, CASES), "products", OPTIONS)}


@pytest.fixture(autouse=True)
def xla() -> None:
    pytest.importorskip("jaxlib", reason="the extra [xla] is not installed")


def read(found: XlaKernel) -> tuple[PtxKernel, dict[str, Any]]:
    x, y, z, *block = (*found.grid, *found.block)
    launch = LaunchDimensions((x, y, z), (block[0], block[1], block[2]))
    how = {"launch": launch, "shared_bytes": found.shared_bytes}
    return PtxKernel.read(found.ptx, f"{found.name}.ptx", found.name), how


def arguments(name: str, how: dict[str, Any], cases: Cases) -> list[np.ndarray]:
    """The factors, and memory for the product; adds the tensor maps to `how`."""
    word, _, to, (rows, _), depth, _, _, tma = cases[name]
    dice = np.random.default_rng(rows)
    x, w = (dice.integers(-4, 5, size).astype(NUMPY[word]) for size in ((256, 192), (192, 256)))
    if tma:
        # Rows of a box are as long as the swizzle.
        boxes = ((rows, depth), (depth, 64), (rows, 64))
        how["tensor_maps"] = {number: TensorMap(box=box, swizzle=128) for number, box in enumerate(boxes)}
    return [x, w, np.zeros((256, 256), NUMPY[to])]


# `tests/unit/text/ptx` has every kind of factor, and the waits below are of three kernels.
@pytest.mark.parametrize("name", but_long(CASES, [name for name in CASES if name != "of_f16"]))
def test_products(name: str) -> None:
    check_product(products(name in LONG)[name], CASES, "wgmma.mma_async")


def check_product(made: XlaKernel, cases: Cases, instruction: str) -> None:
    """A kernel multiplies by this instruction, without a fault, and has NumPy's numbers."""
    _, _, to, *_, tma = cases[made.name]
    assert instruction in made.ptx
    assert ("cp.async.bulk.tensor" in made.ptx) is tma
    kernel, how = read(made)
    arrays = arguments(made.name, how, cases)
    verdict = kernel.check(arrays, **how)
    assert verdict.ok, verdict.details
    want = (arrays[0].astype(np.float64) @ arrays[1].astype(np.float64)).astype(NUMPY[to])
    np.testing.assert_array_equal(kernel.run(arrays, **how)[2], want)


GROUPS, PRODUCTS = r"cp\.async\.wait_group\s+\d;", r"wgmma\.wait_group\.sync\.aligned \d;"
PHASE = r"mbarrier\.try_wait\.parity\.shared::cta\.b64 complete, \[%r\d+\], %r\d+;"
COPIED, USED = (
    "begins to read bytes? .* of @global_smem, which thread 0 of its block copies without a wait",
    "uses %r.*, which a wgmma writes",
)
READ = "of @global_smem, which thread 0 of its block reads without a wait"
PLANTED = [
    # kernel, what waits, which of them, what is there instead, the fault, the instruction at which it is found
    ("of_f16", GROUPS, 0, "", COPIED, "wgmma.mma_async"),
    ("of_f16", GROUPS, 0, "cp.async.wait_group 3;", COPIED, "wgmma.mma_async"),
    ("of_f16", GROUPS, 1, "", COPIED, "wgmma.mma_async"),
    ("of_f16", GROUPS, 3, "", "writes bytes .* copies without a wait", "st.shared"),
    ("of_f16", PRODUCTS, 3, "", USED, "cvt.rn.f16x2"),
    ("of_f16", PRODUCTS, 3, "wgmma.wait_group.sync.aligned 1;", USED, "cvt.rn.f16x2"),
    ("of_s8", GROUPS, 0, "", COPIED, "wgmma.mma_async"),
    ("of_f16", PRODUCTS, 1, "", READ, "cp.async.cg"),
    ("of_s8", PRODUCTS, 0, "", READ, "st.shared"),
    ("of_bf16_boxes", PHASE, 0, "setp.eq.u32 complete, 0, 0;", COPIED, "wgmma.mma_async"),
    ("of_bf16_boxes", PRODUCTS, 1, "", USED, "cvt.rn.bf16x2"),
]


@pytest.mark.parametrize(("name", "pattern", "number", "instead", "fault", "where"), every(4, PLANTED))
def test_a_wait_that_is_missing_is_found_at_its_line(
    name: str, pattern: str, number: int, instead: str, fault: str, where: str
) -> None:
    check_planted(products(name in LONG)[name], CASES, pattern, number, instead, fault, where)


def check_planted(
    made: XlaKernel, cases: Cases, pattern: str, number: int, instead: str, fault: str, where: str
) -> None:
    """A kernel in which a text is replaced has this fault, at a line that begins so."""
    found = [*re.finditer(pattern, made.ptx)][number]
    planted = made.ptx[: found.start()] + instead + made.ptx[found.end() :]
    _, how = read(made)
    arrays = arguments(made.name, how, cases)
    verdict = PtxKernel.read(planted, "planted.ptx", made.name).check(arrays, **how)
    assert not verdict.ok
    assert re.search(fault, verdict.summary), verdict.summary
    place = re.match(r"planted\.ptx:(\d+):", verdict.details[0])
    assert planted.splitlines()[int(place[1]) - 1].strip().startswith(where)


# ---------------------------------------------------------------------------------------------- Blackwell

BLACKWELL: Cases = {
    "of_f16": ("f16", "f32", "f16", (128, 64), 64, 4, 3, False),
    "of_bf16_boxes": ("bf16", "f32", "bf16", (128, 128), 64, 8, 3, True),
    "of_e4m3": ("f8e4m3fn", "f32", "bf16", (128, 64), 64, 4, 2, False),
}


@cache
def blackwell() -> dict[str, XlaKernel]:
    made = kernels_of_xla(module(BLACKWELL, BLACKWELL), "products", CompileOptions(target="b200"))
    return {kernel.name: kernel for kernel in made}


def test_products_in_tensor_memory() -> None:
    """The same products for sm_100: one thread issues them, and their sums are in tensor memory."""
    for name in BLACKWELL:
        check_product(blackwell()[name], BLACKWELL, "tcgen05.mma.cta_group::1")


IN_TENSOR_MEMORY = [
    ("of_f16", PHASE, 0, "setp.eq.u32 complete, 0, 0;", READ, "cp.async.cg"),
    (
        "of_f16",
        PHASE,
        2,
        "setp.eq.u32 complete, 0, 0;",
        "column 0 of tensor memory, .* writes without a wait",
        "tcgen05.ld",
    ),
    (
        "of_f16",
        r"tcgen05\.wait::st\.sync\.aligned;",
        0,
        "",
        "column 0 of tensor memory, .* writes without a wait",
        "@%p9 tcgen05.mma",
    ),
    ("of_f16", r"@%p\d+ tcgen05\.dealloc[^;]*;", 0, "", "never deallocated", "@%p1 tcgen05.alloc"),
    ("of_bf16_boxes", PHASE, 0, "setp.eq.u32 complete, 0, 0;", COPIED, "@%p25 tcgen05.mma"),
]


@pytest.mark.parametrize(("name", "pattern", "number", "instead", "fault", "where"), every(3, IN_TENSOR_MEMORY))
def test_a_wait_that_is_missing_on_blackwell(
    name: str, pattern: str, number: int, instead: str, fault: str, where: str
) -> None:
    check_planted(blackwell()[name], BLACKWELL, pattern, number, instead, fault, where)


def test_softmax() -> None:
    """Sums of 128 numbers in f32."""
    (made,) = kernels_of_xla((CORPUS / "triton/softmax_small.hlo").read_text(), "softmax", OPTIONS)
    kernel, how = read(made)
    x = np.random.default_rng(0).normal(size=(8, 128)).astype(np.float32)
    assert kernel.check([x, np.zeros_like(x)], **how).ok
    got = kernel.run([x, np.zeros_like(x)], **how)[1].astype(np.float64)
    powers = np.exp(x.astype(np.float64) - x.astype(np.float64).max(axis=1, keepdims=True))
    want = powers / powers.sum(axis=1, keepdims=True)
    assert (np.abs(got - want) <= 128 * 2.0**-24 * want).all()
