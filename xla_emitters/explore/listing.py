"""What is in a module: every fusion and every call of a library, in ENTRY, loop bodies, branches and called computations.

    fusion.3       body.1   reduction (reduce)     1024x1x1 blocks of 256x1x1 threads
    gemm_fusion    ENTRY    split into 1 call and 2 kernels ...
    custom-call.1  ENTRY    __cublas$gemm          gemm

Fusions are looked at one by one, up to emission, so one that is refused does not hide the others.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

from xdsl.dialects.builtin import ModuleOp, StringAttr

from xla_emitters.dialects.hlo.base import HloOp
from xla_emitters.dialects.hlo.computation import ComputationOp, FusionOp
from xla_emitters.dialects.hlo.library_calls import is_library_call, library_call_of
from xla_emitters.errors import Unsupported, XlaEmittersError
from xla_emitters.fusions.heroes import find_non_trivial_hero
from xla_emitters.fusions.host import host_computations
from xla_emitters.fusions.view import view_of
from xla_emitters.graph.isolate_fusions import isolate_fusions
from xla_emitters.pipelines.compiler import compile_module
from xla_emitters.pipelines.options import CompileOptions
from xla_emitters.program import LibraryCall


@dataclass(frozen=True)
class ListedKernel:
    """One fusion.

    name, computation  of the instruction, and of the computation that it is in
    emitter            "loop", "reduction" ...; of a fusion that becomes several kernels those of all, joined by "+"
    hero               opcode of the hero of the first root
    launch             of each kernel: {"grid": [x, y, z], "block": [x, y, z]}
    calls              library functions that are called for it, as for the dots of a fusion for Triton
    supported          whether `run` executes it on a CPU
    ptx                whether there is code of ours for it
    reason             why it is not supported; ""
    other_compiler     the compiler that XLA would use, as "__triton_gemm"; None for an emitter
    """

    name: str
    computation: str
    emitter: str | None
    hero: str | None
    launch: tuple[dict[str, list[int]], ...]
    calls: tuple[str, ...]
    supported: bool
    ptx: bool
    reason: str
    other_compiler: str | None


@dataclass(frozen=True)
class ListedCall:
    """One instruction that a library computes: a custom-call, or an op as sort and dot.

    target     of a custom-call; else the opcode
    function   the library function that it becomes, None where there is none
    """

    name: str
    computation: str
    target: str
    function: str | None
    supported: bool
    reason: str


@dataclass(frozen=True)
class Listing:
    """Everything in a module that takes time on a GPU, in program order, callees before callers.

    kernels        the fusions
    library_calls  the custom-calls, markers left out
    other_calls    other instructions that a library computes
    """

    target: str
    kernels: tuple[ListedKernel, ...]
    library_calls: tuple[ListedCall, ...]
    other_calls: tuple[ListedCall, ...]

    def to_json(self) -> dict[str, Any]:
        """Plain data, as docs/json.md says."""
        return asdict(self)


def list_module(module: ModuleOp, options: CompileOptions) -> Listing:
    """Looks at every fusion and call of a module that was read; refusals are part of the answer."""
    kernels, custom, others = list[ListedKernel](), list[ListedCall](), list[ListedCall]()
    for computation in host_computations(module):
        for op in computation.instructions:
            if isinstance(op, FusionOp):
                kernels.append(_listed_kernel(module, op, computation, options))
            elif (call := _listed_call(op, computation)) is not None:
                (custom if op.opcode == "custom-call" else others).append(call)
    return Listing(options.device.name, tuple(kernels), tuple(custom), tuple(others))


def _listed_kernel(
    module: ModuleOp, fusion: FusionOp, computation: ComputationOp, options: CompileOptions
) -> ListedKernel:
    name, view = fusion.instruction_name.data, view_of(fusion)
    where = name, computation.sym_name.data
    hero = find_non_trivial_hero(view, view.roots[0]).opcode
    alone = replace(options, fusion=None, stage="xla_gpu", record="none")
    try:
        program = compile_module(isolate_fusions(module, [fusion]), alone)
    except XlaEmittersError as error:
        return ListedKernel(*where, None, hero, (), (), False, False, error.message, view.other_compiler)
    emitters = [
        str(decision.data["name"])
        for trace in program.traces
        for decision in trace.decisions
        if decision.topic == "emitter"
    ]
    launches = tuple(
        {"grid": list(kernel.launch.at({}).grid), "block": list(kernel.launch.block)} for kernel in program.kernels
    )
    calls = tuple(step.name for step in program.steps if isinstance(step, LibraryCall))
    return ListedKernel(
        *where, "+".join(dict.fromkeys(emitters)), hero, launches, calls, True, bool(launches), "", view.other_compiler
    )


def _listed_call(op: HloOp, computation: ComputationOp) -> ListedCall | None:
    """None for an instruction that no library computes."""
    if not is_library_call(op):
        return None
    target = op.properties.get("custom_call_target")
    named = target.data.strip('"') if isinstance(target, StringAttr) else op.opcode
    where = op.instruction_name.data, computation.sym_name.data, named
    try:
        return ListedCall(*where, library_call_of(op)[0], True, "")
    except Unsupported as error:
        return ListedCall(*where, None, False, error.message)
