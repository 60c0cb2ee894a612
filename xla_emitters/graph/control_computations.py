"""The control computations of a module: ENTRY, and those that its loops, branches, calls and asynchronous ops run (XLA's call graph says:
that are called in the context "control flow").

    ENTRY main                                 control
      %w = while(%s), condition=c, body=b      c and b: control, and so are those that they run
      %f = fusion(%x), calls=g                 g: one kernel, not control
      %r = reduce(%x, %z), to_apply=add        add: part of a kernel, not control

Passes on HLO treat each of these like ENTRY: its fusions become kernels, the rest becomes other steps of the program. Only an
ENTRY without fusions, in which no instruction runs other computations or a library, is one kernel itself (`is_one_kernel`). A library
computes a product of matrices, or a convolution, that is all of ENTRY, and in any ENTRY those that XLA would not leave to its loop emitter.
Fusions are found by name in all of them: ENTRY's first, then in text order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, TypeGuard

from xdsl.dialects.builtin import ModuleOp

from xla_emitters.dialects.hlo.base import HloOp, written_at
from xla_emitters.dialects.hlo.computation import (
    CallOp,
    ComputationOp,
    FusionOp,
    GetTupleElementOp,
    ParameterOp,
    TupleOp,
    callees_of,
)
from xla_emitters.dialects.hlo.constant import ConstantOp
from xla_emitters.dialects.hlo.elementwise import CopyOp
from xla_emitters.dialects.hlo.rule_ops import RuleOp
from xla_emitters.dialects.hlo.shape_ops import BitcastOp
from xla_emitters.errors import UsageError, VerifyError
from xla_emitters.graph.entry import changes_width, computation_of, entry_of

if TYPE_CHECKING:  # most modules have none
    from xla_emitters.dialects.hlo.contractions import ContractingOp

CONTROL = frozenset({"while", "conditional", "call", "async-start"})
"""Opcodes of instructions that run other computations, no kernels."""


def control_computations(module: ModuleOp) -> tuple[ComputationOp, ...]:
    """The control computations, each once, callees before their callers; ENTRY is the last.

    raises VerifyError if there is no ENTRY, or a computation runs itself
    """
    return run_by(entry_of(module))


def run_by(entry: ComputationOp) -> tuple[ComputationOp, ...]:
    """`control_computations` of the module with that ENTRY."""
    return callees_first([entry], called_by_control)


def callees_first(
    roots: Iterable[ComputationOp], run_inside: Callable[[ComputationOp], Iterator[ComputationOp]]
) -> tuple[ComputationOp, ...]:
    """Computations and those that they run, each once, callees before their callers. raises VerifyError if one runs itself"""
    found = dict[ComputationOp, None]()
    for root in roots:
        # The current path from the root, kept explicitly because it may be longer than Python's stack.
        running = {root: run_inside(root)} if root not in found else {}
        while running:
            current, callees = next(reversed(running.items()))
            callee = next((other for other in callees if other not in found), None)
            if callee is None:
                found[current] = None
                del running[current]
            elif callee in running:
                raise _runs_itself((*running, callee))
            else:
                running[callee] = run_inside(callee)
    return tuple(found)


def _runs_itself(path: tuple[ComputationOp, ...]) -> VerifyError:
    """The error for a computation, the last of `path`, that directly or indirectly runs itself."""
    names = [computation.sym_name.data for computation in path]
    return VerifyError(
        f"computation '{names[-1]}' runs itself",
        stage="plan",
        place=written_at(path[-1]),
        details=(" -> ".join(names[names.index(names[-1]) :]),),
        help="HLO has no recursion: a loop is a 'while'",
    )


def called_by_control(computation: ComputationOp) -> Iterator[ComputationOp]:
    """The computations that a control computation's own instructions run, in program order."""
    for op in filter(is_control, computation.instructions):
        yield from callees_of(op)


def is_control(op: HloOp) -> bool:
    """Whether an instruction runs other control computations."""
    return op.opcode in CONTROL


