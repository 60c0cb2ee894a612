"""Instructions of ENTRY beside fusions: constants and bitcasts move into the fusions that use them, copies become fusions."""

import numpy as np
import pytest

from xla_emitters.dialects.hlo.computation import FusionOp
from xla_emitters.graph.entry import entry_of
from xla_emitters.graph.fuse_entry import FuseEntryPass
from xla_emitters.graph.plan import plan_program
from xla_emitters.program import Slot
from xla_emitters.rewrite.notes import take_notes
from xla_emitters.runtime.reference.reference import evaluate
from xla_emitters.text.hlo import parse_hlo, print_hlo

FUSED = """
scale {
  x = s32[6] parameter(0)
  y = s32[6] parameter(1)
  k = s32[] parameter(2)
  all = s32[6] broadcast(k), dimensions={}
  product = s32[6] multiply(x, all)
  ROOT sum = s32[6] add(product, y)
}
"""
P, R = Slot("parameter", 0), Slot("result", 0)
CASES = {
    "a constant": "k = s32[] constant(7)\n ROOT f = s32[6] fusion(p, p, k), kind=kLoop, calls=scale",
    "bitcasts": """
      k = s32[1] constant({7})
      k.0 = s32[] bitcast(k)
      m = s32[2,3] bitcast(p)
      p.0 = s32[6] bitcast(m)
      ROOT f = s32[6] fusion(p.0, p, k.0), kind=kLoop, calls=scale""",
    "a bitcast behind": """
      k = s32[] constant(7)
      f = s32[6] fusion(p, p, k), kind=kLoop, calls=scale
      ROOT m = s32[3,2] bitcast(f)""",
    "results": """
      k = s32[] constant(7)
      f = s32[6] fusion(p, p, k), kind=kLoop, calls=scale
      bits = u32[6] bitcast(f)
      ROOT all = (s32[6], s32[], u32[6]) tuple(f, k, bits)""",
    "a copy": """
      k = s32[] constant(7)
      c = s32[6] copy(p)
      ROOT f = s32[6] fusion(c, p, k), kind=kLoop, calls=scale""",
}
KERNELS = {
    "a constant": [("f", (P, P), (R,))],
    "bitcasts": [("f", (P, P), (R,))],
    "a bitcast behind": [("f", (P, P), (R,))],
    "results": [("f", (P, P), (R,)), ("k.1", (), (Slot("result", 1),)), ("bits.1", (R,), (Slot("result", 2),))],
    "a copy": [("c", (P,), (Slot("temporary", 0),)), ("f", (P, Slot("temporary", 0)), (R,))],
}


def module_of(case: str) -> str:
    return f"{FUSED}ENTRY main {{\n p = s32[6] parameter(0)\n {CASES[case]}\n}}"


@pytest.mark.parametrize("case", CASES)
def test_kernels_are_made_of_fusions_and_copies_alone_and_no_value_changes(case: str) -> None:
    before, after = parse_hlo(module_of(case)), parse_hlo(module_of(case))
    FuseEntryPass().apply_to(after)
    after.verify()
    kernels = plan_program(after).kernels
    assert [(kernel.name, kernel.operands, kernel.results) for kernel in kernels] == KERNELS[case]
    assert print_hlo(parse_hlo(print_hlo(after))) == print_hlo(after)
    inputs = [np.arange(6, dtype=np.int32)]
    for one, two in zip(evaluate(entry_of(before), inputs), evaluate(entry_of(after), inputs), strict=True):
        assert one.dtype == two.dtype
        assert one.tolist() == two.tolist()


def test_a_parameter_without_users_stays() -> None:
    """The caller passes it: only constants and bitcasts go when nothing uses them."""
    case = CASES["a constant"].replace("k = s32[]", "unused = s32[5] parameter(1)\n k = s32[]")
    module = parse_hlo(f"{FUSED}ENTRY main {{\n p = s32[6] parameter(0)\n {case}\n}}")
    FuseEntryPass().apply_to(module)
    assert [op.instruction_name.data for op in entry_of(module).parameters] == ["p", "unused"]
    assert [op.opcode for op in entry_of(module).instructions] == ["parameter", "parameter", "fusion"]


def test_what_says_whose_buffers_it_writes_keeps_its_operands() -> None:
    case = CASES["a constant"] + ", output_to_operand_aliasing={{}: (0, {})}"
    module = parse_hlo(f"{FUSED}ENTRY main {{\n p = s32[6] parameter(0)\n {case}\n}}")
    with take_notes() as notes:
        FuseEntryPass().apply_to(module)
    assert [remark.text for remark in notes.remarks] == [
        "skipped hlo.fusion: it says by number in which operands' buffers its results are"
    ]
    (fusion,) = (op for op in entry_of(module).instructions if isinstance(op, FusionOp))
    assert len(fusion.operands) == 3
