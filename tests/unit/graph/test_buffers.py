"""Arguments of a kernel: slices, alignment, sizes, and which are written."""

from collections.abc import Mapping

import pytest
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Attribute

from xla_emitters.device import device
from xla_emitters.dialects.hlo.computation import FusionOp
from xla_emitters.emitters.emit import emit_fusion
from xla_emitters.graph.buffers import kernel_arguments
from xla_emitters.graph.plan import plan_program
from xla_emitters.graph.view import view_of
from xla_emitters.rewrite.kernel_entry import entry_of_kernel
from xla_emitters.text.hlo import parse_hlo


def buffers(text: str) -> list[tuple[int, int, int, bool]]:
    """(slice, align, bytes, written) of each argument of the last fusion."""
    *_, fusion = (op for op in parse_hlo(text).walk() if isinstance(op, FusionOp))
    return [(a.slice_index, a.alignment, a.bytes, a.written) for a in kernel_arguments(view_of(fusion))]


def one(type: str, header: str = "HloModule m", body: str = "negate(p)") -> str:
    return f"""{header}
      f {{ p = {type} parameter(0)
           ROOT r = {type} {body} }}
      ENTRY main {{ x = {type} parameter(0)
                   ROOT it = {type} fusion(x), kind=kLoop, calls=f }}"""


def test_gelu():
    assert buffers(one("bf16[6,512,4096]")) == [(0, 16, 25165824, False), (1, 256, 25165824, True)]


def test_types_below_eight_bits_are_packed():
    assert buffers(one("s4[7]")) == [(0, 16, 4, False), (1, 256, 4, True)]
    assert buffers(one("pred[7]", body="not(p)")) == [(0, 16, 7, False), (1, 256, 7, True)]


def test_one_value_twice_is_one_buffer():
    text = """
      f { p = f32[4] parameter(0)
          q = f32[4] parameter(1)
          s = f32[4] parameter(2)
          a = f32[4] add(p, q)
          ROOT r = f32[4] add(a, s) }
      ENTRY main { x = f32[4] parameter(0)
                   y = f32[4] parameter(1)
                   ROOT it = f32[4] fusion(x, y, x), kind=kLoop, calls=f }"""
    assert [b[0] for b in buffers(text)] == [0, 1, 0, 2]


def test_what_the_runtime_allocates_is_aligned_further():
    text = """
      f { p = f32[4] parameter(0)
          ROOT r = f32[4] negate(p) }
      ENTRY main { x = f32[4] parameter(0)
                   a = f32[4] fusion(x), kind=kLoop, calls=f
                   ROOT it = f32[4] fusion(a), kind=kLoop, calls=f }"""
    assert buffers(text) == [(0, 256, 16, False), (1, 256, 16, True)]


ALIASED = "HloModule m, input_output_alias={ {}: (0, {}, may-alias) }"


def test_an_aliased_result_has_the_parameters_slice():
    assert buffers(one("f32[8,8]", ALIASED)) == [(0, 16, 256, True), (0, 16, 256, True)]


def test_an_alias_is_not_taken_where_other_threads_read_the_element():
    assert buffers(one("f32[8,8]", ALIASED, "transpose(p), dimensions={1,0}")) == [
        (0, 16, 256, False),
        (1, 256, 256, True),
    ]


def test_an_alias_of_one_of_several_results():
    text = """HloModule m, input_output_alias={ {1}: (1, {}, may-alias) }
      f { p = f32[8] parameter(0)
          q = f32[8] parameter(1)
          a = f32[8] negate(p)
          b = f32[8] add(p, q)
          ROOT t = (f32[8], f32[8]) tuple(a, b) }
      ENTRY main { x = f32[8] parameter(0)
                   y = f32[8] parameter(1)
                   it = (f32[8], f32[8]) fusion(x, y), kind=kLoop, calls=f
                   r0 = f32[8] get-tuple-element(it), index=0
                   r1 = f32[8] get-tuple-element(it), index=1
                   ROOT r = (f32[8], f32[8]) tuple(r0, r1) }"""
    assert [(b[0], b[3]) for b in buffers(text)] == [(0, False), (1, True), (2, True), (1, True)]


def test_the_entry_says_of_its_arguments_what_the_program_says():
    """Of a module of two kernels: sizes, alignment, slices and what is only read, from the IR and from the plan."""
    text = """
      f { p = f32[4] parameter(0)
          q = s4[4] parameter(1)
          c = f32[4] negate(p)
          d = s4[4] negate(q)
          ROOT r = (f32[4], s4[4]) tuple(c, d) }
      g { p = f32[4] parameter(0)
          ROOT r = f32[4] abs(p) }
      ENTRY main { x = f32[4] parameter(0)
                   y = s4[4] parameter(1)
                   a = (f32[4], s4[4]) fusion(x, y), kind=kLoop, calls=f
                   b = f32[4] get-tuple-element(a), index=0
                   ROOT it = f32[4] fusion(b), kind=kLoop, calls=g }"""
    first, second = plan_program(parse_hlo(text)).kernels
    assert [str(argument.slot) for argument in first.arguments] == ["p0", "p1", "t0", "t1"]
    assert [str(argument.slot) for argument in second.arguments] == ["t0", "r0"]
    assert [str(argument.array) for argument in first.arguments] == ["f32[4]", "s4[4]", "f32[4]", "s4[4]"]
    for planned in (first, second):
        entry = entry_of_kernel(emit_fusion(planned.view, device("h200")))
        assert entry.arg_attrs is not None
        assert [attributes_of(said.data) for said in entry.arg_attrs] == [
            (a.slice_index, a.alignment, a.bytes, a.written) for a in planned.arguments
        ]


def attributes_of(said: Mapping[str, Attribute]) -> tuple[int, int, int, bool]:
    """(slice, align, bytes, written) as an entry's argument says them."""
    values = [said[name] for name in ("xla.slice_index", "llvm.align", "llvm.dereferenceable")]
    slice_index, align, size = (value.value.data for value in values if isinstance(value, IntegerAttr))
    return slice_index, align, size, "xla.invariant" not in said


@pytest.mark.parametrize(("before", "after", "slices"), [("x", "x", [0, 0]), ("a", "x", [0, 0]), ("x", "a", [0, 1])])
def test_what_a_fusion_makes_is_overwritten_by_its_last_user(before: str, after: str, slices: list[int]):
    """An array that a later instruction reads keeps its buffer, whatever output_to_operand_aliasing says."""
    text = f"""
      f {{ p = f32[4] parameter(0)
          ROOT r = f32[4] negate(p) }}
      ENTRY main {{ x = f32[4] parameter(0)
                   a = f32[4] fusion(x), kind=kLoop, calls=f
                   b = f32[4] fusion({before}), kind=kLoop, calls=f
                   ROOT it = f32[4] fusion(a), kind=kLoop, calls=f, output_to_operand_aliasing={{{{}}: (0, {{}})}}
                   c = f32[4] copy({after}) }}"""
    assert [b[0] for b in buffers(text)] == slices
