"""What the steps of a program do on the CPU and on the fake GPU: loops, branches, copies, memory, and unknown functions.

Kernels are compiled from one module of small fusions and given the slots of programs that are written down here.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from unit.runtime.fake_gpu import fake_cupy

from xla_emitters.errors import EndlessLoop, ExecutionError, InternalError, Unsupported, XlaEmittersError
from xla_emitters.pipelines.compiler import compile
from xla_emitters.program import (
    Allocation,
    ArraySpec,
    Branch,
    Copy,
    Kernel,
    LibraryCall,
    Loop,
    Program,
    Release,
    Slot,
    SlotArray,
    Step,
    kernels_in,
    on_slots,
)
from xla_emitters.runtime import steps as steps_file
from xla_emitters.runtime.cpu_launcher import Executor, allocate, run_program
from xla_emitters.runtime.cupy_launcher import launch_program

FUSIONS = """
HloModule parts
less {
  %i = s32[] parameter(0)
  %n = s32[] parameter(1)
  ROOT %p = pred[] compare(%i, %n), direction=LT
}
next {
  %i = s32[] parameter(0)
  %one = s32[] constant(1)
  ROOT %s = s32[] add(%i, %one)
}
double {
  %x = s32[4] parameter(0)
  ROOT %d = s32[4] add(%x, %x)
}
negate {
  %x = s32[4] parameter(0)
  ROOT %d = s32[4] negate(%x)
}
ENTRY main {
  %i = s32[] parameter(0)
  %n = s32[] parameter(1)
  %x = s32[4] parameter(2)
  %less = pred[] fusion(%i, %n), kind=kLoop, calls=less
  %next = s32[] fusion(%i), kind=kLoop, calls=next
  %double = s32[4] fusion(%x), kind=kLoop, calls=double
  %negate = s32[4] fusion(%x), kind=kLoop, calls=negate
  ROOT %all = (pred[], s32[], s32[4], s32[4]) tuple(%less, %next, %double, %negate)
}
"""


@cache
def parts() -> Program:
    return compile(FUSIONS, target="t4", stage="llvm-dialect")


def kernel(name: str, *slots: Slot) -> Kernel:
    """The kernel of a fusion on other arrays; its "PTX" is what the fake GPU takes for it."""
    number = [made.name for made in parts().kernels].index(name)
    made, text = parts().kernels[number], parts().traces[number]["llvm-dialect"].ir
    pairs = zip(made.arguments, slots, strict=True)
    arguments = tuple(replace(argument, kind=slot.kind, index=slot.index) for argument, slot in pairs)
    return replace(made, ptx=text or "", arguments=arguments)


def p(index: int) -> Slot:
    return Slot("parameter", index)


def t(index: int) -> Slot:
    return Slot("temporary", index)


R = Slot("result", 0)
NUMBER, ARRAY, PREDICATE = ArraySpec("s32", (), ()), ArraySpec("s32", (4,), (0,)), ArraySpec("pred", (), ())
# p0 an array, p1 and p2 numbers, p3 zero; t0, t1 and t2 numbers, t3 and t4 predicates, t5 an array; the result an array.
TEMPORARIES = (NUMBER, NUMBER, NUMBER, PREDICATE, PREDICATE, ARRAY)


def program(*steps: Step) -> Program:
    traces = {trace.name: trace for trace in parts().traces}
    return Program(
        name="written",
        target="t4",
        parameters=(ARRAY, NUMBER, NUMBER, NUMBER),
        results=(ARRAY,),
        temporaries=TEMPORARIES,
        steps=steps,
        stage="llvm-dialect",
        traces=tuple(traces[name] for name in dict.fromkeys(made.name for made in kernels_in(steps))),
    )


def with_memory(made: Program) -> Program:
    """The program with memory for every temporary that it does not allocate itself."""
    allocated = {step.slot for step in made.steps if isinstance(step, Allocation)}
    slots = [slot for slot in map(t, range(len(TEMPORARIES))) if slot not in allocated]
    return replace(made, steps=(*map(Allocation, slots), *made.steps))


Runner = Callable[[Program, Sequence[np.ndarray]], Sequence[np.ndarray]]
"""Runs a program on some platform."""


@pytest.fixture(params=["cpu", "gpu"])
def run(request: pytest.FixtureRequest) -> Iterator[Runner]:
    if request.param == "cpu":
        yield lambda made, inputs: run_program(with_memory(made), inputs, "llvm-dialect")
    else:
        with fake_cupy():
            yield lambda made, inputs: launch_program(with_memory(made), inputs)


def inputs(n: int = 0, m: int = 0) -> list[np.ndarray]:
    return [np.array([1, -2, 3, 40], np.int32), *(np.array(number, np.int32) for number in (n, m, 0))]


X = inputs()[0]


def times(limit: Slot, counter: Slot, spare: Slot, proceeds: Slot, *body: Step) -> tuple[Step, ...]:
    """`body` as often as `limit` says."""
    more = (kernel("next", counter, spare), Copy(spare, counter))
    loop = Loop("times", (kernel("less", counter, limit, proceeds),), proceeds, (*body, *more))
    return Copy(p(3), counter), loop


DOUBLE: tuple[Kernel, Copy] = (kernel("double", R, t(5)), Copy(t(5), R))


@pytest.mark.parametrize("n", [0, 1, 5])
def test_a_loop_runs_while_its_predicate_is_true(n: int, run: Runner) -> None:
    made = program(Copy(p(0), R), *times(p(1), t(0), t(1), t(3), *DOUBLE))
    (result,) = run(made, inputs(n))
    assert result.tolist() == (X * 2**n).tolist()


@pytest.mark.parametrize(("n", "m"), [(2, 3), (3, 0), (0, 3)])
def test_a_loop_in_a_loop(n: int, m: int, run: Runner) -> None:
    inner = times(p(2), t(1), t(2), t(4), *DOUBLE)
    (result,) = run(program(Copy(p(0), R), *times(p(1), t(0), t(2), t(3), *inner)), inputs(n, m))
    assert result.tolist() == (X * 2 ** (n * m)).tolist()


@pytest.mark.parametrize(("n", "m", "wanted"), [(1, 2, -X), (2, 2, 2 * X)])
def test_a_predicate_chooses_the_first_of_two(n: int, m: int, wanted: np.ndarray, run: Runner) -> None:
    branches = ((kernel("negate", p(0), R),), (kernel("double", p(0), R),))
    (result,) = run(program(kernel("less", p(1), p(2), t(3)), Branch("chosen", t(3), branches)), inputs(n, m))
    assert result.tolist() == wanted.tolist()


@pytest.mark.parametrize(("n", "wanted"), [(0, -X), (1, 2 * X), (2, X), (3, X), (-1, X), (2**31 - 1, X), (-(2**31), X)])
def test_a_number_chooses_its_branch_and_out_of_range_the_last(n: int, wanted: np.ndarray, run: Runner) -> None:
    branches = ((kernel("negate", p(0), R),), (kernel("double", p(0), R),), (Copy(p(0), R),))
    (result,) = run(program(Branch("chosen", p(1), branches)), inputs(n))
    assert result.tolist() == wanted.tolist()


def test_a_loop_whose_state_repeats_is_endless_on_the_cpu() -> None:
    body = (kernel("negate", R, t(5)), Copy(t(5), R))
    loop = Loop("forever", (kernel("less", p(1), p(2), t(3)),), t(3), body)
    with pytest.raises(
        EndlessLoop, match="loop %forever does not end: the state after 3 iterations is the one after 1"
    ):
        run_program(with_memory(program(Copy(p(0), R), loop)), inputs(1, 2), "llvm-dialect")


def test_a_loop_that_does_not_end(run: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    """Five iterations are as many as are allowed, six are not."""
    limited = steps_file.run_steps
    for module in ("cpu_launcher", "cupy_launcher"):
        monkeypatch.setattr(
            f"xla_emitters.runtime.{module}.run_steps",
            lambda steps, platform, **_: limited(steps, platform, most_iterations=5),
        )
    made = program(Copy(p(0), R), *times(p(1), t(0), t(1), t(3), *DOUBLE))
    (result,) = run(made, inputs(5))
    assert result.tolist() == (32 * X).tolist()
    with pytest.raises(ExecutionError, match=r"loop %[^ ]* does not end within 5 iterations"):
        run(made, inputs(6))
    # An inner loop too.
    inner = times(p(2), t(1), t(2), t(4), *DOUBLE)
    with pytest.raises(ExecutionError, match="within 5 iterations"):
        run(program(Copy(p(0), R), *times(p(1), t(0), t(2), t(3), *inner)), inputs(1, 6))


def test_a_copy_is_another_array(run: Runner) -> None:
    """What is written to the source afterwards does not show."""
    made = program(Copy(p(0), t(5)), Copy(t(5), R), kernel("double", p(0), t(5)))
    (result,) = run(made, inputs())
    assert result.tolist() == X.tolist()


def test_memory_comes_and_goes(run: Runner) -> None:
    """A temporary may be given memory again and again."""
    use = (Allocation(t(5)), kernel("double", R, t(5)), Copy(t(5), R), Release(t(5)))
    (result,) = run(program(Copy(p(0), R), *use, *use), inputs())
    assert result.tolist() == (4 * X).tolist()
    made = program()
    slots = allocate(made, inputs())
    executor = Executor(made, slots, {}, lambda kernel: ())
    steps_file.run_steps((Allocation(t(5)),), executor)
    assert slots["temporary", 5].shape == (4,)
    steps_file.run_steps((Release(t(5)),), executor)
    assert ("temporary", 5) not in slots
    with pytest.raises(InternalError, match="t5 is used where it has no memory"):
        steps_file.run_steps((Copy(t(5), R),), executor)


def test_a_function_that_no_library_has(run: Runner) -> None:
    call = LibraryCall("unheard-of", "c", (SlotArray(p(0), ARRAY),), (SlotArray(R, ARRAY),), {"epilogue": "BIAS"})
    with pytest.raises(Unsupported, match="no library function 'unheard-of'") as raised:
        run(program(call), inputs())
    assert isinstance(raised.value, XlaEmittersError)


def test_steps_survive_json() -> None:
    """Every kind, one in the other; a kernel that several steps launch, on whatever arrays, is one."""
    double, less = (replace(made, ptx="// code") for made in (DOUBLE[0], kernel("less", t(0), p(1), t(3))))
    elsewhere = on_slots(double, [t(5), R])
    steps: tuple[Step, ...] = (
        Allocation(t(5)),
        LibraryCall(
            "sort",
            "s",
            (SlotArray(p(0), ARRAY),),
            (SlotArray(R, ARRAY),),
            {"dimension": 0, "is_stable": True, "names": ["a", "b"]},
        ),
        Loop(
            "outer",
            (less,),
            t(3),
            (Branch("b", p(2), ((double,), (Copy(p(0), R), elsewhere), ())), Loop("inner", (), t(4), ())),
            trips=7,
        ),
        Release(t(5)),
        double,
    )
    made = replace(program(*steps), stage="ptx", code="// code")
    again = Program.from_json(json.loads(json.dumps(made.to_json())))
    assert again == made
    assert [type(step) for step in again.steps] == [type(step) for step in steps]
    loop = again.steps[2]
    assert isinstance(loop, Loop)
    branch, inner = loop.body
    assert (loop.trips, loop.proceeds, inner) == (7, t(3), Loop("inner", (), t(4), ()))
    assert isinstance(branch, Branch)
    assert branch.branches[0][0] == again.steps[-1] != branch.branches[1][1] == elsewhere
    assert again.steps[1] == steps[1]
    assert [step["step"] for step in made.to_json()["steps"]] == [
        *("allocation", "library call", "loop", "release", "launch")
    ]


def test_a_step_that_there_is_not() -> None:
    data = program(Copy(p(0), R)).to_json()
    data["steps"][0]["step"] = "jump"
    with pytest.raises(ValueError, match="no step is called 'jump'"):
        Program.from_json(data)
