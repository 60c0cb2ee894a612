"""Launches of programs with unknown sizes, priced: what they move and execute follows from the sizes."""

import json
from pathlib import Path

from in_process import messages, printed
from tools_here import SASS, needs

import xla_emitters as xe
from xla_emitters.explore.compile import compile_text
from xla_emitters.explore.cost.program_cost import launches_of
from xla_emitters.pipelines.program_inputs import drawn_inputs
from xla_emitters.tools.main import main

CORPUS = Path(__file__).parents[3] / "corpus"
NORM = CORPUS / "fusions" / "layer_norm.mlir"
LOOP = CORPUS / "programs" / "given_trips.mlir"


@needs(*SASS)
def test_a_norm_moves_its_rows_once_and_executes_as_often_as_it_has_rows() -> None:
    program = xe.compile(NORM)
    (small,), (large,) = (xe.cost(program, sizes={"b": b, "s": 128}).kernels for b in (4, 64))
    for cost, rows in ((small, 4 * 128), (large, 64 * 128)):
        assert cost.bytes_needed == rows * 32 * 4 * 2 + 2 * 32 * 4
        assert cost.bytes_ratio == 1
        assert cost.blocks == rows // 64  # 256 threads, four a row: 32 columns are eight accesses of 16 bytes
        assert cost.unknown_loops == 0
    assert small.instructions == large.instructions
    # L2 sees the weights once for each block of 64 rows.
    assert large.l2_bytes == large.bytes_needed + (large.blocks - 1) * 2 * 32 * 4


def test_launches_are_those_of_the_sizes() -> None:
    program = compile_text((CORPUS / "fusions" / "softmax.mlir").read_text(), "softmax.mlir")
    names = {
        columns: [launch.name for launch in launches_of(program, drawn_inputs(program, {"b": 2, "s": columns}, 0))]
        for columns in (33, 64, 1000, 4096, 20480)
    }
    stem = "main_kStitch_reduce_0"
    assert names == {
        33: [f"{stem}_warp"],
        64: [f"{stem}_vec4_lanes"],
        1000: [f"{stem}_vec4_warp"],
        4096: [f"{stem}_vec4_warps"],
        20480: [f"{stem}_vec4"],
    }


def test_a_loop_on_the_host_launches_as_often_as_its_data_says() -> None:
    program = compile_text(LOOP.read_text(), LOOP.name)
    drawn = drawn_inputs(program, dict.fromkeys(program.symbols, 2), 0)
    for trips in (2, 3, 4):
        inputs = [array if array.ndim else array * 0 + trips for array in drawn]
        # A loop in a loop, which begins where the outer one is; a loop of its own, and what it begins with.
        assert len(launches_of(program, inputs)) == trips * (trips + 1) // 2 + trips + 1
        assert program.run(inputs)  # the context is as it was


@needs(*SASS)
def test_the_command_line_prices_at_sizes() -> None:
    (target,) = json.loads(printed("cost", NORM, "--sizes", "b=4,s=64", "--json"))["targets"]
    assert [kernel["launches"] for kernel in target["kernels"]] == [1]
    assert "the sizes 'b', 's' of jit_layer_norm are unknown" in messages(1, "cost", NORM)
    assert main(["cost", str(CORPUS.parents[1] / "examples" / "gelu.hlo"), "--sizes", "b=1"]) == 2
    assert main(["cost", str(NORM), "--sizes", "b=4,s=64", "--fusion", "f"]) == 2
