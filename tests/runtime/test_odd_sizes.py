"""Arrays of more than 2^31 elements, and grids of more blocks than one row has. Arrays of one element or none have files in `filecheck`."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from tools_here import SASS, here, needs

from xla_emitters import device as devices
from xla_emitters.dialects.context import parse_ir
from xla_emitters.explore.check.check import check
from xla_emitters.lowering.toolchain.machine_code import assemble
from xla_emitters.pipelines.compiler import compile
from xla_emitters.rewrite.kernel_entry import launch_of
from xla_emitters.runtime.simt.execute import execute
from xla_emitters.trace.records import Trace


def fused(root_type: str, body: str, parameter: str) -> str:
    """HLO of one loop fusion of one parameter, %p."""
    return f"""
      fused {{
        p = {parameter} parameter(0)
        {body} }}
      ENTRY main {{
        x = {parameter} parameter(0)
        ROOT fusion = {root_type} fusion(x), kind=kLoop, calls=fused }}"""


ROWS = 715_827_884  # of three: 2^31 + 4 elements
COUNTED = fused(
    f"u8[{ROWS},3]",
    f"""b = u8[{ROWS},3] broadcast(p), dimensions={{}}
        i = u8[{ROWS},3] iota(), iota_dimension=1
        ROOT a = u8[{ROWS},3] add(b, i)""",
    "u8[]",
)


@cache
def counted() -> Trace:
    return compile(COUNTED, stage="llvm-dialect").traces[0]


@pytest.mark.parametrize("stage", ["xla_gpu", "flat", "unrolled", "llvm-dialect"])
def test_indices_beyond_31_bits(stage: str) -> None:
    """Element n is p + n mod 3: the first, middle and last blocks of 2^31 + 4 elements. Memory that no block writes is never touched."""
    ir = counted()[stage].ir
    assert ir is not None
    module = parse_ir(ir)
    out = np.zeros(ROWS * 3, np.uint8)
    launch = launch_of(module)
    chosen = [0, launch.blocks // 2, launch.blocks - 2, launch.blocks - 1]
    execute(module, [np.array(70, np.uint8), out], blocks=chosen)
    # As many elements a thread as the whole grid needs.
    per_block = -(-out.size // (launch.blocks * launch.threads)) * launch.threads
    for block in chosen:
        place = np.arange(block * per_block, min((block + 1) * per_block, out.size))
        np.testing.assert_array_equal(out[place], 70 + place % 3)
    assert chosen[-1] * per_block + per_block > 2**31 > chosen[1] * per_block
    assert not out[per_block : per_block + 1000].any()


@needs(*SASS)
@pytest.mark.parametrize("architecture", ["sm_75", "sm_90"])
def test_a_grid_of_two_rows_of_blocks(architecture: str) -> None:
    """More than 2^31 - 1 blocks of 128 threads with 8 elements each: the y of the grid begins to count."""
    size = 128 * 8 * 2**31 + 5
    text = fused(f"u8[{size}]", f"ROOT b = u8[{size}] broadcast(p), dimensions={{}}", "u8[]")
    (kernel,) = compile(text, target=architecture).kernels
    x, y, _ = kernel.launch.grid
    assert x <= 2**31 - 1
    assert y > 1
    assert "%ctaid.y" in kernel.ptx
    assert len(assemble(kernel.ptx, architecture, here()).entries) == 1


@pytest.mark.parametrize("most", [1, 3, 7])
@pytest.mark.parametrize("size", [129, 1000, 4099])
def test_numbers_of_a_grid_with_short_rows(size: int, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a device whose grids have at most `most` blocks in a row, every stage gives the same numbers; the last row overhangs."""
    narrow = replace(devices.device("t4"), name="narrow", grid_max_x=most)
    monkeypatch.setitem(devices._BY_NAME, "narrow", narrow)  # no such GPU is sold
    text = fused(f"f32[{size},2]", f"ROOT n = f32[{size},2] negate(p)", f"f32[{size},2]")
    program = compile(text, target="narrow", stage="llvm-dialect")
    assert program.kernels[0].launch.grid[0] <= most
    verdict = check(text, target="narrow", verify=False)
    assert verdict.ok, verdict.details
