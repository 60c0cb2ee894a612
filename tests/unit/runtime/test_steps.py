"""What the steps of a program do on the CPU and on the fake GPU: loops, branches, copies, memory, and unknown functions.

Kernels are compiled from one module of small fusions and given the slots of programs that are written down here.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from unit.runtime.fake_gpu import fake_cupy

from xla_emitters.errors import EndlessLoop, ExecutionError, Unsupported, XlaEmittersError
from xla_emitters.pipelines.compiler import compile
from xla_emitters.program import Arrays, ArraySpec, Compiled, LibraryCall, Program, Slot
from xla_emitters.program.steps import (
    Allocate,
    Branch,
    Call,
    Compute,
    Copy,
    Launch,
    Load,
    Loop,
    NumberSlot,
    Release,
    Step,
    steps_within,
)
from xla_emitters.runtime.cpu.cpu_launcher import run_program
from xla_emitters.runtime.cuda.cupy_launcher import launch_program
from xla_emitters.support.limits import limited_iterations

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
    return compile(FUSIONS, target="t4", stage="ptx")


def kernel(name: str, *slots: Slot) -> Launch:
    """The launch of a fusion's kernel on these arrays."""
    (made,) = (each for each in parts().kernels if each.name == name)
    return Launch(name, made.launch.grid, made.launch.block, 0, tuple(map(ARRAYS.place, slots)))


def p(index: int) -> Slot:
    return Slot("parameter", index)


def t(index: int) -> Slot:
    return Slot("temporary", index)


R = Slot("result", 0)
NUMBER, ARRAY, PREDICATE = ArraySpec("s32", (), ()), ArraySpec("s32", (4,), (0,)), ArraySpec("pred", (), ())
# p0 an array, p1 and p2 numbers, p3 zero; t0, t1 and t2 numbers, t3 and t4 predicates, t5 an array; the result an array.
ARRAYS = Arrays((ARRAY, NUMBER, NUMBER, NUMBER), (ARRAY,), (NUMBER, NUMBER, NUMBER, PREDICATE, PREDICATE, ARRAY))


def program(*steps: Step, calls: Sequence[LibraryCall] = ()) -> Program:
    """A program of these steps."""
    launched = dict.fromkeys(step.kernel for step in steps_within(steps) if isinstance(step, Launch))
    numbers = [[made.name for made in parts().kernels].index(name) for name in launched]
    traces = tuple(parts().traces[number] for number in numbers)
    return Program(
        name="written",
        target="t4",
        parameters=ARRAYS.parameters,
        results=ARRAYS.results,
        compilation=Compiled(
            temporaries=ARRAYS.temporaries,
            steps=steps,
            kernels=tuple(parts().kernels[number] for number in numbers),
            calls=tuple(calls),
            traces=traces,
        ),
        stage="ptx",
    )


def allocate(slot: Slot) -> Allocate:
    return Allocate(ARRAYS.place(slot))


def copy(source: Slot, target: Slot) -> Copy:
    return Copy(ARRAYS.place(source), ARRAYS.place(target))


def read(number: int, slot: Slot) -> Load:
    return Load(NumberSlot(number), ARRAYS.place(slot), (0,))


def with_memory(made: Program) -> Program:
    """The program with memory for every temporary that it does not allocate itself."""
    allocated = {step.array.slot for step in made.steps if isinstance(step, Allocate)}
    own = [allocate(slot) for slot in map(t, range(len(ARRAYS.temporaries)))]
    steps = (*(step for step in own if step.array.slot not in allocated), *made.steps)
    return replace(made, compilation=replace(made.compilation, steps=steps))


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
    more, holds = (kernel("next", counter, spare), copy(spare, counter)), read(counter.index, proceeds)
    carried = tuple(map(ARRAYS.number, (counter, R)))
    loop = Loop("times", (kernel("less", counter, limit, proceeds), holds), holds.result, (*body, *more), carried)
    return copy(p(3), counter), loop


def doubled() -> tuple[Step, ...]:
    """The result, twice as large."""
    return kernel("double", R, t(5)), copy(t(5), R)


@pytest.mark.parametrize("n", [0, 1, 5])
def test_a_loop_runs_while_its_predicate_is_true(n: int, run: Runner) -> None:
    made = program(copy(p(0), R), *times(p(1), t(0), t(1), t(3), *doubled()))
    (result,) = run(made, inputs(n))
    assert result.tolist() == (X * 2**n).tolist()


@pytest.mark.parametrize(("n", "m"), [(2, 3), (3, 0), (0, 3)])
def test_a_loop_in_a_loop(n: int, m: int, run: Runner) -> None:
    inner = times(p(2), t(1), t(2), t(4), *doubled())
    (result,) = run(program(copy(p(0), R), *times(p(1), t(0), t(2), t(3), *inner)), inputs(n, m))
    assert result.tolist() == (X * 2 ** (n * m)).tolist()


@pytest.mark.parametrize(("n", "m", "wanted"), [(1, 2, -X), (2, 2, 2 * X)])
def test_a_predicate_chooses_the_first_of_two(n: int, m: int, wanted: np.ndarray, run: Runner) -> None:
    branches = ((kernel("negate", p(0), R),), (kernel("double", p(0), R),))
    chosen = (
        read(0, t(3)),
        Compute(NumberSlot(1), "eq", (NumberSlot(0), 0)),
        Branch("chosen", NumberSlot(1), branches, ()),
    )
    (result,) = run(program(kernel("less", p(1), p(2), t(3)), *chosen), inputs(n, m))
    assert result.tolist() == wanted.tolist()


