"""The launch that a module says: by the entry's attributes, else by its ids."""

import pytest

from xla_emitters.analysis.launch import Launch
from xla_emitters.dialects.context import parse_ir
from xla_emitters.errors import DataError
from xla_emitters.runtime.simt.launch import launch_of

ATTRIBUTES = "gpu.known_grid_size = array<i32: 5, 2, 1>, gpu.known_block_size = array<i32: 64, 4, 2>"
THREAD = "%t = gpu.thread_id x {xla.range = [0 : index, 127 : index]}"
BLOCK = "%b = gpu.block_id y {xla.range = [0 : index, 9 : index]}"


def launch(body: str, attributes: str = "xla.entry") -> Launch:
    module = parse_ir(f"func.func @main() attributes {{{attributes}}} {{\n{body}\nreturn\n}}")
    return launch_of(module, next(iter(module.ops)))


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        (THREAD, Launch((1, 1, 1), (128, 1, 1))),
        (THREAD + "\n" + BLOCK, Launch((1, 10, 1), (128, 1, 1))),
        (
            "%0 = xla.workgroup_id x {xla.range = [0 : index, 959 : index]}\n"
            "scf.forall (%i, %j, %k) in (32, 4, 2) {\n}",
            Launch((960, 1, 1), (32, 4, 2)),
        ),
        (
            "%t = nvvm.read.ptx.sreg.tid.z range <i32, 0, 4> : i32\n%b = nvvm.read.ptx.sreg.ctaid.x range <i32, 0, 7> : i32",
            Launch((7, 1, 1), (1, 1, 4)),
        ),
    ],
)
def test_ids_say_their_extents(body, wanted):
    assert launch(body) == wanted


def test_attributes_win():
    assert launch(THREAD, f"xla.entry, {ATTRIBUTES}") == Launch((5, 2, 1), (64, 4, 2))
    half = "xla.entry, nvvm.reqntid = array<i32: 16, 1, 1>"
    assert launch(THREAD + "\n" + BLOCK, half) == Launch((1, 10, 1), (16, 1, 1))


@pytest.mark.parametrize("body", ["", "%t = gpu.thread_id x", THREAD + "\n%b = gpu.block_id x"])
def test_what_says_no_launch(body):
    with pytest.raises(DataError, match="the entry does not say its launch"):
        launch(body)
