"""The trace: looked up by stage or pass, diffed, counted."""

import json

import pytest

from xla_emitters.trace import Decision, Remark, Rewrite, Step, Trace

REMARK = Remark("xla-vectorize-loads-stores", "skipped scf.for: step is not 1", "tanh_0 (gelu.hlo:19:3)")


def trace() -> Trace:
    return Trace(
        "gelu",
        [
            Step("emit", "xla_gpu", "a\nb\n", 0.1, {"arith.addf": 2, "scf.for": 1}),
            Step("xla-cse", None, None, 0.2),
            Step("xla-cse", "inlined", "a\nc\n", 0.3, {"arith.addf": 1}, (REMARK,)),
            Step("xla-canonicalize", None, "d\n", 0.4),
        ],
    )


@pytest.mark.tiny
def test_steps_by_stage_and_by_pass() -> None:
    """A pass's name means its last run that is not a stage's boundary."""
    found = trace()
    assert found["xla_gpu"].seconds == 0.1
    assert found["inlined"].seconds == 0.3
    assert found["xla-cse"].seconds == 0.2
    assert found["xla-canonicalize"].ir == "d\n"
    assert found.stages == ("xla_gpu", "inlined")
    assert (len(found), [step.ops for step in found]) == (4, [3, 0, 1, 0])


def test_a_stage_that_is_not_there() -> None:
    with pytest.raises(KeyError, match="no stage 'flat' in this trace; there are: xla_gpu, inlined"):
        trace()["flat"]


def test_remarks_of_all_steps() -> None:
    assert trace().remarks == (REMARK,)
    assert str(REMARK) == ("xla-vectorize-loads-stores: skipped scf.for: step is not 1 at tanh_0 (gelu.hlo:19:3)")
    assert str(Remark("p", "why")) == "p: why"


def test_diff_of_two_stages() -> None:
    assert trace().diff("xla_gpu", "inlined").splitlines() == [
        "--- xla_gpu",
        "+++ inlined",
        "@@ -1,2 +1,2 @@",
        " a",
        "-b",
        "+c",
    ]
    for diff in (trace().diff, trace().show_diff):
        with pytest.raises(KeyError, match="recorded without IR"):
            diff("xla_gpu", "xla-cse")


def test_points_by_number_and_what_changed() -> None:
    found = trace()
    assert found[1].name == "xla-cse"
    assert found.diff(0, 2) == found.diff("xla_gpu", "inlined").replace("xla_gpu", "0").replace("inlined", "2")
    with pytest.raises(KeyError, match="no step 4 in this trace; there are 0 to 3"):
        found[4]
    same = Trace("same", [Step("a", None, "x", 0), Step("b", None, None, 0), Step("c", None, "x", 0)])
    assert (found.changed(), same.changed()) == ((True, False, True, True), (True, False, False))


def test_json_and_back() -> None:
    """Through text: what comes back is equal, tuples and all."""
    made = trace()
    launch = Decision("launch", "1 block", {"grid": [1, 1, 1]})
    made.steps.append(Step("ptx", "ptx", "a", 0.5, {}, (), (launch,), (("tanh_0", "add_0"), ())))
    rewrite = Rewrite("fold", "arith.addi", 3, ("arith.constant",), ("arith.addi", "scf.if"), (), "b")
    made.steps.append(Step("xla-canonicalize", None, "b", 0.5, rewrites=(rewrite,), left_out=2))
    data = json.loads(json.dumps(made.to_json()))
    assert Trace.from_json(data) == made
    assert set(data) == {"schema", "name", "steps"}
    fields = "name stage ir ms op_counts remarks decisions sources origins rewrites left_out"
    assert set(data["steps"][0]) == set(fields.split())
    assert data["steps"][4]["ms"] == 500.0
    with pytest.raises(ValueError, match="a trace of schema 0"):
        Trace.from_json(data | {"schema": 0})
