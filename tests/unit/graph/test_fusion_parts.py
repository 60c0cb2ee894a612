"""Computations under construction: their text reads back, whatever the names of their instructions are."""

import numpy as np

from xla_emitters.graph.entry import entry_of
from xla_emitters.graph.fusion_parts import wrap_entry
from xla_emitters.graph.plan import plan_program
from xla_emitters.runtime.reference.reference import evaluate
from xla_emitters.text.hlo import parse_hlo, print_hlo


def test_an_entry_with_the_name_of_its_parameter_is_wrapped() -> None:
    """The fusion has the entry's name, and so does its kernel."""
    module = parse_hlo("ENTRY x { x = s32[3] parameter(0)\n y = s32[3] parameter(1)\n ROOT d = s32[3] subtract(x, y) }")
    wrap_entry(entry_of(module))
    again = parse_hlo(print_hlo(module))
    assert [op.instruction_name.data for op in entry_of(again).instructions] == ["x.1", "y", "x"]
    assert [kernel.name for kernel in plan_program(again).kernels] == ["x"]
    numbers = np.arange(3, dtype=np.int32)
    assert evaluate(entry_of(again), [numbers, 5 + numbers])[0].tolist() == [-5, -5, -5]
