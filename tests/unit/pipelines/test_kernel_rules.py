"""`--tune auto`: which work of a thread the rule takes; that it is the default of modules of several kernels, and not of one."""

import pytest

import xla_emitters as xe


def fused(result: str, body: str, parameter: str) -> str:
    return (
        f"f {{\np = {parameter} parameter(0)\nROOT r = {result} {body} }}\n"
        f"ENTRY e {{\np = {parameter} parameter(0)\nROOT fusion = {result} fusion(p), kind=kLoop, calls=f }}\n"
    )


def chosen(text: str, tune: str = "", fusion: str | None = None) -> list[object]:
    """Elements of a thread of each kernel."""
    program = xe.compile(text, stage="xla_gpu", cache=False, tune=tune, fusion=fusion)
    return [
        next(each.data["elements_per_thread"] for each in trace.decisions if each.topic == "unroll")
        for trace in program.traces
    ]


@pytest.mark.parametrize(
    ("result", "body", "parameter", "elements"),
    [
        # 16 bytes of the wider array, twice. 270,336 threads four times: 16 elements for each are 17.3 million.
        ("bf16[8192,8192]", "convert(p)", "s8[8192,8192]", 16),
        ("bf16[8192,8192]", "negate(p)", "bf16[8192,8192]", 16),
        ("f32[8192,8192]", "negate(p)", "f32[8192,8192]", 8),
        ("f64[8192,8192]", "negate(p)", "f64[8192,8192]", 4),
        # Too few for two rounds; too few for any rule: XLA's choices.
        ("bf16[1024,9216]", "negate(p)", "bf16[1024,9216]", 8),
        ("f32[1024,4096]", "negate(p)", "f32[1024,4096]", 4),
        ("f32[64]", "negate(p)", "f32[64]", 1),
    ],
)
def test_sixteen_bytes_twice_where_the_grid_stays_large(result: str, body: str, parameter: str, elements: int) -> None:
    assert chosen(fused(result, body, parameter), tune="auto") == [elements]


SEVERAL = """HloModule several
f { p = bf16[8192,8192] parameter(0)
    ROOT n = bf16[8192,8192] negate(p) }
g { p = bf16[8192,8192] parameter(0)
    ROOT n = bf16[8192,8192] abs(p) }
ENTRY e { p = bf16[8192,8192] parameter(0)
    a = bf16[8192,8192] fusion(p), kind=kLoop, calls=f
    b = bf16[8192,8192] fusion(a), kind=kLoop, calls=g
    ROOT both = (bf16[8192,8192], bf16[8192,8192]) tuple(a, b) }
"""


def test_the_default_is_xlas_choice_of_one_kernel_and_the_rule_of_several() -> None:
    one = fused("bf16[8192,8192]", "negate(p)", "bf16[8192,8192]")
    assert (chosen(one), chosen(one, tune="auto")) == ([4], [16])
    assert (chosen(SEVERAL), chosen(SEVERAL, tune="xla")) == ([16, 16], [4, 4])
    assert chosen(SEVERAL, fusion="a") == [4]
    assert chosen(one, tune="xla") == [4]


@pytest.mark.parametrize(
    ("places", "elements"),
    [
        ([(1, 1), (0, 1)], 8),
        # Five reads of four neighbours, 4 bytes each, would keep the first-level cache busier than the memory: two, twice.
        ([(1, 1), (0, 1), (2, 1), (1, 0), (1, 2)], 4),
    ],
)
def test_many_reads_that_are_not_aligned_narrow_the_access(places: list[tuple[int, int]], elements: int) -> None:
    lines = ["p = f32[8192,8192] parameter(0)"]
    for n, (row, column) in enumerate(places):
        lines.append(f"q{n} = f32[8190,8190] slice(p), slice={{[{row}:{row + 8190}], [{column}:{column + 8190}]}}")
        lines.append(f"a{n} = f32[8190,8190] add({f'a{n - 1}' if n else 'q0'}, q{n})")
    lines[-1] = f"ROOT {lines[-1]}"
    body = "\n".join(lines)
    text = (
        f"f {{ {body} }}\nENTRY e {{ p = f32[8192,8192] parameter(0)\n"
        "ROOT fusion = f32[8190,8190] fusion(p), kind=kLoop, calls=f }\n"
    )
    assert chosen(text, tune="auto") == [elements]


def test_tiles_are_read_and_written_by_eight_bytes_where_blocks_fill_the_chip() -> None:
    def tiles(size: int) -> object:
        shape = f"f32[{size},{size}]"
        text = fused(shape, "transpose(p), dimensions={1,0}", shape).replace("kLoop", "kInput")
        program = xe.compile(text, stage="xla_gpu", cache=False, tune="auto")
        return [each.data.get("chosen") for each in program.traces[0].decisions if each.topic == "tune"]

    assert tiles(8192) == ["2 at once, rows rotated"]
    assert tiles(1024) == []
