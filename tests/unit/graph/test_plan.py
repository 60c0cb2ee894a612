"""Plans: which kernels, in which order, on which arrays; and what cannot be planned."""

import sys

import pytest
from long_lists import but_long

from xla_emitters.errors import Unsupported
from xla_emitters.graph.plan import ProgramPlan, plan_program
from xla_emitters.pipelines.compiler import compile_module
from xla_emitters.pipelines.options import CompileOptions
from xla_emitters.program import Kernel, LaunchDimensions, Slot
from xla_emitters.program.steps import Branch, Launch
from xla_emitters.program.steps_text import StepsText
from xla_emitters.text.hlo import parse_hlo

BODIES = """
one {
  x = f32[8] parameter(0)
  ROOT n = f32[8] negate(x)
}
pair {
  x = f32[8] parameter(0)
  n = f32[8] negate(x)
  m = s32[8] convert(x)
  ROOT t = (f32[8], s32[8]) tuple(n, m)
}
sum {
  x = f32[8] parameter(0)
  y = f32[8] parameter(1)
  ROOT s = f32[8] add(x, y)
}
"""


def plan(entry: str) -> ProgramPlan:
    return plan_program(parse_hlo(BODIES + f"ENTRY main {{\n{entry}\n}}\n"))


def flow(entry: str) -> list[tuple[str, str, str]]:
    """Per kernel: name, what it reads, what it writes, as p0 t1 r2."""

    def names(slots: tuple[Slot, ...]) -> str:
        return " ".join(f"{slot.kind[0]}{slot.index}" for slot in slots)

    return [(kernel.name, names(kernel.operands), names(kernel.results)) for kernel in plan(entry).kernels]


CHAIN = """
  x = f32[8] parameter(0)
  y = f32[8] parameter(1)
  a = f32[8] fusion(x, y), kind=kLoop, calls=sum
  ROOT b = f32[8] fusion(a), kind=kLoop, calls=one
"""


@pytest.mark.tiny
def test_a_chain_goes_through_a_temporary() -> None:
    """The example at the head of the file."""
    assert flow(CHAIN) == [("a", "p0 p1", "t0"), ("b", "t0", "r0")]
    planned = plan(CHAIN)
    assert [str(type) for type in planned.temporaries] == ["tensor<8xf32>"]
    assert (len(planned.parameters), len(planned.results)) == (2, 1)


def test_an_entry_without_fusions_is_a_kernel() -> None:
    entry = """
  x = f32[8] parameter(0)
  y = f32[8] parameter(1)
  m = f32[8] multiply(x, y)
  ROOT t = (f32[8], f32[8]) tuple(m, x)
"""
    (kernel,) = plan(entry).kernels
    assert flow(entry) == [("main", "p0 p1", "r0 r1")]
    assert kernel.view.computation.is_entry


def test_tuples_between_fusions_are_looked_through() -> None:
    """A leaf that is a result is written there; one that is not is a temporary."""
    entry = """
  x = f32[8] parameter(0)
  p = (f32[8], s32[8]) fusion(x), kind=kLoop, calls=pair
  f = f32[8] get-tuple-element(p), index=0
  i = s32[8] get-tuple-element(p), index=1
  g = f32[8] fusion(f, x), kind=kLoop, calls=sum
  ROOT t = (s32[8], f32[8]) tuple(i, g)
"""
    assert flow(entry) == [("p", "p0", "t0 r0"), ("g", "t0 p0", "r1")]
    (first, _) = plan(entry).kernels
    assert first.view.computation.sym_name.data == "pair"


def test_nested_tuples_are_numbered_by_leaf() -> None:
    entry = """
  x = f32[8] parameter(0)
  p = (f32[8], s32[8]) fusion(x), kind=kLoop, calls=pair
  n = f32[8] fusion(x), kind=kLoop, calls=one
  inner = ((f32[8], s32[8]), f32[8]) tuple(p, n)
  ROOT t = (f32[8], ((f32[8], s32[8]), f32[8])) tuple(n2, inner)
""".replace("  inner", "  n2 = f32[8] fusion(n), kind=kLoop, calls=one\n  inner")
    assert flow(entry) == [("p", "p0", "r1 r2"), ("n", "p0", "r3"), ("n2", "r3", "r0")]


def steps(entry: str, others: str = "") -> list[str]:
    """The lines of the plan's steps; kernels are named by number, `0` the first that is launched."""
    planned = plan_program(parse_hlo(BODIES + others + f"ENTRY main {{\n{entry}\n}}\n"))
    arguments = {str(number): kernel.arguments for number, kernel in enumerate(planned.kernels)}
    return StepsText(planned.arrays, planned.calls, arguments).of(planned.steps).split("\n")


