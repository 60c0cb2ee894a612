"""`explain`: what was decided, what was declined; the numbers are those of the seed's text and of XLA's launches."""

import json
from pathlib import Path

from in_process import messages, printed, written

EXAMPLES = Path(__file__).parents[3] / "examples"
RAGGED = """HloModule ragged
f {
  p = f32[1000003]{0} parameter(0)
  ROOT n = f32[1000003]{0} negate(p)
}
ENTRY e {
  p = f32[1000003]{0} parameter(0)
  ROOT fusion = f32[1000003]{0} fusion(p), kind=kLoop, calls=f
}
"""


def test_gelu() -> None:
    title, *summary = printed("explain", EXAMPLES / "gelu.hlo").splitlines()
    assert title == "m for h200: one kernel, 12.5 us"  # 50.3 MB at 4.8 TB/s, and 2 us
    assert summary[2].split() == ["100%", "12.5", "us", "fusion", "loop", "24576", "x", "128"]
    *rows, by_rule = summary[summary.index("fusion") + 1 :]
    assert by_rule.startswith("  --tune auto takes 8 a thread, by rule: ")
    found = [row.split(maxsplit=1) for row in rows]
    assert found[:4] == [
        ["emitter", "loop emitter"],
        ["launch", "24576x1x1 blocks of 128x1x1 threads"],
        ["unroll", "4 a thread: 12582912 elements fill the 270336 threads of h200"],
        ["partition", "1 function: gelu_multiply_0 (18 instructions)"],
    ]
    assert [topic for topic, _ in found[4:]] == ["access", "access"]
    assert found[4][1].startswith("reads 4 x bf16 (8 bytes) at once: param (")
    assert found[5][1].startswith("writes 4 x bf16 (8 bytes) at once: fusion (")


def test_the_same_for_a_program() -> None:
    data = json.loads(printed("explain", "--json", EXAMPLES / "two_outputs.hlo"))
    (kernel,) = data["kernels"]
    assert data["target"] == "h200"
    assert kernel["emitter"][0]["name"] == "loop"
    assert kernel["launch"][0]["grid"] == [4, 1, 1]
    assert kernel["launch"][0]["block"] == [128, 1, 1]
    assert kernel["unroll"][0]["elements_per_thread"] == 1
    assert sum(kernel["partition"][0]["functions"].values()) == 5
    assert "access" not in kernel


def test_what_was_declined_is_said(tmp_path: Path) -> None:
    """A prime number of elements is not four at a time: one a thread, and nothing to vectorise."""
    path = written(tmp_path / "ragged.hlo", RAGGED)
    (kernel,) = json.loads(printed("explain", "--json", path))["kernels"]
    assert kernel["unroll"][0]["elements_per_thread"] == 1
    assert "access" not in kernel
    assert all(set(remark) == {"pass", "text", "place"} for remark in kernel["declined"])


def test_a_wrong_file_is_a_message(tmp_path: Path) -> None:
    path = written(tmp_path / "cut.hlo", RAGGED[:60])
    assert messages(1, "explain", path).startswith(f"{path}:")


TRITON = """HloModule triton
f {
  p = f32[8,64]{1,0} parameter(0)
  ROOT n = f32[8,64]{1,0} negate(p)
}
ENTRY e {
  p = f32[8,64]{1,0} parameter(0)
  ROOT fusion = f32[8,64]{1,0} fusion(p), kind=kCustom, calls=f, backend_config={"fusion_backend_config":{"kind":"__triton"}}
}
"""
SAID = "%fusion: XLA would compile this with Triton (__triton); made 1 fusion"


def test_what_became_of_fusions_for_triton_is_said(tmp_path: Path) -> None:
    path = written(tmp_path / "triton.hlo", TRITON)
    lines = printed("explain", path).splitlines()
    start = lines.index("triton")
    _, said, kernel, *_ = lines[start:]
    assert kernel == "fusion"
    assert said.split(maxsplit=1) == ["remark", f"xla-split-triton-fusions: {SAID} at fusion ({path}:8:8)"]
    (remark,) = json.loads(printed("explain", "--json", path))["remarks"]
    assert (remark["pass"], remark["text"]) == ("xla-split-triton-fusions", SAID)


def test_on_request_they_are_refused(tmp_path: Path) -> None:
    path = written(tmp_path / "triton.hlo", TRITON)
    for verb in (
        ["explain"],
        ["compile", "--stage", "xla_gpu"],
        ["run"],
        ["check"],
        ["bundle", "-o", str(tmp_path / "b.zip")],
    ):
        assert "fusion %fusion is of kind '__triton'" in messages(1, *verb, "--triton", "refuse", path)


