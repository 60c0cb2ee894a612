"""Comparators that are passed to a library as text."""

import numpy as np

from xla_emitters.dialects.hlo.base import HloOp
from xla_emitters.dialects.hlo.library_calls import library_call_of
from xla_emitters.graph.entry import entry_of
from xla_emitters.library import call
from xla_emitters.runtime.reference.reference import evaluate
from xla_emitters.runtime.scalar_computations import on_elements
from xla_emitters.text.hlo.hlo_parser import parse_hlo
from xla_emitters.text.hlo.hlo_printer import print_alone

TEXT = """HloModule m

size {
  x = f32[] parameter(0)
  ROOT r = f32[] abs(x)
}

less {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  c = s32[] parameter(2)
  d = s32[] parameter(3)
  x = f32[] call(a), to_apply=size
  y = f32[] call(b), to_apply=size
  ROOT l = pred[] compare(x, y), direction=LT
}

ENTRY e {
  k = f32[3,40] parameter(0)
  v = s32[3,40] parameter(1)
  ROOT s = (f32[3,40], s32[3,40]) sort(k, v), dimensions={1}, is_stable=true, to_apply=less
}
"""


def test_a_sort_by_a_comparator_as_text_and_in_the_reference() -> None:
    """The text holds what the comparator calls."""
    numbers = np.random.default_rng(0).integers(-9, 9, (3, 40)).astype(np.float32)
    places = np.tile(np.arange(40, dtype=np.int32), (3, 1))
    wanted = np.argsort(np.abs(numbers), axis=1, kind="stable")
    module = parse_hlo(TEXT)
    (op,) = (op for op in module.walk() if isinstance(op, HloOp) and op.opcode == "sort")
    name, config = library_call_of(op, print_alone)
    assert config["keys"] is None
    assert "abs(" in config["comparator"]
    results = [("f32", (3, 40)), ("s32", (3, 40))]
    _, got = call(name, config, [numbers, places], results, on_elements=on_elements)
    assert (got == wanted).all()
    assert (evaluate(entry_of(module), [numbers, places])[1] == wanted).all()
