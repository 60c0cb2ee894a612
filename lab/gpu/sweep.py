"""Writes fusions of one kind each at real sizes: what every op, type, row length and layout costs on a GPU. usage: sweep.py FOLDER"""

import sys
from pathlib import Path

N = 1 << 24
UNARY = "exponential log tanh sine sqrt rsqrt erf cbrt logistic log-plus-one exponential-minus-one tan ceil".split()
BITS = {"f16": 2, "bf16": 2, "f32": 4, "f64": 8, "s8": 1, "s32": 4, "u32": 4, "s64": 8, "s16": 2}


def loop(body: str, kinds: list[str], result: str, n: int = N) -> str:
    parameters = "\n".join(f"  p{i} = {k}[{n}]{{0}} parameter({i})" for i, k in enumerate(kinds))
    entry = "\n".join(f"  a{i} = {k}[{n}]{{0}} parameter({i})" for i, k in enumerate(kinds))
    names = ", ".join(f"a{i}" for i in range(len(kinds)))
    root = f"  ROOT fusion = {result}[{n}]{{0}} fusion({names}), kind=kLoop, calls=fused"
    return f"HloModule m\n\nfused {{\n{parameters}\n{body}\n}}\n\nENTRY main {{\n{entry}\n{root}\n}}\n"


def chain(op: str, kind: str, count: int) -> str:
    lines = []
    last = "p0"
    for i in range(count):
        root = "ROOT " if i == count - 1 else ""
        # Scaled back in between, so that values stay ordinary; once, the op alone.
        lines.append(f"  {root}v{i} = {kind}[{N}]{{0}} {op}({last})")
        last = f"v{i}"
        if i < count - 1:
            lines += [
                f"  k{i} = {kind}[] constant({1.25 + i / 16 if kind[0] in 'fb' else 3 + i})",
                f"  b{i} = {kind}[{N}]{{0}} broadcast(k{i}), dimensions={{}}",
            ]
            if op in ("log", "log-plus-one", "sine", "tan", "exponential", "exponential-minus-one"):
                lines += [
                    f"  c{i} = {kind}[{N}]{{0}} abs({last})",
                    f"  d{i} = {kind}[{N}]{{0}} minimum(c{i}, b{i})",
                    f"  e{i} = {kind}[{N}]{{0}} add(d{i}, b{i})"
                    if op.startswith("log")
                    else f"  e{i} = {kind}[{N}]{{0}} subtract(d{i}, b{i})",
                ]
            else:
                lines += [f"  e{i} = {kind}[{N}]{{0}} multiply({last}, b{i})"]
            last = f"e{i}"
    return loop("\n".join(lines), [kind], kind)


def binary(op: str, kind: str, count: int) -> str:
    lines, last = [], "p0"
    for i in range(count):
        root = "ROOT " if i == count - 1 else ""
        lines.append(f"  {root}v{i} = {kind}[{N}]{{0}} {op}({last}, p1)")
        last = f"v{i}"
    return loop("\n".join(lines), [kind, kind], kind)


def region(kind: str, op: str) -> str:
    return (
        f"region {{\n  a = {kind}[] parameter(0)\n  b = {kind}[] parameter(1)\n  ROOT r = {kind}[] {op}(a, b)\n}}\n\n"
    )


def layout(rank: int) -> str:
    return "{" + ",".join(str(i) for i in reversed(range(rank))) + "}"


def text(sizes: tuple[int, ...]) -> str:
    return ",".join(map(str, sizes))


def reduce(kind: str, shape: tuple[int, ...], dims: tuple[int, ...], op: str = "add", wide: bool = False) -> str:
    kept = tuple(s for i, s in enumerate(shape) if i not in dims)
    inner = "f32" if wide else kind
    source = f"{kind}[{text(shape)}]{layout(len(shape))}"
    wided = f"  w = f32[{text(shape)}]{layout(len(shape))} convert(p0)\n" if wide else ""
    result = f"{inner}[{text(kept)}]{layout(len(kept))}"
    init = "0" if op == "add" else "-inf"
    return (
        f"HloModule m\n\n{region(inner, op)}fused {{\n  p0 = {source} parameter(0)\n{wided}  z = {inner}[] constant({init})\n"
        f"  ROOT r = {result} reduce({'w' if wide else 'p0'}, z), dimensions={{{text(dims)}}}, to_apply=region\n}}\n\n"
        f"ENTRY main {{\n  a0 = {source} parameter(0)\n  ROOT fusion = {result} fusion(a0), kind=kInput, calls=fused\n}}\n"
    )


