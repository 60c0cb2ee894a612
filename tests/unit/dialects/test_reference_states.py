"""What the real XLA prints before each of its emitter passes is read, checked, and printed back.

`tests/corpus/reference` holds XLA's own logs for three fusions: an element-wise one, a transpose through shared memory, and a reduction of
rows with warp shuffles. Every state counts: before XLA's first pass, through scf, flat tensors and vectors, to the LLVM dialect.
"""

import re
from functools import cache
from pathlib import Path

import pytest
from long_lists import but_long
from unit.dialects.mlir_opt import generic_text, is_read_by_mlir

from xla_emitters.dialects.context import parse_ir
from xla_emitters.dialects.mlir_printer import print_ir

REFERENCE = Path(__file__).parents[2] / "corpus" / "reference"
STATES = {"gelu": 49, "transpose": 55, "row_reduction": 68}


@cache
def states(fusion: str) -> tuple[str, ...]:
    """The module before each pass, in order, as the log has it."""
    text = (REFERENCE / fusion / "passes.mlir.log").read_text()
    _, *found = re.split(r"^// -----// IR Dump Before .*$", text, flags=re.M)
    return tuple(state.strip() for state in found)


def different_states(fusion: str) -> list[str]:
    """Each once: many passes change nothing."""
    return list(dict.fromkeys(states(fusion)))


# XLA's MLIR is newer than 22 and has lost the custom form.
GENERIC_BARRIER = '"nvvm.barrier"() <{operandSegmentSizes = array<i32: 0, 0, 0>}> : () -> ()'


def without_names(text: str) -> str:
    """The text without the names of values and the comments, which XLA and we choose differently."""
    text = text.replace(GENERIC_BARRIER, "nvvm.barrier")
    text = re.sub(r" *// .*", "", text)
    text = re.sub(r"%[\w.$-]+(#\d+|:\d+)?", "%", text)
    return re.sub(r"(?m)^( *)%(, %)+ =", r"\1% =", text)


@pytest.mark.parametrize("fusion", STATES)
def test_the_log_is_whole(fusion: str):
    assert len(states(fusion)) == STATES[fusion]


# The reduction has shared memory and a barrier too.
@pytest.mark.parametrize("fusion", but_long(STATES, ("transpose", "row_reduction")))
def test_every_state_is_read_and_printed_back(fusion: str, capsys: pytest.CaptureFixture[str]):
    """And in upstream's spelling it is what XLA prints, but for the names of values.

    `mlir-opt` reads the generic form of all of them: neighbours are much alike, so every fourth is read back here. What holds none of XLA's
    own ops, the last states, it reads in each form, and means the same.
    """
    found = different_states(fusion)
    modules = [parse_ir(state) for state in found]
    for number, (state, module) in enumerate(zip(found, modules, strict=True)):
        ours = print_ir(module)
        assert print_ir(parse_ir(ours)) == ours
        if number % 4 == 0:
            assert print_ir(parse_ir(print_ir(module, generic=True))) == ours
        upstream = print_ir(module, spelling="upstream")
        assert without_names(upstream) == without_names(state)
    with capsys.disabled():
        print(f"\n{fusion}: {STATES[fusion]} of {STATES[fusion]} states ({len(found)} different)")
    assert len(generic_text([print_ir(module, generic=True) for module in modules])) == len(found)
    known = [number for number, state in enumerate(found) if is_read_by_mlir(state)]
    assert known
    assert known[-1] == len(found) - 1
    wanted = generic_text([found[number] for number in known])
    assert generic_text([print_ir(modules[number]) for number in known]) == wanted
    assert generic_text([print_ir(modules[number], generic=True) for number in known]) == wanted