def test_a_temporary_has_memory_from_its_maker_to_its_last_reader() -> None:
    assert steps(CHAIN) == ["allocate t0 f32[8]", "kernel 0: p0 p1 -> t0", "kernel 1: t0 -> r0", "release t0"]


def test_results_that_are_one_array_or_a_parameter_are_copied() -> None:
    entry = """
  x = f32[8] parameter(0)
  a = f32[8] fusion(x), kind=kLoop, calls=one
  ROOT t = (f32[8], f32[8], f32[8]) tuple(a, x, a)
"""
    assert steps(entry) == ["kernel 0: p0 -> r0", "copy p0 -> r1", "copy r0 -> r2"]


LESS = """
less {
  i = s32[] parameter(0)
  n = s32[] parameter(1)
  ROOT p = pred[] compare(i, n), direction=LT
}
next {
  i = s32[] parameter(0)
  one = s32[] constant(1)
  ROOT n = s32[] add(i, one)
}
"""


def loop(state: str, body: str) -> str:
    """A condition `c` and a body `b` on a state whose first elements are a counter and its limit."""
    elements = "  i = s32[] get-tuple-element(s), index=0\n  n = s32[] get-tuple-element(s), index=1\n"
    condition = (
        f"c {{\n  s = {state} parameter(0)\n{elements}  ROOT p = pred[] fusion(i, n), kind=kLoop, calls=less\n}}\n"
    )
    return LESS + condition + f"b {{\n  s = {state} parameter(0)\n{elements}{body}\n}}\n"


STATE = "(s32[], s32[], f32[8], f32[8])"
ELEMENTS = """  x = f32[8] get-tuple-element(s), index=2
  y = f32[8] get-tuple-element(s), index=3
  j = s32[] fusion(i), kind=kLoop, calls=next
"""
LOOP = f"""
  zero = s32[] parameter(0)
  limit = s32[] parameter(1)
  a = f32[8] parameter(2)
  s = {STATE} tuple(zero, limit, a, a)
  w = {STATE} while(s), condition=c, body=b
  ROOT r = f32[8] get-tuple-element(w), index=2
"""


def test_a_loop_changes_its_state_where_it_is() -> None:
    """The limit and %y are handed on: they are the caller's arrays. The counter is made anew at once: nothing reads the old one later."""
    body = ELEMENTS + f"  z = f32[8] fusion(x, y), kind=kLoop, calls=sum\n  ROOT r = {STATE} tuple(j, n, z, y)"
    wanted = """
allocate t0 s32[]
copy p0 -> t0
copy p2 -> r0
allocate t1 pred[]
loop w, while n0
  condition
    kernel 0: t0 p1 -> t1
    n0 = t1
  body
    allocate t2 s32[]
    kernel 1: t0 -> t2
    allocate t3 f32[8]
    kernel 2: r0 p2 -> t3
    copy t2 -> t0
    copy t3 -> r0
    release t2
    release t3
release t1
release t0
"""
    assert steps(LOOP, loop(STATE, body)) == wanted.strip().split("\n")


def test_a_new_value_is_made_in_the_state_when_the_old_one_is_gone() -> None:
    """%z is the state's next %x; its kernel does not read %x, nor does a later one."""
    body = ELEMENTS + "  m = f32[8] fusion(x), kind=kLoop, calls=one\n  z = f32[8] fusion(m), kind=kLoop, calls=one\n"
    made = steps(LOOP, loop(STATE, body + f"  ROOT r = {STATE} tuple(j, n, z, y)"))
    assert [line.strip() for line in made if "kernel 3" in line] == ["kernel 3: t3 -> r0"]
    assert not [line for line in made if "copy" in line and "-> r0" in line and "p2" not in line]


def test_swapped_state_goes_through_a_temporary() -> None:
    body = ELEMENTS + f"  ROOT r = {STATE} tuple(j, n, y, x)"
    made = [line.strip() for line in steps(LOOP, loop(STATE, body))]
    copies = [line for line in made if line.startswith("copy")]
    # r0 holds %x, t1 holds %y; t3, t4 keep both while they change places.
    assert copies[:3] == ["copy p0 -> t0", "copy p2 -> r0", "copy p2 -> t1"]
    assert copies[3:] == ["copy t1 -> t4", "copy r0 -> t5", "copy t3 -> t0", "copy t4 -> r0", "copy t5 -> t1"]


