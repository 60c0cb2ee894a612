"""The seed's GELU at every stage that the seed shows: the bits of NumPy's bf16 computation, op by op."""

import ml_dtypes
import numpy as np
import pytest
from runtime.simt_listings import STAGES, listing

from xla_emitters.dialects.context import parse_ir
from xla_emitters.errors import ExecutionError
from xla_emitters.runtime.simt import execute, written_elements

SHAPE, THREADS = (2, 8, 64), 8
BF16 = ml_dtypes.bfloat16


def bf16_tanh(x: np.ndarray) -> np.ndarray:
    return np.tanh(x.astype(np.float32)).astype(BF16)


def gelu(x: np.ndarray) -> np.ndarray:
    """The seed's HLO in ml_dtypes' own bf16 arithmetic, which rounds after each op."""
    half, one, scale, cubic = (BF16(c) for c in (0.5, 1.0, 0.79785, 0.044708))
    inner = (x + x * x * x * cubic) * scale
    return x * ((bf16_tanh(inner) + one) * half)


def inputs() -> np.ndarray:
    """Normal draws, with every kind of special value among them."""
    x = np.random.default_rng(0).standard_normal(SHAPE).astype(BF16)
    specials = [0.0, -0.0, np.inf, -np.inf, np.nan, 3e38, -3e38, 1e-40, -1e-40, 1e-20]
    x.reshape(-1)[: len(specials)] = specials
    return x


@pytest.mark.tiny
@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_every_stage_gives_the_bits_of_numpy(stage):
    x, out = inputs(), np.zeros(SHAPE, BF16)
    execute(parse_ir(listing(stage, SHAPE, THREADS)), [x, out], chunk_blocks=5)
    wanted = gelu(x)
    number = ~np.isnan(wanted)
    np.testing.assert_array_equal(np.isnan(out), ~number)
    np.testing.assert_array_equal(out.view(np.uint16)[number], wanted.view(np.uint16)[number])


@pytest.mark.parametrize("stage", STAGES)
def test_two_blocks_write_two_rows_of_the_output(stage):
    x, out = inputs(), np.zeros(SHAPE, BF16)
    (written,) = written_elements(parse_ir(listing(stage, SHAPE, THREADS)), [x, out], blocks=[0, 31])
    width = 4 * THREADS
    np.testing.assert_array_equal(written.reshape(-1), np.isin(np.arange(x.size) // width, [0, 31]))


@pytest.mark.parametrize("stage", STAGES)
def test_one_block_too_many_is_out_of_bounds(stage):
    text = listing(stage, SHAPE, THREADS)
    blocks = SHAPE[0] * SHAPE[1] * SHAPE[2] // (4 * THREADS)
    wider = (
        text.replace(f"gpu.known_grid_size = array<i32: {blocks},", f"gpu.known_grid_size = array<i32: {blocks + 1},")
        .replace(f"{{xla.range = [0 : index, {blocks - 1} : index]}}", "")
        .replace(f"range <i32, 0, {blocks}>", "")
        .replace(f"bl_x in [0, {blocks - 1}]", f"bl_x in [0, {blocks}]")
        .replace(f"%last_block = arith.constant {blocks - 1}", f"%last_block = arith.constant {blocks}")
    )
    assert wider != text
    with pytest.raises(ExecutionError, match=rf"block {blocks}, thread 0 (reads index|has an index outside)"):
        execute(parse_ir(wider), [inputs(), np.zeros(SHAPE, BF16)])
