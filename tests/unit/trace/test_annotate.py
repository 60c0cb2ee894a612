"""HLO beside code: every line with a source names it, and the code itself is left as it is."""

from xla_emitters.trace import Step
from xla_emitters.trace.annotate import annotated, hlo_definitions

HLO = """HloModule m
f {
  %p = f32[8,4]{1,0} parameter(0)
  %t = f32[4,8]{0,1} transpose(%p), dimensions={1,0}, metadata={op_name="a"}
  ROOT %m = f32[4,8]{1,0} multiply(%t, %t)
}
"""


def test_each_line_has_its_instructions() -> None:
    text = ".entry f(\n\tld.global.f32 \t%f1, [%rd1];\n\tmul.f32 \t%f2, %f1, %f1;"
    first = Step("ptx", "ptx", text, 0.0, sources=((), ("p",), ("t", "m")))
    lines = annotated([first], hlo_definitions(HLO)).split("\n")
    assert [line.partition("// ")[0].rstrip() for line in lines] == [line.rstrip() for line in text.split("\n")]
    assert [line.partition("// ")[2] for line in lines] == [
        "",
        "%p = f32[8,4] parameter(0)",
        "%t = f32[4,8]{0,1} transpose(%p), dimensions={1,0} | %m = f32[4,8] multiply(%t, %t)",
    ]


def test_kernels_of_one_text_have_their_own_lines() -> None:
    steps = [Step("ptx", "ptx", "a\nb", 0.0, sources=sources) for sources in ((("p",), ()), ((), ("gone",)))]
    assert [line.partition("// ")[2] for line in annotated(steps, hlo_definitions(HLO)).split("\n")] == [
        "%p = f32[8,4] parameter(0)",
        "%gone",
    ]
