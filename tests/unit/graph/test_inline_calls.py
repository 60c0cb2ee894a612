"""Calls are replaced by the instructions that they call:
names stay unique, layouts fit, uncalled computations are removed, and no value changes.
"""

import numpy as np
import pytest
from xdsl.rewriter import Rewriter

from xla_emitters.dialects.hlo.base import HloOp
from xla_emitters.dialects.hlo.computation import CallOp, ComputationOp
from xla_emitters.errors import VerifyError
from xla_emitters.graph.entry import entry_of
from xla_emitters.graph.inlining import inline_calls
from xla_emitters.pipelines.programs import compile_program
from xla_emitters.runtime.reference.reference import evaluate
from xla_emitters.text.hlo import parse_hlo, print_hlo

NESTED = """
inner { x = s32[2,3] parameter(0)
  y = s32[2,3] parameter(1)
  ROOT d = s32[2,3] subtract(y, x) }
outer { x = s32[2,3] parameter(0)
  a = s32[2,3] call(x, x), to_apply=inner
  n = s32[2,3] negate(x)
  ROOT d = s32[2,3] call(a, n), to_apply=inner }
ENTRY main { p = s32[2,3] parameter(0)
  d = s32[2,3] call(p, p), to_apply=inner
  ROOT r = s32[2,3] call(p), to_apply=outer }
"""
FUSED = """
add { a = s32[] parameter(0)
  b = s32[] parameter(1)
  ROOT s = s32[] add(a, b) }
sum { a = s32[] parameter(0)
  b = s32[] parameter(1)
  ROOT s = s32[] call(a, b), to_apply=add }
fused { x = s32[2,3] parameter(0)
  z = s32[] constant(0)
  ROOT r = s32[2] reduce(x, z), dimensions={1}, to_apply=sum }
wrapped { x = s32[2,3] parameter(0)
  ROOT f = s32[2] fusion(x), kind=kInput, calls=fused }
ENTRY main { p = s32[2,3] parameter(0)
  a = s32[2] call(p), to_apply=wrapped
  b = s32[2] call(p), to_apply=wrapped
  ROOT t = (s32[2], s32[2]) tuple(a, b) }
"""
LAYOUTS = """
turned { x = s32[2,3]{0,1} parameter(0)
  n = s32[2,3]{0,1} negate(x)
  b = s32[6]{0} bitcast(n)
  ROOT t = (s32[6], s32[2,3]{0,1}) tuple(b, n) }
ENTRY main { p = s32[2,3]{1,0} parameter(0)
  ROOT r = (s32[6], s32[2,3]{1,0}) call(p), to_apply=turned }
"""
X = np.arange(6, dtype=np.int32).reshape(2, 3)
WANTED = {
    "nested": (NESTED, [-X], ["parameter", "subtract", "subtract", "negate", "subtract"]),
    "fused": (FUSED, [[3, 12], [3, 12]], ["parameter", "fusion", "fusion", "tuple"]),
    "layouts": (LAYOUTS, [(-X).T.reshape(6), -X], None),
}


@pytest.mark.parametrize("case", WANTED)
def test_no_value_changes_and_no_call_is_left(case: str) -> None:
    text, wanted, opcodes = WANTED[case]
    module = parse_hlo(text)
    inline_calls(module)
    module.verify()
    assert not any(isinstance(op, CallOp) for op in module.walk())
    assert opcodes is None or [op.opcode for op in entry_of(module).instructions] == opcodes
    for after in (module, parse_hlo(print_hlo(module))):
        for found, value in zip(evaluate(entry_of(after), [X]), wanted, strict=True):
            assert found.tolist() == np.asarray(value).tolist()


def test_what_is_called_in_fusions_and_reductions_is_inlined_there_and_only_what_is_unused_goes() -> None:
    module = parse_hlo(FUSED)
    inline_calls(module)
    assert [op.sym_name.data for op in module.ops if isinstance(op, ComputationOp)] == ["sum", "fused", "main"]


def test_instructions_keep_their_places() -> None:
    module = parse_hlo(NESTED, "x.hlo")
    inner, outer, _ = (list(op.instructions) for op in module.ops if isinstance(op, ComputationOp))
    inline_calls(module)
    wanted = [op.location for op in (inner[2], inner[2], outer[2], inner[2])]
    assert [op.location for op in entry_of(module).instructions if op.operands] == wanted


def test_recursion_is_refused() -> None:
    """IR can say so; HLO text cannot."""
    module = parse_hlo(NESTED)
    inner, outer, _ = (op for op in module.ops if isinstance(op, ComputationOp))
    root, call = inner.root.owner, outer.root.owner
    assert isinstance(root, HloOp)
    assert isinstance(call, CallOp)
    to_outer = entry_of(module).root.owner
    assert isinstance(to_outer, CallOp)
    properties = {**call.properties, "to_apply": to_outer.to_apply}
    Rewriter.replace_op(
        root,
        CallOp.create(operands=[inner.parameters[0].result], result_types=[root.result.type], properties=properties),
    )
    with pytest.raises(VerifyError, match="runs itself"):
        inline_calls(module)


def test_a_module_without_calls_stays() -> None:
    module = parse_hlo(
        "g { x = f32[] parameter(0)\n ROOT n = f32[] negate(x) }\nENTRY main { ROOT x = f32[] parameter(0) }"
    )
    before = print_hlo(module)
    inline_calls(module)
    assert print_hlo(module) == before


def test_calls_that_double_again_and_again_are_refused() -> None:
    """Sixty functions, each of which calls the one before it twice, would be 2^60 instructions."""
    doubled = "".join(
        f"g{n} {{ x = f32[] parameter(0)\n  a = f32[] call(x), to_apply=g{n - 1}\n  ROOT b = f32[] call(a), to_apply=g{n - 1} }}\n"
        for n in range(1, 60)
    )
    first = "g0 { x = f32[] parameter(0)\n  ROOT n = f32[] negate(x) }\n"
    module = parse_hlo(
        first + doubled + "ENTRY main { x = f32[] parameter(0)\n  ROOT r = f32[] call(x), to_apply=g59 }"
    )
    for refuse in (inline_calls, compile_program):  # sizes of a program are known through its calls
        with pytest.raises(VerifyError, match="more than 1048576 instructions of computation 'g18'"):
            refuse(module)
