"""Known results of a computation are reused only for the same text and the same bits."""

import numpy as np
import pytest

from xla_emitters.dialects.hlo.computation import ComputationOp
from xla_emitters.graph.entry import entry_of
from xla_emitters.runtime.reference.reference_run import FirstCalls
from xla_emitters.text.hlo import parse_hlo

TEXT = """HloModule m
f { %p = f32[3] parameter(0)
    ROOT %a = f32[3] add(%p, %p) }
ENTRY main { %x = f32[3] parameter(0)
    ROOT %f = f32[3] fusion(%x), kind=kLoop, calls=f }"""
X = np.array([1, -0.0, np.nan], np.float32)


def computation(text: str, name: str) -> ComputationOp:
    module = parse_hlo(text, "<test>")
    (found,) = (op for op in module.ops if isinstance(op, ComputationOp) and op.sym_name.data == name)
    return found


def calls() -> FirstCalls:
    made = FirstCalls(entry_of(parse_hlo(TEXT, "<test>")))
    np.testing.assert_array_equal(made.evaluate([X])[0], X + X)
    return made


@pytest.mark.parametrize("name", ["f", "main"])
@pytest.mark.parametrize("operand", [X, X.copy()], ids=["itself", "copy"])
def test_a_copy_of_the_module_on_the_same_bits_is_known(name: str, operand: np.ndarray) -> None:
    known = calls().results_of(computation(TEXT, name), [operand])
    np.testing.assert_array_equal(known[0], X + X)


@pytest.mark.parametrize(
    "operand",
    [np.array([1, 0.0, np.nan], np.float32), X.astype(np.float64), X[:2]],
    ids=["other zero", "other type", "other shape"],
)
def test_other_operands_are_not(operand: np.ndarray) -> None:
    assert calls().results_of(computation(TEXT, "f"), [operand]) is None


def test_another_computation_of_the_same_name_is_not() -> None:
    assert calls().results_of(computation(TEXT.replace("add(", "multiply("), "f"), [X]) is None


def test_a_computation_that_was_not_called_is_not() -> None:
    text = TEXT.replace("ENTRY", "g { ROOT %p = f32[3] parameter(0) }\nENTRY")
    made = FirstCalls(entry_of(parse_hlo(text, "<test>")))
    made.evaluate([X])
    assert made.results_of(computation(text, "g"), [X]) is None
