"""One fusion of ENTRY alone: a parameter for each operand, the same values, and no reference to the old parameters."""

import numpy as np
import pytest

from xla_emitters.errors import UsageError
from xla_emitters.graph.control_computations import called_by
from xla_emitters.graph.entry import entry_of
from xla_emitters.graph.plan import plan_program
from xla_emitters.graph.select_fusion import SelectFusionPass
from xla_emitters.program import Slot
from xla_emitters.runtime.reference.reference import evaluate
from xla_emitters.text.hlo import parse_hlo, print_hlo

TEXT = """
HloModule m, input_output_alias={ {}: (1, {}, may-alias) }
negate {
  x = s32[6] parameter(0)
  ROOT n = s32[6] negate(x)
}
less {
  x = s32[6] parameter(0)
  y = s32[6] parameter(1)
  ROOT d = s32[6] subtract(x, y)
}
ENTRY main {
  p = s32[6] parameter(0)
  q = s32[6] parameter(1)
  a = s32[6] fusion(p), kind=kLoop, calls=negate
  b = s32[6] fusion(q, a), kind=kLoop, calls=less
  ROOT c = s32[6] fusion(a, a), kind=kLoop, calls=less
}
"""


def test_each_operand_is_a_parameter() -> None:
    """The example at the head of the file; an operand that is given twice is two parameters."""
    module = parse_hlo(TEXT)
    SelectFusionPass("b").apply_to(module)
    module.verify()
    (kernel,) = plan_program(module).kernels
    assert (kernel.name, kernel.operands) == ("b", (Slot("parameter", 0), Slot("parameter", 1)))
    x, y = np.arange(6, dtype=np.int32), np.full(6, 10, np.int32)
    text = print_hlo(module)
    for other in (module, parse_hlo(text)):
        assert evaluate(entry_of(other), [x, y])[0].tolist() == [-10, -9, -8, -7, -6, -5]
    # ENTRY's parameter 1 was another array.
    assert "input_output_alias" not in text
    twice = parse_hlo(TEXT)
    SelectFusionPass("c").apply_to(twice)
    assert len(entry_of(twice).parameters) == 2


def test_its_computation_and_place_stay() -> None:
    module = parse_hlo(TEXT, "x.hlo")
    computation = called_by(module, "a")
    where = next(op for op in entry_of(module).instructions if op.instruction_name.data == "a").location
    SelectFusionPass("a").apply_to(module)
    assert called_by(module, "a") is computation
    assert all(op.location == where for op in entry_of(module).instructions)


def test_a_name_that_no_fusion_has() -> None:
    with pytest.raises(UsageError, match="no fusion instruction 'd' in ENTRY") as raised:
        SelectFusionPass("d").apply_to(parse_hlo(TEXT))
    assert raised.value.help == "there are: a, b, c"


def test_a_fusion_of_a_loop_is_compiled_alone() -> None:
    text = (
        "negate"
        + TEXT.partition("negate")[2].partition("ENTRY")[0]
        + """
      body {
        s = (s32[6], s32[6]) parameter(0)
        x = s32[6] get-tuple-element(s), index=0
        y = s32[6] get-tuple-element(s), index=1
        b = s32[6] fusion(y, x), kind=kLoop, calls=less
        ROOT t = (s32[6], s32[6]) tuple(b, x)
      }
      never {
        s = (s32[6], s32[6]) parameter(0)
        ROOT no = pred[] constant(false)
      }
      ENTRY main {
        s = (s32[6], s32[6]) parameter(0)
        ROOT w = (s32[6], s32[6]) while(s), condition=never, body=body
      }"""
    )
    module = parse_hlo(text)
    SelectFusionPass("b").apply_to(module)
    module.verify()
    (kernel,) = plan_program(module).kernels
    assert (kernel.name, kernel.operands) == ("b", (Slot("parameter", 0), Slot("parameter", 1)))
    (found,) = evaluate(entry_of(module), [np.arange(6, dtype=np.int32), np.full(6, 10, np.int32)])
    assert found.tolist() == [-10, -9, -8, -7, -6, -5]


def test_a_fusion_with_the_name_of_a_parameter_keeps_it() -> None:
    module = parse_hlo(TEXT.replace("a = ", "p0 = ").replace("(q, a)", "(q, p0)").replace("(a, a)", "(p0, p0)"))
    SelectFusionPass("p0").apply_to(module)
    again = parse_hlo(print_hlo(module))
    assert [op.instruction_name.data for op in entry_of(again).instructions] == ["p0.1", "p0"]
    assert [kernel.name for kernel in plan_program(again).kernels] == ["p0"]