def loop_bodies(entry: ComputationOp) -> frozenset[ComputationOp]:
    """The loop bodies that are run only as loop bodies: their parameter is the loop's state. `entry` is the module's ENTRY."""
    bodies, others = set[ComputationOp](), set[ComputationOp]()
    for computation in run_by(entry):
        for op in filter(is_control, computation.instructions):
            *rest, last = callees_of(op)
            others.update(rest)
            (bodies if op.opcode == "while" else others).add(last)
    return frozenset(bodies - others)


_NAMES_OR_MOVES = (ParameterOp, TupleOp, GetTupleElementOp, ConstantOp, BitcastOp, CopyOp)
"""Classes of instructions that compute nothing."""


def is_one_kernel(entry: ComputationOp) -> bool:
    """Whether an ENTRY is a kernel itself: it has no fusions, kernels can compute all of its instructions, one of these computes
    something, no bitcast changes the width of elements, and a library is not better at it. An entry of a text without ENTRY, which is one
    fusion, may do what it likes.
    """
    computing = [op for op in entry.instructions if not isinstance(op, _NAMES_OR_MOVES)]
    if any(
        isinstance(op, FusionOp | CallOp | RuleOp)
        or (isinstance(op, TupleOp) and not op.operands)
        or (isinstance(op, BitcastOp) and changes_width(op))
        for op in entry.instructions
    ):
        return False
    if entry.is_fusion:
        return True
    return not all(map(is_contraction, computing)) and not any(
        is_contraction(op) and not op.is_small for op in computing
    )


def is_contraction(op: HloOp) -> TypeGuard[ContractingOp]:
    """Whether an instruction is a product or a convolution."""
    return op.CONTRACTS


def fusions_run_by(entry: ComputationOp) -> tuple[FusionOp, ...]:
    """The fusions of all control computations of the module with that ENTRY: each becomes a kernel, or several."""
    return tuple(fusion for computation in run_by(entry) for fusion in fusions_of(computation))


def fusions_of(computation: ComputationOp) -> list[FusionOp]:
    return [op for op in computation.instructions if isinstance(op, FusionOp)]


def fusion_named(module: ModuleOp, name: str) -> FusionOp:
    """The fusion instruction of that name in any control computation. raises UsageError, which lists the existing names."""
    *others, entry = control_computations(module)
    in_order = (op for op in module.ops if isinstance(op, ComputationOp) and op in others)
    named = dict[str, FusionOp]()
    for computation in (entry, *in_order):
        for fusion in fusions_of(computation):
            named.setdefault(fusion.instruction_name.data, fusion)
    if name not in named:
        there = f"there are: {', '.join(map(_listed, named.values()))}"
        raise UsageError(
            f"no fusion instruction '{name}' in ENTRY or in a computation that it runs",
            stage="plan",
            help=there if named else "there are none: without --fusion, ENTRY itself is compiled",
        )
    return named[name]


def _listed(fusion: FusionOp) -> str:
    around = fusion.parent_op()
    assert isinstance(around, ComputationOp)
    return fusion.instruction_name.data + ("" if around.is_entry else f" (in '{around.sym_name.data}')")


def called_by(module: ModuleOp, fusion: str) -> ComputationOp:
    """The computation that the fusion instruction named `fusion` calls. raises UsageError if there is no such fusion."""
    return computation_of(fusion_named(module, fusion))


def drawn_for(module: ModuleOp, fusion: str | None = None) -> ComputationOp:
    """The computation that inputs are drawn for: ENTRY, or the computation called by the fusion instruction `fusion`."""
    return entry_of(module) if fusion is None else called_by(module, fusion)


def kernel_sources(module: ModuleOp, fusion: str | None = None) -> tuple[FusionOp | ComputationOp, ...]:
    """The sources of kernels: one fusion, or all fusions, or ENTRY if it is one kernel. raises UsageError if the fusion does not exist."""
    if fusion is not None:
        return (fusion_named(module, fusion),)
    entry = entry_of(module)
    return (entry,) if is_one_kernel(entry) else fusions_run_by(entry)
