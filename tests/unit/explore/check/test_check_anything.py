"""`check` of files, texts and programs that were compiled before."""

import numpy as np
import pytest
from runtime.small_programs import GELU

import xla_emitters as xe
from xla_emitters.errors import DataError, UsageError

PROGRAM = """func.func @main(%x: tensor<?x4xf32>) -> tensor<?x4xf32> {
  %0 = stablehlo.add %x, %x : tensor<?x4xf32>
  return %0 : tensor<?x4xf32>
}
"""


def symbols(program: xe.Program) -> dict[str, int]:
    assert isinstance(program, xe.Program)
    return dict.fromkeys(program.symbols, 3)


def test_a_module_that_was_compiled() -> None:
    program = xe.compile(GELU, target="a100", stage="scf")
    verdict = xe.check(program, blocks=2)
    assert verdict.ok
    assert verdict.program.target == "a100"
    with pytest.raises(UsageError, match="sizes are for programs"):
        xe.check(program, sizes={"b": 2})


def test_a_program_that_was_compiled_and_its_text() -> None:
    program = xe.compile(PROGRAM)
    sizes = symbols(program)
    for source in (program, PROGRAM):
        verdict = xe.check(source, sizes=sizes)
        assert verdict.ok
        assert "12 of 12 elements bit-identical" in verdict.summary
        assert xe.check(source, sizes=sizes, stages="passes").ok
        assert xe.check(source, inputs=[np.ones((5, 4), np.float32)], stages="hlo,loops").summary.startswith(
            "hlo, loops: 20 of 20"
        )
    with pytest.raises(DataError, match="inputs cannot be drawn"):
        xe.check(program)
