"""A row for each module of `tests/corpus/modules`: its parts, how many bytes it moves, and whether the numbers are right.

    make modules                                          all of them; ends with 1 where one is refused or wrong
    PYTHONPATH=tests python -m runtime.modules_table softmax rnn --jobs 2

    module            kernels  calls  triton  loops  branches    bytes  XLA's  peak  numbers
    softmax.triton          3      0       1      0         0    15552   3840  5856  ok

kernels, calls   launches and library calls, as they are written down (in the body of a loop once)
triton           fusions that XLA would give to Triton, and that are split here
bytes, XLA's     operands and results of our steps, and of the instructions of XLA's module; loops as often as XLA knows that they run
peak             bytes of parameters, results and temporaries that are there at once
"""

import argparse
import multiprocessing
import re
import sys
from collections import Counter
from collections.abc import Sequence

from runtime.modules import SETTINGS, recipes
from xdsl.ir import Attribute

from xla_emitters.dialects.hlo.base import HloOp
from xla_emitters.dialects.hlo.computation import CallingOp, ComputationOp, GetTupleElementOp, find_computation
from xla_emitters.dialects.hlo.types import is_array, leaf_types, tuple_types
from xla_emitters.dtypes import dtype
from xla_emitters.errors import XlaEmittersError
from xla_emitters.graph.buffers import array_spec
from xla_emitters.graph.computation_steps import known_trip_count
from xla_emitters.graph.control_computations import is_control
from xla_emitters.graph.entry import entry_of
from xla_emitters.pipelines.compiler import compile, read_module
from xla_emitters.program import ArraySpec, Program
from xla_emitters.program.steps import Branch, Call, Copy, Launch, Loop, Step, steps_within

TITLES = ("module", "kernels", "calls", "triton", "loops", "branches", "bytes", "XLA's", "peak", "numbers")
FREE = frozenset({"parameter", "constant", "tuple", "get-tuple-element", "bitcast", "after-all", "async-done"})
"""Opcodes of instructions that move nothing."""


def bytes_of(spec: ArraySpec) -> int:
    return dtype(spec.dtype).size_bytes(spec.elements)


def bytes_moved(program: Program, steps: Sequence[Step]) -> int:
    """Operands and results of all steps; of a branch, those of the longest."""
    total = 0
    for step in steps:
        match step:
            case Launch():
                (kernel,) = (each for each in program.kernels if each.name == step.kernel)
                total += sum(argument.bytes for argument in kernel.arguments)
            case Call():
                call = program.calls[step.op]
                total += sum(map(bytes_of, (*call.operands, *call.results)))
            case Copy():
                total += 2 * bytes_of(program.arrays.spec(program.arrays.slot(step.source.slot)))
            case Loop():
                trips = 1 if step.trips is None else step.trips
                total += (trips + 1) * bytes_moved(program, step.condition) + trips * bytes_moved(program, step.body)
            case Branch():
                total += max((bytes_moved(program, branch) for branch in step.branches), default=0)
            case _:
                pass
    return total


def bytes_by_xla(computation: ComputationOp) -> int:
    """Operands and results of the instructions that XLA runs for a computation of the host."""
    total = 0
    for op in computation.instructions:
        if is_control(op):
            assert isinstance(op, CallingOp)
            callees = [bytes_by_xla(find_computation(op, callee.symbol)) for callee in op.callees()]
            if op.opcode == "while":
                trips = known_trip_count(op)
                trips = 1 if trips is None else trips
                total += (trips + 1) * callees[0] + trips * callees[1]
            else:
                total += max(callees)
        elif op.opcode not in FREE:
            total += sum(_bytes(value.type) for value in op.operands) + _result_bytes(op)
    return total


def _result_bytes(op: HloOp) -> int:
    """Bytes of the results that are used: a matrix product's workspace does not count."""
    result = op.results[0]
    users = [use.operation for use in result.uses]
    used = [user.index.value.data for user in users if isinstance(user, GetTupleElementOp)]
    if not used or len(used) != len(users):
        return _bytes(result.type)
    return sum(_bytes(tuple_types(result.type)[number]) for number in set(used))


def _bytes(type: Attribute) -> int:
    return sum(bytes_of(array_spec(leaf)) for leaf in leaf_types(type) if is_array(leaf))


def row(name: str, setting: str) -> tuple[str, ...]:
    """The cells of one module, in the order of `TITLES`."""
    recipe = recipes()[name]
    text = recipe.text(setting).read_text()
    by_xla = bytes_by_xla(entry_of(read_module(text)))
    triton = len(re.findall(r'"kind":"__triton', text))
    try:
        program = compile(text, stage="llvm-dialect", cache=False)
        results = program.run_cpu(*recipe.arrays())
        wrong = recipe.differs([results] if len(program.results) == 1 else results, program.results)
    except XlaEmittersError as error:
        return (name + setting, "", "", str(triton), "", "", "", str(by_xla), "", f"refused: {error.message}")
    except Exception as error:  # a bug, which is shown in its row
        return (name + setting, "", "", str(triton), "", "", "", str(by_xla), "", f"{type(error).__name__}: {error}")
    kinds = Counter(type(step) for step in steps_within(program.steps))
    numbers = (kinds[Launch], kinds[Call], triton, kinds[Loop], kinds[Branch])
    moved = (bytes_moved(program, program.steps), by_xla, program.peak_bytes)
    return (name + setting, *map(str, (*numbers, *moved)), "; ".join(wrong) or "ok")


def print_row(cells: Sequence[str]) -> None:
    first, *numbers, last = cells
    print(f"{first:32}" + "".join(f"{cell:>10}" for cell in numbers) + f"  {last}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description="Whole modules against XLA:CPU.")
    parser.add_argument("names", nargs="*", help="programs; default: all")
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    modules = [(name, setting) for name in options.names or recipes() for setting in SETTINGS]
    print_row(TITLES)
    right = 0
    with multiprocessing.Pool(options.jobs) as pool:
        for cells in pool.imap(_row_of, modules):
            print_row(cells)
            right += cells[-1] == "ok"
    print(f"{right} of {len(modules)} ok")
    return 0 if right == len(modules) else 1


def _row_of(module: tuple[str, str]) -> tuple[str, ...]:
    return row(*module)


if __name__ == "__main__":
    sys.exit(main())
