"""Lists a module or a program: every fusion and every library call, in ENTRY, loop bodies, branches and called computations.

    fusion.3       body.1   reduction (reduce)     1024x1x1 blocks of 256x1x1 threads
    gemm_fusion    ENTRY    split into 1 call and 2 kernels ...
    custom-call.1  ENTRY    __cublas$gemm          gemm

    main_kStitch_0 ENTRY    stitch (kStitch)       f32[b,s]   blocks of 256x1x1 threads      of a program with unknown sizes

Of a module each fusion is planned and emitted separately, in a module of its own, so one that is refused does not hide the others, and the
time is not the module's size times the number of fusions. `compilable` makes one module of everything that can be compiled.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from xdsl.dialects.builtin import ModuleOp, StringAttr

from xla_emitters.dialects.hlo.base import HloOp, written_at
from xla_emitters.dialects.hlo.computation import (
    ComputationOp,
    FusionOp,
    GetTupleElementOp,
    ParameterOp,
    TupleOp,
)
from xla_emitters.dialects.hlo.constant import ConstantOp
from xla_emitters.dialects.hlo.elementwise import CopyOp
from xla_emitters.dialects.hlo.library_calls import is_library_call, library_call_of
from xla_emitters.dialects.hlo.rule_ops import is_wait
from xla_emitters.dialects.hlo.shape_ops import BitcastOp
from xla_emitters.dialects.hlo.types import is_array, leaf_types
from xla_emitters.errors import Place, Unsupported, VerifyError, XlaEmittersError
from xla_emitters.explore.compile import examined
from xla_emitters.graph.buffers import array_spec
from xla_emitters.graph.control_computations import (
    control_computations,
    fusions_run_by,
    is_control,
    is_one_kernel,
    kernel_sources,
)
from xla_emitters.graph.entry import entry_of
from xla_emitters.graph.fuse_entry import FuseEntryPass
from xla_emitters.graph.fuse_loops import FuseLoopsPass
from xla_emitters.graph.heroes import find_non_trivial_hero
from xla_emitters.graph.inline_calls import InlineCallsPass
from xla_emitters.graph.isolate_fusions import isolate_fusions
from xla_emitters.graph.remove_no_ops import RemoveNoOpsPass
from xla_emitters.graph.split_triton_fusions import split_triton_fusions
from xla_emitters.graph.unwrap_async import UnwrapAsyncPass
from xla_emitters.graph.view import FusionView, view_of
from xla_emitters.graph.wrap_instructions import WrapInstructionsPass
from xla_emitters.pipelines.compiler import compile_module
from xla_emitters.pipelines.fuse_scans import FuseScansPass
from xla_emitters.pipelines.merge_fusions import MergeFusionsPass
from xla_emitters.pipelines.options import CompileOptions
from xla_emitters.pipelines.stitch_rows import StitchRowsPass
from xla_emitters.program import Program

if TYPE_CHECKING:
    from xla_emitters.pipelines.program_kernels import LoweredKernel
    from xla_emitters.pipelines.program_listing import ListedFusion, ListedOp

_NO_STEPS = (ParameterOp, TupleOp, GetTupleElementOp, ConstantOp, BitcastOp, CopyOp, FusionOp)


@dataclass(frozen=True)
class ListedKernel:
    """One fusion.

    name, computation  of the instruction, and of the computation that contains it
    emitter            "loop", "reduction" ...; for a fusion that becomes several kernels, those of all, joined by "+"
    hero               opcode of the hero of the first root; of a program its kind of fusion, "kLoop" ...
    launch             of each kernel: {"kernel": name of its entry, "grid": [x, y, z], "block": [x, y, z]}; an extent is None if only a
                       call knows it
    calls              library functions that it calls, such as those for the dots of a fusion for Triton
    supported          whether `run` executes it on a CPU
    ptx                whether PTX can be made for it
    reason             why it is not supported; "" if it is
    other_compiler     the compiler that XLA would use, such as "__triton_gemm"; None for an emitter
    place              file:line:column; "" if not known
    results            types of its result arrays; of a program with its symbols
    """

    name: str
    computation: str
    emitter: str | None
    hero: str | None
    launch: tuple[dict[str, Any], ...]
    calls: tuple[str, ...]
    supported: bool
    ptx: bool
    reason: str
    other_compiler: str | None
    place: str
    results: tuple[str, ...] = ()


@dataclass(frozen=True)
class ListedCall:
    """An instruction without a kernel: a custom-call, an op of a library, such as sort and dot, or an op that cannot be run here.

    target     of a custom-call; else the opcode
    function   the library function that it becomes, or None
    reason     why it is not supported; of a program also why it runs as it does
    results    types of its result arrays; of a program with its symbols
    """

    name: str
    computation: str
    target: str
    function: str | None
    supported: bool
    reason: str
    place: str
    results: tuple[str, ...] = ()


@dataclass(frozen=True)
class Listing:
    """All instructions of a module or a program that take time on a GPU, in program order, callees before callers.

    kernels        the fusions; other instructions that become a kernel each; an ENTRY that is one kernel
    library_calls  of a module the custom-calls, except markers; of a program the calls of libraries
    other_calls    other instructions without a kernel
    of_sizes       how many ops of a program compute sizes, on the host
    no_kernels     why a program has no kernels; "" if it has
    """

    target: str
    kernels: tuple[ListedKernel, ...]
    library_calls: tuple[ListedCall, ...]
    other_calls: tuple[ListedCall, ...]
    of_sizes: int = 0
    no_kernels: str = ""

    def to_json(self) -> dict[str, Any]:
        """Plain data, as docs/json.md says."""
        return asdict(self)


def listing_of(source: str | Path | bytes | bytearray | Program | ModuleOp, options: CompileOptions) -> Listing:
    """The listing of a module or a program, as `examined` takes it."""
    found = examined(source, options.as_keywords())[0]
    return list_module(found, options) if isinstance(found, ModuleOp) else list_program(found, options)


def list_module(module: ModuleOp, options: CompileOptions) -> Listing:
    """Plans every fusion and call of a module; a refusal is recorded in its row, not raised."""
    kernels, custom, others = list[ListedKernel](), list[ListedCall](), list[ListedCall]()
    if (entry := _as_one_kernel(module)) is not None:
        name = entry.sym_name.data
        return Listing(options.device.name, (_listed_kernel(module, view_of(entry), (name, name), options),), (), ())
    chains = StitchRowsPass(options.target) if options.triton == "rows" and options.tune != "price" else None
    apart = _apart(module, chains, None if options.tune == "xla" else options)
    alone = {op: isolate_fusions(apart, [op]) for _, op in _steps(apart) if isinstance(op, FusionOp)}
    if (
        not options.tune
        and max(len(kernel_sources(module)), sum(not _library_calls_alone(each) for each in alone.values())) > 1
    ):
        options = replace(options, tune="auto")  # as `compile_module` chooses for several kernels
    for computation, op in _steps(apart):
        where = op.instruction_name.data, computation.sym_name.data
        if isinstance(op, FusionOp):
            kernels.append(_listed_kernel(alone[op], view_of(op), where, options))
        else:
            (custom if op.opcode == "custom-call" else others).append(_listed_call(op, where))
    return Listing(options.device.name, tuple(kernels), tuple(custom), tuple(others))


def list_program(program: Program, options: CompileOptions) -> Listing:
    """The fusions of a program, its library calls, and the ops that neither of them computes; of a program that the pipeline refuses,
    all its ops.

    raises   Unsupported for a text that no pass can read
    """
    # Imported here, so that HLO does not load the second system.
    from xla_emitters.pipelines import program_listing
    from xla_emitters.pipelines.lowerings import lowerings_of
    from xla_emitters.pipelines.program_outline import not_in_kernels
    from xla_emitters.pipelines.programs import compile_program

    module = lowerings_of(program).source
    try:
        made = lowerings_of(compile_program(module, options))
        kernels, fused, why = made.lowering.kernels, made.fused, ""
    except Unsupported as error:
        made = lowerings_of(compile_program(module, replace(options, stage="hlo")))
        kernels, fused, why = (), None, error.message
    found = program_listing.list_program(made.at("hlo" if fused is None else "placed"))
    calls = found.library_calls
    others = [op for op in found.ops if op not in calls] if fused is None else not_in_kernels(found, fused)
    fusions = [
        _listed_fusion(fusion, [kernel for kernel in kernels if f"{kernel.name}_".startswith(f"{fusion.name}_")])
        for fusion in (() if fused is None else program_listing.list_fusions(fused))
    ]
    rows = tuple(map(_listed_op, calls)), tuple(map(_listed_op, others))
    return Listing(options.device.name, tuple(fusions), *rows, found.of_sizes, why)


def _listed_op(op: ListedOp) -> ListedCall:
    """The row of an op of a program."""
    where, results = (op.name, op.computation, op.opcode), (op.type,)
    return ListedCall(*where, op.function, op.supported, op.reason, op.place, results)


def _listed_fusion(fusion: ListedFusion, kernels: Sequence[LoweredKernel]) -> ListedKernel:
    """The row of a fusion of a program, with the kernels of which the host launches one."""
    launches = tuple(
        {"kernel": kernel.name, "grid": [None, None, None], "block": list(kernel.block)} for kernel in kernels
    )
    made = "+".join(dict.fromkeys(kernel.schedule for kernel in kernels)) or None
    of = fusion.name, "ENTRY", made, fusion.kind
    return ListedKernel(*of, launches, (), True, bool(kernels), "", None, "", fusion.results)


def _as_one_kernel(module: ModuleOp) -> ComputationOp | None:
    """ENTRY, if it is a single kernel once markers, asynchronous copies and calls are removed."""
    if any(isinstance(op, FusionOp) for op in entry_of(module).instructions):
        return None
    copy = module.clone()
    for each in (UnwrapAsyncPass(), InlineCallsPass(), RemoveNoOpsPass()):
        each.apply_to(copy)
    entry = entry_of(copy)
    return entry if is_one_kernel(entry) else None


def _apart(module: ModuleOp, chains: StitchRowsPass | None = None, by_rule: CompileOptions | None = None) -> ModuleOp:
    """A copy in which each instruction of a control computation is either a fusion or not a kernel.

    chains   makes one fusion of several where one kernel reads their rows once; None: all stay
    by_rule  the options of a compilation that makes one fusion of others, too
    """
    copy = module.clone()
    for each in (UnwrapAsyncPass(), RemoveNoOpsPass()):
        each.apply_to(copy)
    if chains is not None:
        chains.stitch_chains(copy, entry_of(copy))
    WrapInstructionsPass().apply_to(copy)
    if by_rule is None:
        return copy
    merged = copy.clone()
    FuseEntryPass().apply_to(merged)
    before = [op.calls for op in fusions_run_by(entry_of(merged))]
    scans, merges = FuseScansPass(by_rule.target), MergeFusionsPass(by_rule.target, by_rule.hero_rules)
    for each in (FuseLoopsPass(), scans, merges):
        each.apply_to(merged)
    return copy if [op.calls for op in fusions_run_by(entry_of(merged))] == before else merged


def _steps(apart: ModuleOp) -> Iterator[tuple[ComputationOp, HloOp]]:
    """The instructions of control computations that do work, callees first."""
    for computation in control_computations(apart):
        for op in computation.instructions:
            if isinstance(op, FusionOp) or not (
                isinstance(op, _NO_STEPS)
                or is_control(op)
                or op.opcode in ("after-all", "async-update", "async-done", "recv", "send-done")
            ):
                yield computation, op


def _listed_kernel(alone: ModuleOp, view: FusionView, where: tuple[str, str], options: CompileOptions) -> ListedKernel:
    """The row of a fusion; `alone` is a module with only that fusion."""
    results, opcode = tuple(str(array_spec(each)) for each in view.result_types), view.roots[0].opcode
    row = partial(ListedKernel, *where, other_compiler=view.other_compiler, place=_written(view.place), results=results)
    if calls := _library_calls_alone(alone):
        return row(None, opcode, (), calls, True, False, "")
    try:
        hero = find_non_trivial_hero(view, view.roots[0]).opcode
        program = compile_module(alone, _up_to_emission(options))
    except XlaEmittersError as error:
        return row(None, opcode, (), (), False, False, error.message)
    emitters = [
        str(decision.data["name"])
        for trace in program.traces
        for decision in trace.decisions
        if decision.topic == "emitter"
    ]
    launches = tuple(
        {"kernel": kernel.name, "grid": list(kernel.launch.grid), "block": list(kernel.launch.block)}
        for kernel in program.kernels
    )
    calls = tuple(call.name for call in program.calls)
    made = "+".join(dict.fromkeys(emitters)) or None
    return row(made, hero, launches, calls, True, bool(launches), "")


def _library_calls_alone(alone: ModuleOp) -> tuple[str, ...]:
    """The library functions that a fusion for Triton or cuDNN becomes, if nothing is left for a kernel; () for all other fusions."""
    copy = alone.clone()
    split_triton_fusions(copy)
    instructions = list(entry_of(copy).instructions)
    works = [op for op in instructions if not isinstance(op, _NO_STEPS) or isinstance(op, FusionOp)]
    if any(isinstance(op, FusionOp) for op in instructions) or not all(map(is_library_call, works)):
        return ()
    try:
        return tuple(library_call_of(op)[0] for op in works)
    except XlaEmittersError:
        return ()


def _up_to_emission(options: CompileOptions) -> CompileOptions:
    return replace(options, fusion=None, stage="xla_gpu", record="none")


def _listed_call(op: HloOp, where: tuple[str, str]) -> ListedCall:
    target = op.properties.get("custom_call_target")
    opcode = "done" if is_wait(op) else op.opcode
    named = (*where, target.data.strip('"') if isinstance(target, StringAttr) else opcode)
    results = tuple(str(array_spec(leaf)) for leaf in leaf_types(op.result.type) if is_array(leaf))
    try:
        function, reason = library_call_of(op)[0], ""
    except XlaEmittersError as error:
        function, reason = None, error.message
    return ListedCall(*named, function, function is not None, reason, _written(written_at(op)), results)


def _written(place: Place | None) -> str:
    return str(place) if place is not None else ""


@dataclass(frozen=True)
class LeftOut:
    """An instruction that could not be compiled, and why. Without a name: the whole module."""

    name: str
    computation: str
    place: str
    reason: str

    def __str__(self) -> str:
        what = f"%{self.name} of computation '{self.computation}'" if self.name else "the whole module"
        return f"left out {what}{f' ({self.place})' if self.place else ''}: {self.reason}"


def compilable(module: ModuleOp, options: CompileOptions) -> tuple[ModuleOp, tuple[LeftOut, ...]]:
    """The module, if it can be compiled; else a module of those of its fusions that can be compiled, and what was left out.

    raises   the module's error, if nothing in it can be compiled; the error of the one fusion that was selected by name
    """
    try:
        compile_module(module, replace(options, stage="xla_gpu", record="none"))
    except (Unsupported, VerifyError) as error:
        if options.fusion is not None or is_one_kernel(entry_of(module)):
            raise
        apart = _apart(module)
        found, left = _compilable_fusions(apart, options)
        if not found:
            raise
        whole = LeftOut("", "", _written(error.place), error.message)
        return isolate_fusions(apart, found), left or (whole,)
    return module, ()


def kernels_of_one_device(module: ModuleOp, options: CompileOptions) -> tuple[ModuleOp, tuple[LeftOut, ...]]:
    """A module for one device of the fusions that can be compiled, of one for several; its collectives, and what else is no fusion, are
    left out without being named.

    raises  Unsupported for a module without such fusions
    """
    apart = _apart(module)
    found, left = _compilable_fusions(apart, options)
    if not found:
        raise Unsupported("no fusion of this module for several devices has code", stage="bundle")
    return isolate_fusions(apart, found), left


def _compilable_fusions(apart: ModuleOp, options: CompileOptions) -> tuple[list[FusionOp], tuple[LeftOut, ...]]:
    """The fusions that can be compiled, and everything else that cannot."""
    found, left = list[FusionOp](), list[LeftOut]()
    for computation, op in _steps(apart):
        place, reason = _written(written_at(op)), ""
        try:
            if isinstance(op, FusionOp):
                compile_module(isolate_fusions(apart, [op]), _up_to_emission(options))
                found.append(op)
            else:
                library_call_of(op)
        except (Unsupported, VerifyError) as error:
            reason = error.message
        if reason:
            left.append(LeftOut(op.instruction_name.data, computation.sym_name.data, place, reason))
    return found, tuple(left)
