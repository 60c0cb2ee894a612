"""Arguments of a kernel: slices, alignment, sizes, and which are written."""

from __future__ import annotations

from xla_emitters.dialects.hlo.computation import FusionOp
from xla_emitters.fusions.buffers import BufferArgument, buffers_of
from xla_emitters.fusions.view import view_of
from xla_emitters.hlo_text import parse_hlo


def buffers(text: str) -> list[tuple[int, int, int, bool]]:
    """(slice, align, bytes, written) of each argument of the last fusion."""
    *_, fusion = (op for op in parse_hlo(text).walk() if isinstance(op, FusionOp))
    return [(b.slice_index, b.align, b.dereferenceable, b.is_written) for b in buffers_of(view_of(fusion))]


def one(type: str, header: str = "HloModule m", body: str = "negate(p)") -> str:
    return f"""{header}
      f {{ p = {type} parameter(0)
           ROOT r = {type} {body} }}
      ENTRY main {{ x = {type} parameter(0)
                   ROOT it = {type} fusion(x), kind=kLoop, calls=f }}"""


def test_gelu():
    assert buffers(one("bf16[6,512,4096]")) == [(0, 16, 25165824, False), (1, 256, 25165824, True)]
    assert BufferArgument(0, 16, 4, False).slice_index == 0


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