@pytest.mark.parametrize(("n", "wanted"), [(0, -X), (1, 2 * X), (2, X), (3, X), (-1, X), (2**31 - 1, X), (-(2**31), X)])
def test_a_number_chooses_its_branch_and_out_of_range_the_last(n: int, wanted: np.ndarray, run: Runner) -> None:
    branches = ((kernel("negate", p(0), R),), (kernel("double", p(0), R),), (copy(p(0), R),))
    (result,) = run(program(read(0, p(1)), Branch("chosen", NumberSlot(0), branches, ())), inputs(n))
    assert result.tolist() == wanted.tolist()


def test_a_loop_whose_state_repeats_is_endless_on_the_cpu() -> None:
    body = (kernel("negate", R, t(5)), copy(t(5), R))
    decide = (kernel("less", p(1), p(2), t(3)), read(0, t(3)))
    loop = Loop("forever", decide, NumberSlot(0), body, (ARRAYS.number(R),))
    with pytest.raises(
        EndlessLoop, match=r"loop %forever does not end: the state after 6\d iterations is the one after 6\d"
    ):
        run_program(with_memory(program(copy(p(0), R), loop)), inputs(1, 2), "llvm-dialect")


def test_a_loop_that_does_not_end(run: Runner) -> None:
    """Five iterations are as many as are allowed, six are not."""
    made = program(copy(p(0), R), *times(p(1), t(0), t(1), t(3), *doubled()))
    inner = times(p(2), t(1), t(2), t(4), *doubled())
    with limited_iterations(5):
        (result,) = run(made, inputs(5))
        assert result.tolist() == (32 * X).tolist()
        with pytest.raises(ExecutionError, match=r"loop %[^ ]* does not end within 5 iterations"):
            run(made, inputs(6))
        with pytest.raises(ExecutionError, match="within 5 iterations"):
            run(program(copy(p(0), R), *times(p(1), t(0), t(2), t(3), *inner)), inputs(1, 6))


def test_a_copy_is_another_array(run: Runner) -> None:
    """What is written to the source afterwards does not show."""
    made = program(copy(p(0), t(5)), copy(t(5), R), kernel("double", p(0), t(5)))
    (result,) = run(made, inputs())
    assert result.tolist() == X.tolist()


def test_memory_comes_and_goes(run: Runner) -> None:
    """A temporary may be given memory again and again."""
    use = (allocate(t(5)), kernel("double", R, t(5)), copy(t(5), R), Release(ARRAYS.number(t(5))))
    (result,) = run(program(copy(p(0), R), *use, *use), inputs())
    assert result.tolist() == (4 * X).tolist()


def test_a_function_that_no_library_has(run: Runner) -> None:
    call = LibraryCall("unheard-of", "c", (ARRAY,), (ARRAY,), {"epilogue": "BIAS"})
    step = Call(0, "c", (ARRAYS.place(p(0)),), (ARRAYS.place(R),))
    with pytest.raises(Unsupported, match="no library function 'unheard-of'") as raised:
        run(program(step, calls=[call]), inputs())
    assert isinstance(raised.value, XlaEmittersError)


def test_steps_survive_json() -> None:
    """Every kind, one in the other; a kernel that several steps launch, on whatever arrays, is one."""
    double, less = kernel("double", R, t(5)), kernel("less", t(0), p(1), t(3))
    sort = {"dimension": 0, "is_stable": True, "names": ["a", "b"]}
    call = LibraryCall("sort", "s", (ARRAY,), (ARRAY,), sort, ({"file": "m.py", "line": 3},))
    inner = Loop("inner", (), NumberSlot(2), (), ())
    branch = Branch("b", NumberSlot(1), ((double,), (copy(p(0), R), kernel("double", t(5), R)), ()), ())
    steps: tuple[Step, ...] = (
        allocate(t(5)),
        Call(0, "s", (ARRAYS.place(p(0)),), (ARRAYS.place(R),)),
        read(1, p(2)),
        Loop("outer", (less, read(0, t(3))), NumberSlot(0), (branch, inner), (ARRAYS.number(R),), trips=7),
        Release(ARRAYS.number(t(5))),
        double,
    )
    made = replace(program(*steps, calls=[call]), stage="ptx")
    kernels = tuple(replace(each, ptx="// code") for each in made.kernels)
    made = replace(made, compilation=replace(made.compilation, code="// code", kernels=kernels))
    again = Program.from_json(json.loads(json.dumps(made.to_json())))
    assert again == made
    assert [type(step) for step in again.steps] == [type(step) for step in steps]
    assert [kernel.name for kernel in again.kernels] == ["less", "double"]
    assert [step["step"] for step in made.to_json()["steps"]] == [
        *("Allocate", "Call", "Load", "Loop", "Release", "Launch")
    ]


def test_a_step_that_there_is_not() -> None:
    data = program(copy(p(0), R)).to_json()
    data["steps"][0]["step"] = "jump"
    with pytest.raises(ValueError, match="no step is called 'jump'"):
        Program.from_json(data)
