"""Forty fusions that are bound by memory, of all kinds of emitters: each moves at least 100 MB. For `benchmarks.tune`.

    loops · slices, pads, broadcasts · concatenates · updates in place · transposes · row, column and scalar reductions · scatters

Sizes are those of activations and weights of models, and some that are not multiples of anything.
"""

from benchmarks import cost
from benchmarks.cost import Fusion, elementwise, reduction, transpose


def of_cost(*names: str) -> list[Fusion]:
    """Fusions that `benchmarks.cost` has too."""
    return [fusion for name in names for fusion in cost.FUSIONS if fusion.name == name]


def in_place(name: str, parameters: tuple[str, ...], result: str, body: str, kind: str = "kLoop") -> Fusion:
    """A fusion whose result is in the buffer of parameter 0."""
    return Fusion(name, parameters, result, body, kind, ", input_output_alias={ {}: (0, {}, may-alias) }")


def scatter_add(name: str, kind: str, rows: int, updates: int, width: int) -> Fusion:
    array, update = f"{kind}[{rows},{width}]", f"{kind}[{updates},1,{width}]"
    how = "update_window_dims={1,2}, inserted_window_dims={}, scatter_dims_to_operand_dims={0}, index_vector_dim=1"
    body = f"s = {array} scatter(p0, p1, p2), {how}, to_apply=add_{kind}"
    return in_place(name, (array, f"s32[{updates},1]", update), array, body, "kCustom")


