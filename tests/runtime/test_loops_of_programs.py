"""Fusions of real programs as loops: the bits that their ops give one by one."""

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
from long_lists import every
from runtime import dynamic_programs, stablehlo_programs
from runtime.loops_of_programs import fuse, only_loops, with_loops
from xdsl.dialects.builtin import ModuleOp

from xla_emitters.pipelines.options import CompileOptions
from xla_emitters.pipelines.program_runs import load
from xla_emitters.pipelines.programs import compile_program
from xla_emitters.runtime.arrays import same_bits
from xla_emitters.text.stablehlo import parse_stablehlo

# Moves of all kinds, masks, integers, truth values, narrow floats, gathers, updates of slices; sizes 0 and 1 are among the last three.
SAMPLE = {
    "rope": dynamic_programs,
    "rolled": dynamic_programs,
    "tiled": dynamic_programs,
    "one_hot": dynamic_programs,
    "maybe_empty": dynamic_programs,
    "integer_division": dynamic_programs,
    "last_token": dynamic_programs,
    "image_bytes": dynamic_programs,
    "scan_reversed": dynamic_programs,
    "gather_rows": stablehlo_programs,
    "update_slice": stablehlo_programs,
    "padded": stablehlo_programs,
    "narrow": stablehlo_programs,
}
# Who makes the fusions: the pass (only its loop fusions are taken here), or every run of ops that may be one.
MAKERS: dict[str, tuple[str, Callable[[ModuleOp], int]]] = {
    "chosen": ("fused", only_loops),
    "long": ("lmhlo", partial(fuse, most=64)),
}


@pytest.mark.parametrize(("name", "made"), every(5, [(name, made) for name in SAMPLE for made in MAKERS]))
def test_loops_give_the_bits_of_their_ops(name: str, made: str) -> None:
    programs, (stage, make) = SAMPLE[name], MAKERS[made]
    path = programs.CORPUS / f"{name}.mlir"
    program = compile_program(parse_stablehlo(path.read_text(), path.name), CompileOptions(stage=stage))
    module = program.compilation.module.clone()
    assert make(module) > 0
    loops, ops = load(with_loops(module)), program.compilation.loaded
    cases = programs.CASES[name].sizes
    for sizes in (cases[0], cases[-1]):
        inputs = program.compilation.checked(programs.inputs_of(name, sizes))
        for found, wanted in zip(loops.run(inputs), ops.run(inputs), strict=True):
            assert found.shape == wanted.shape
            assert same_bits(found, wanted), np.argwhere(found != wanted)[:5]