def test_steps_that_are_a_branch_alone(tmp_path: Path) -> None:
    path = tmp_path / "branch.hlo"
    path.write_text("""swapped { s = (f32[4], f32[4]) parameter(0)
  x = f32[4] get-tuple-element(s), index=0
  y = f32[4] get-tuple-element(s), index=1
  ROOT t = (f32[4], f32[4]) tuple(y, x) }
kept { ROOT s = (f32[4], f32[4]) parameter(0) }
ENTRY main { c = pred[] parameter(0)
  x = f32[4] parameter(1)
  y = f32[4] parameter(2)
  s = (f32[4], f32[4]) tuple(x, y)
  ROOT r = (f32[4], f32[4]) conditional(c, s, s), true_computation=swapped, false_computation=kept }
""")
    rows = printed("explain", path).splitlines()
    assert [row.strip() for row in rows] == [
        "module_main for h200: 4 copies, 8.00 us",
        "(pred[], f32[4], f32[4]) -> (f32[4], f32[4])",
        "share     time  what      how",
        *(f"25%  2.00 us  {copied}  copy" for copied in ("p2 -> r0", "p1 -> r1", "p1 -> r0", "p2 -> r1")),
        "unusual",
        "branch r: the host reads p0; every branch is counted",
        "memory: 65 B of parameters and results, 0 B of temporaries at once",
        "times: 2 us a launch, and bytes at the chip's bandwidth or products at its peak, whichever takes longer",
        "steps",
        *(
            "n0 = p0",
            "n1 = eq n0, 0",
            "branch r by n1",
            "0",
            "copy p2 -> r0",
            "copy p1 -> r1",
            "1",
            "copy p1 -> r0",
            "copy p2 -> r1",
        ),
    ]


STEP = """HloModule step

FileNames
1 "/home/me/train.py"

FunctionNames
1 "loss"
2 "model"

FileLocations
1 {file_name_id=1 function_name_id=1 line=9 end_line=9 column=4 end_column=20}
2 {file_name_id=1 function_name_id=2 line=22 end_line=22 column=4 end_column=20}

StackFrames
1 {file_location_id=1 parent_frame_id=1}
2 {file_location_id=2 parent_frame_id=2}

small {
  p = f32[64]{0} parameter(0)
  n = f32[64]{0} negate(p), metadata={stack_frame_id=1}
  ROOT e = f32[64]{0} exponential(n), metadata={stack_frame_id=2}
}
large {
  p = f32[1200000]{0} parameter(0)
  ROOT n = f32[1200000]{0} negate(p), metadata={stack_frame_id=2}
}
ENTRY main {
  p = f32[64]{0} parameter(0)
  q = f32[1200000]{0} parameter(1)
  a = f32[64,64]{1,0} parameter(2)
  first = f32[64]{0} fusion(p), kind=kLoop, calls=small
  second = f32[1200000]{0} fusion(q), kind=kLoop, calls=large
  d = f32[64]{0} dot(a, first), lhs_contracting_dims={1}, rhs_contracting_dims={0}, metadata={stack_frame_id=2}
  ROOT t = (f32[64]{0}, f32[1200000]{0}) tuple(d, second)
}
"""


def test_a_module_begins_with_what_costs_most_and_says_the_lines_of_python(tmp_path: Path) -> None:
    """9.6 MB at 4.8 TB/s are 2 us more than the launch; the rows come before the steps, and each kernel names its lines."""
    path = written(tmp_path / "step.hlo", STEP)
    said = printed("explain", path)
    title, _, head, *rows = said.splitlines()
    assert title == "step for h200: 2 kernels and 1 library call, 8.00 us"
    assert head.split() == ["share", "time", "what", "how", "launch", "source"]
    assert rows[0].split()[:5] == ["50%", "4.00", "us", "second", "loop"]
    assert rows[0].endswith("train.py:22 in model")
    assert [row.split()[3] for row in rows[:3]] == ["second", "d", "first"]
    assert rows[1].split()[4:] == ["call", "gemm", "train.py:22", "in", "model"]
    assert rows[2].endswith("train.py:9 in loss, 1 more")
    assert said.index("second  loop") < said.index("\nsteps\n")
    first = said[said.index("\nfirst\n") :].splitlines()
    assert first[2].split(maxsplit=1) == [
        "source",
        "train.py:9 in loss (1 of 2 instructions), train.py:22 in model (1 of 2 instructions)",
    ]
    data = json.loads(printed("explain", "--json", path))
    assert [work["name"] for work in data["work"]] == ["second", "d", "first"]
    assert data["work"][1]["source"] == [
        {
            "text": "train.py:22 in model",
            "file": "/home/me/train.py",
            "line": 22,
            "function": "model",
            "instructions": 1,
        }
    ]
    assert [line["line"] for line in data["kernels"][0]["source"][0]["lines"]] == [9, 22]