FUSIONS: tuple[Fusion, ...] = (
    # Loops.
    *of_cost("negate_bf16", "negate_s8", "negate_c64", "add_f32", "logistic_bf16"),
    elementwise("multiply_add_bf16", "bf16", "m = T multiply(p0, p1); s = T add(m, p2)", 3),
    *of_cost("f32_to_bf16"),
    Fusion(
        "sum_and_product_f32",
        ("f32[16384,4096]", "f32[16384,4096]"),
        "(f32[16384,4096], f32[16384,4096])",
        "s = f32[16384,4096] add(p0, p1); m = f32[16384,4096] multiply(p0, p1); "
        "t = (f32[16384,4096], f32[16384,4096]) tuple(s, m)",
    ),
    *of_cost("compare_f32"),
    # Places: slices, broadcasts, pads, gathers.
    *of_cost("broadcast_f32"),
    Fusion(
        "slice_columns_bf16",
        ("bf16[16384,8192]",),
        "bf16[16384,4096]",
        "s = bf16[16384,4096] slice(p0), slice={[0:16384], [2048:6144]}",
    ),
    Fusion(
        "pad_bf16",
        ("bf16[16384,4000]",),
        "bf16[16384,4096]",
        "z = bf16[] constant(0); q = bf16[16384,4096] pad(p0, z), padding=0_0x48_48",
    ),
    Fusion(
        "gather_rows_bf16",
        ("bf16[65536,2048]", "s32[32768,1]"),
        "bf16[32768,1,2048]",
        "g = bf16[32768,1,2048] gather(p0, p1), offset_dims={1,2}, collapsed_slice_dims={}, start_index_map={0}, "
        "index_vector_dim=1, slice_sizes={1,2048}",
    ),
    # Concatenates.
    Fusion(
        "concatenate_bf16",
        ("bf16[16384,2048]", "bf16[16384,2048]"),
        "bf16[16384,4096]",
        "c = bf16[16384,4096] concatenate(p0, p1), dimensions={1}",
    ),
    Fusion(
        "concatenate_s8",
        ("s8[16384,4096]", "s8[16384,4096]"),
        "s8[16384,8192]",
        "c = s8[16384,8192] concatenate(p0, p1), dimensions={1}",
    ),
    Fusion(
        "concatenate_unequal_f32",
        ("f32[16384,3072]", "f32[16384,1024]"),
        "f32[16384,4096]",
        "n = f32[16384,3072] negate(p0); c = f32[16384,4096] concatenate(n, p1), dimensions={1}",
    ),
    # Updates in place.
    in_place(
        "update_cache_bf16",
        ("bf16[64,4096,1024]", "bf16[64,1024,1024]", "s32[]"),
        "bf16[64,4096,1024]",
        "z = s32[] constant(0); u = bf16[64,4096,1024] dynamic-update-slice(p0, p1, z, p2, z)",
    ),
    in_place(
        "update_cache_s8",
        ("s8[64,4096,1024]", "s8[64,2048,1024]", "s32[]"),
        "s8[64,4096,1024]",
        "z = s32[] constant(0); u = s8[64,4096,1024] dynamic-update-slice(p0, p1, z, p2, z)",
    ),
    # Transposes.
    *of_cost("transpose_f32", "transpose_bf16", "transpose_s8"),
    transpose("transpose_f64", "f64[8192,4096]", "f64[4096,8192]", "1,0"),
    transpose("transpose_heads_bf16", "bf16[16,4096,32,64]", "bf16[16,32,64,4096]", "0,2,3,1"),
    transpose("transpose_odd_bf16", "bf16[8191,8189]", "bf16[8189,8191]", "1,0"),
    transpose("transpose_pairs_f32", "f32[4096,8192,2]", "f32[8192,4096,2]", "1,0,2"),
    # Rows.
    *of_cost("sum_rows_f32", "max_rows_bf16", "sum_short_rows_f32"),
    reduction("sum_rows_of_96_f32", "f32[524288,96]", "f32[524288]", "1"),
    *of_cost("sum_squares_rows_f32"),
    Fusion(
        "exponentials_and_their_sums_f32",
        ("f32[16384,4096]", "f32[16384]"),
        "(f32[16384,4096], f32[16384])",
        "b = f32[16384,4096] broadcast(p1), dimensions={0}; d = f32[16384,4096] subtract(p0, b); "
        "x = f32[16384,4096] exponential(d); z = f32[] constant(0); "
        "r = f32[16384] reduce(x, z), dimensions={1}, to_apply=add_f32; t = (f32[16384,4096], f32[16384]) tuple(x, r)",
        "kInput",
    ),
    # Columns, and all elements.
    *of_cost("sum_columns_f32"),
    reduction("sum_long_columns_f32", "f32[4096,8192]", "f32[8192]", "0"),
    reduction("sum_skinny_columns_f32", "f32[4096,4,2048]", "f32[4,2048]", "0"),
    reduction("sum_narrow_columns_f32", "f32[524288,64]", "f32[64]", "0"),
    reduction("max_columns_bf16", "bf16[4096,16384]", "bf16[16384]", "0", combine="maximum"),
    reduction("sum_few_columns_f32", "f32[1024,4096,8]", "f32[1024,8]", "1"),
    reduction("sum_all_f32", "f32[16384,4096]", "f32[]", "0,1"),
    # Scatters.
    scatter_add("scatter_add_f32", "f32", 65536, 32768, 1024),
    scatter_add("scatter_add_bf16", "bf16", 65536, 32768, 2048),
)

SKINNY: tuple[Fusion, ...] = (
    reduction("sum_8_rows_f32", "f32[8,16384]", "f32[8]", "1"),
    reduction("sum_64_rows_f32", "f32[64,16384]", "f32[64]", "1"),
    reduction("sum_128_columns_f32", "f32[4096,128]", "f32[128]", "0"),
    reduction("sum_512_columns_f32", "f32[4096,512]", "f32[512]", "0"),
    reduction("sum_1024_columns_f32", "f32[4096,1024]", "f32[1024]", "0"),
    reduction("sum_512_columns_bf16", "bf16[4096,512]", "bf16[512]", "0"),
    reduction("sum_8_by_64_columns_f32", "f32[8,4096,64]", "f32[8,64]", "1"),
)
"""Reductions whose blocks leave most multiprocessors idle by XLA's choice; these are below 100 MB."""