def test_a_branch_makes_its_results_where_they_are_wanted() -> None:
    others = "yes {\n  x = f32[8] parameter(0)\n  ROOT n = f32[8] fusion(x), kind=kLoop, calls=one\n}\n"
    others += "no {\n  ROOT x = f32[8] parameter(0)\n}\n"
    entry = """
  p = pred[] parameter(0)
  x = f32[8] parameter(1)
  ROOT c = f32[8] conditional(p, x, x), true_computation=yes, false_computation=no
"""
    read = ["n0 = p0", "n1 = eq n0, 0", "branch c by n1"]
    assert steps(entry, others) == [*read, "  0", "    kernel 0: p1 -> r0", "  1", "    copy p1 -> r0"]


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        (
            "  x = f32[8] parameter(0)\n  a = f32[8] fusion(x), kind=kLoop, calls=one\n  ROOT b = f32[8] negate(a)",
            "no library function",
        ),
        (
            "  t = (f32[8], f32[8]) parameter(0)\n  x = f32[8] get-tuple-element(t), index=0\n"
            "  ROOT a = f32[8] fusion(x), kind=kLoop, calls=one",
            "no buffer for a tuple",
        ),
        ("  t = token[] parameter(0)\n  ROOT x = f32[8] iota(), iota_dimension=0", r"no buffer for token\[\].*%t"),
        (
            "  x = f32[8] parameter(0)\n  t = token[] after-all()\n  u = (token[]) tuple(t)\n"
            "  ROOT r = (f32[8], (token[])) tuple(x, u)",
            r"no buffer for token\[\].*%r",
        ),
        # Not the constant, which no fusion can take in.
        (
            "  n = s32[] constant(2)\n  x = f32[8] parameter(0)\n  d = f32[<=8] set-dimension-size(x, n), dimensions={0}\n"
            "  ROOT s = s32[] get-dimension-size(d), dimensions={0}\n",
            r"dimensions only known at run time \(f32\[<=8\]\).*'set-dimension-size' \(instruction %d\)",
        ),
    ],
)
def test_what_is_refused(entry: str, message: str) -> None:
    with pytest.raises(Unsupported, match=message):
        plan(entry)


def test_a_size_of_the_host_is_refused_by_its_maker_in_a_compilation_too() -> None:
    """The size is a constant, and no fusion can take it in: that is not the reason."""
    text = """
half { s = (f32[<=8]) parameter(0)
  d = f32[<=8] get-tuple-element(s), index=0
  n = f32[<=8] negate(d)
  ROOT t = (f32[<=8]) tuple(n) }
never { s = (f32[<=8]) parameter(0)
  ROOT c = pred[] constant(false) }
ENTRY main { n = s32[] constant(2)
  x = f32[8] parameter(0)
  d = f32[<=8] set-dimension-size(x, n), dimensions={0}
  t = (f32[<=8]) tuple(d)
  w = (f32[<=8]) while(t), condition=never, body=half
  ROOT s = f32[<=8] get-tuple-element(w), index=0 }"""
    with pytest.raises(Unsupported, match=r"f32\[<=8\]\).*'set-dimension-size' \(instruction %d\)"):
        compile_module(parse_hlo(text), CompileOptions(stage="xla_gpu", record="none"))


@pytest.mark.parametrize("depth", but_long((1_000, 20_000), (20_000,)))
def test_computations_nest_as_deep_as_there_are(depth: int) -> None:
    """A conditional in a branch of a conditional, and so on: planning and naming the kernels' code are no recursion."""
    limit = sys.getrecursionlimit()
    state = "(s32[], f32[8])"
    computations = [
        f"""
b0 {{
  p = {state} parameter(0)
  x = f32[8] get-tuple-element(p), index=1
  ROOT n = f32[8] fusion(x), kind=kLoop, calls=one
}}"""
    ]
    for level in range(1, depth + 1):
        computations.append(f"""
b{level} {{
  p = {state} parameter(0)
  i = s32[] get-tuple-element(p), index=0
  ROOT c = f32[8] conditional(i, p), branch_computations={{b{level - 1}}}
}}""")
    entry = f"""
ENTRY main {{
  i = s32[] parameter(0)
  x = f32[8] parameter(1)
  p = {state} tuple(i, x)
  ROOT c = f32[8] conditional(i, p), branch_computations={{b{depth}}}
}}"""
    planned = plan_program(parse_hlo(BODIES + "".join(computations) + entry))
    kernel = Kernel("one_kernel", "", "sm_90", LaunchDimensions((3, 1, 1), (8, 1, 1)), 0, ())
    step, found = planned.with_code([kernel]), 0
    while len(step) == 2:
        assert isinstance(step[1], Branch)
        step, found = step[1].branches[0], found + 1
    (launch,) = step
    assert isinstance(launch, Launch)
    assert (launch.kernel, launch.grid, found) == ("one_kernel", (3, 1, 1), depth + 1)
    assert sys.getrecursionlimit() == limit
