"""Compiling takes time in proportion to the fusion: a quadratic step shows as four times the work an op for four times the ops.

Work is counted in Python calls, which do not depend on what else the machine does.
"""

import cProfile

import pytest

from xla_emitters.pipelines.compiler import compile

SHAPE = "bf16[6,512,4096]"
FEW, MANY = 15, 60
# Work per op shrinks from FEW to MANY ops, because what is done once is shared by more; a little room for what is not.
GROWTH_MAX = 1.05


def chain(ops: int) -> list[str]:
    """A value computed from the one before and the one before that."""
    lines = [f"p{i} = {SHAPE} parameter({i})" for i in range(2)]
    names = ["p0", "p1"]
    for i in range(ops):
        lines.append(f"v{i} = {SHAPE} {('add', 'multiply', 'maximum')[i % 3]}({names[-1]}, {names[-2]})")
        names.append(f"v{i}")
    return lines


def parameters(ops: int) -> list[str]:
    """The sum of many arrays: as many loads as ops."""
    lines = [f"p{i} = {SHAPE} parameter({i})" for i in range(ops + 1)]
    lines += [f"v{i} = {SHAPE} add({f'v{i - 1}' if i else 'p0'}, p{i + 1})" for i in range(ops)]
    return lines


def results(ops: int) -> list[str]:
    """Every partial product is a result: as many stores as ops."""
    lines = [f"p{i} = {SHAPE} parameter({i})" for i in range(2)]
    lines += [f"v{i} = {SHAPE} multiply({f'v{i - 1}' if i else 'p0'}, p1)" for i in range(ops)]
    values = ", ".join(f"v{i}" for i in range(ops))
    lines.append(f"all = ({', '.join([SHAPE] * ops)}) tuple({values})")
    return lines


def forks(ops: int) -> list[str]:
    """x + transpose(x) again and again: as many functions as sums."""
    shape = "f32[64,64]"
    lines = [f"v0 = {shape} parameter(0)"]
    for i in range(ops):
        lines.append(f"t{i} = {shape} transpose(v{i}), dimensions={{1,0}}")
        lines.append(f"v{i + 1} = {shape} add(v{i}, t{i})")
    return lines


def constants(ops: int) -> list[str]:
    """A different constant in every sum."""
    lines = [f"p = {SHAPE} parameter(0)"]
    for i in range(ops):
        lines.append(f"k{i} = bf16[] constant({i + 1})")
        lines.append(f"b{i} = {SHAPE} broadcast(k{i}), dimensions={{}}")
        lines.append(f"v{i} = {SHAPE} add({f'v{i - 1}' if i else 'p'}, b{i})")
    return lines


def pieces(ops: int) -> list[str]:
    """A concatenate of many arrays: as many branches as arrays."""
    lines = [f"p{i} = f32[3] parameter({i})" for i in range(ops)]
    return [*lines, f"all = f32[{3 * ops}] concatenate({', '.join(f'p{i}' for i in range(ops))}), dimensions={{0}}"]


def functions(ops: int) -> list[str]:
    """A chain of calls of one function: all of its constants are merged, and come from as many places."""
    return ["v0 = f32[64] parameter(0)", *(f"v{i + 1} = f32[64] tanh(v{i})" for i in range(ops))]


def calls_to_compile(lines: list[str]) -> int:
    """Python calls from HLO text to the LLVM dialect."""
    text = "fused {\n  " + "\n  ".join([*lines[:-1], f"ROOT {lines[-1]}"]) + "\n}\n"
    profile = cProfile.Profile(builtins=False)
    profile.runcall(compile, text, stage="llvm-dialect", record="none")
    return sum(entry.callcount for entry in profile.getstats())


@pytest.mark.parametrize("fusion", [chain, parameters, results, forks, constants])
def test_work_grows_with_the_fusion(fusion):
    calls_to_compile(fusion(2))  # what is made once for all
    few, many = (calls_to_compile(fusion(ops)) for ops in (FEW, MANY))
    assert many / few < GROWTH_MAX * MANY / FEW


def test_work_of_a_concatenate_grows_with_its_operands():
    """Also with the depth of the branches, whose number is halved at each: some passes visit an op once a level."""
    calls_to_compile(pieces(2))
    few, many = (calls_to_compile(pieces(4 * operands)) for operands in (FEW, MANY))
    assert many / few < 1.2 * MANY / FEW


def test_work_of_merged_ops_grows_with_their_number():
    calls_to_compile(functions(2))
    few, many = (calls_to_compile(functions(8 * ops)) for ops in (FEW, MANY))
    assert many / few < GROWTH_MAX * MANY / FEW