def transpose(kind: str, shape: tuple[int, ...], dims: tuple[int, ...]) -> str:
    source = f"{kind}[{text(shape)}]{layout(len(shape))}"
    result = f"{kind}[{text(tuple(shape[d] for d in dims))}]{layout(len(shape))}"
    return (
        f"HloModule m\n\nfused {{\n  p0 = {source} parameter(0)\n"
        f"  ROOT t = {result} transpose(p0), dimensions={{{text(dims)}}}\n}}\n\n"
        f"ENTRY main {{\n  a0 = {source} parameter(0)\n"
        f"  ROOT fusion = {result} fusion(a0), kind=kInput, calls=fused\n}}\n"
    )


def all_files() -> dict[str, str]:
    found: dict[str, str] = {}
    for op in UNARY:
        for count in (1, 8):
            found[f"op/{op}_f32_{count}"] = chain(op, "f32", count)
    for op in ("exponential", "tanh", "log", "rsqrt", "logistic"):
        for kind in ("bf16", "f16", "f64"):
            found[f"op/{op}_{kind}_4"] = chain(op, kind, 4)
    for op in ("add", "multiply", "divide", "power", "maximum", "remainder", "atan2"):
        for kind, count in (("f32", 8), ("bf16", 8), ("f16", 8), ("f64", 8)):
            if op in ("atan2", "remainder") and kind != "f32":
                continue
            found[f"op/{op}_{kind}_{count}"] = binary(op, kind, count)
    for op in ("add", "multiply", "divide", "remainder", "xor", "shift-left"):
        for kind in ("s8", "s32", "s64", "u32"):
            found[f"op/{op}_{kind}_8"] = binary(op, kind, 8)
    for op in ("popcnt", "count-leading-zeros", "not"):
        found[f"op/{op}_s32_8"] = "\n".join(
            [
                loop(
                    "\n".join(
                        f"  {'ROOT ' if i == 7 else ''}v{i} = s32[{N}]{{0}} {op}({'p0' if i == 0 else f'v{i - 1}'})"
                        for i in range(8)
                    ),
                    ["s32"],
                    "s32",
                )
            ]
        )
    for kind in ("f32", "bf16", "f64", "s8"):
        total = (1 << 26) * 4 // max(BITS[kind], 2)
        for row in (4, 8, 16, 32, 64, 100, 128, 256, 512, 1000, 1024, 2048, 4096, 8192, 16384, 65536, 1 << 20):
            if kind != "f32" and row not in (8, 64, 1000, 1024, 8192):
                continue
            if kind == "s8":
                continue
            found[f"row/{kind}_{row}"] = reduce(kind, (total // row, row), (1,), wide=kind == "bf16")
    for row in (64, 1024, 8192):
        found[f"row/max_f32_{row}"] = reduce("f32", ((1 << 26) // row, row), (1,), "maximum")
    for kind in ("f32", "bf16"):
        total = (1 << 26) * 4 // BITS[kind]
        for columns in (1, 2, 8, 16, 32, 64, 100, 128, 256, 1024, 8192, 65536):
            if kind != "f32" and columns not in (32, 128, 1024):
                continue
            found[f"column/{kind}_{columns}"] = reduce(kind, (total // columns, columns), (0,), wide=kind == "bf16")
    for middle in (16, 128, 1024):
        found[f"column/middle_f32_{middle}"] = reduce("f32", ((1 << 26) // middle // 256, middle, 256), (1,))
        found[f"row/two_f32_{middle}"] = reduce("f32", (64, middle, (1 << 20) // middle), (0, 2))
    for kind in ("s8", "bf16", "f32", "f64"):
        side = {1: 16384, 2: 8192, 4: 8192, 8: 4096}[BITS[kind]]
        found[f"transpose/square_{kind}"] = transpose(kind, (side, side), (1, 0))
        found[f"transpose/odd_{kind}"] = transpose(kind, (side - 1, side + 3), (1, 0))
        found[f"transpose/narrow_{kind}"] = transpose(kind, (side * side // 16, 16), (1, 0))
        found[f"transpose/wide_{kind}"] = transpose(kind, (16, side * side // 16), (1, 0))
        found[f"transpose/nchw_{kind}"] = transpose(kind, (side // 128, 64, 56, 56), (0, 2, 3, 1))
        found[f"transpose/nhwc_{kind}"] = transpose(kind, (side // 128, 56, 56, 64), (0, 3, 1, 2))
        found[f"transpose/swap_{kind}"] = transpose(kind, (side // 64, 256, side // 4, 1)[:3], (1, 0, 2))
        found[f"transpose/reversed_{kind}"] = transpose(kind, (side // 32, 128, side // 4), (2, 1, 0))
    return found


def main() -> None:
    root = Path(sys.argv[1])
    for name, text in all_files().items():
        path = root / f"{name}.hlo"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    print(len(all_files()))


main()
