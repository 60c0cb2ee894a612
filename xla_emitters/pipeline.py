"""THE MAP: how a fusion becomes PTX, straight down, and the one list that says in which order passes run and why.

    HLO text ─parse_hlo─> hlo ─emit_fusion─> xla_gpu ─PASSES─> llvm-dialect ─compile_to_ptx─> ptx

`compile()` is the whole compiler. No other file knows the order of passes; a stage (`--stage scf`) is the boundary after one of the rows.
Source: seed document, "Compilation pipeline"; spec/2 3.1 "Exact order"; the stages are those of `docs/walk.md`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute

from xla_emitters.device import DEFAULT_DEVICE, Device, device
from xla_emitters.dialects.context import make_context, parse_ir
from xla_emitters.dialects.hlo.types import dims_of, element_of, minor_to_major
from xla_emitters.emitters.emit import emit_fusion, partition_fusion
from xla_emitters.emitters.partitioner import sanitize
from xla_emitters.errors import ParseError, ToolError, UsageError
from xla_emitters.fusions.buffers import buffers_of
from xla_emitters.fusions.program_plan import PlannedKernel, ProgramPlan, computation_of, plan_program
from xla_emitters.fusions.view import view_of
from xla_emitters.graph.flatten_parameters import flatten_parameters
from xla_emitters.graph.fuse_entry import fuse_entry_for_program
from xla_emitters.graph.insert_copies import insert_copies_for_program
from xla_emitters.graph.split_reductions import split_for_program
from xla_emitters.graph.split_results import split_results_for_program
from xla_emitters.graph.split_scatters import split_scatters_for_program
from xla_emitters.hlo_text import parse_hlo, print_hlo
from xla_emitters.kernels.kernel_entry import launch_of, shared_bytes
from xla_emitters.lowering.convert_complex_to_standard import ConvertComplexToStandardPass
from xla_emitters.lowering.convert_float_nvidia import ConvertFloatNvidiaPass
from xla_emitters.lowering.convert_index_type import ConvertIndexTypePass
from xla_emitters.lowering.convert_math_to_libdevice import ConvertMathToLibdevicePass
from xla_emitters.lowering.convert_pure_call_ops import ConvertPureCallOpsPass
from xla_emitters.lowering.convert_scf_to_cf import ConvertScfToCfPass
from xla_emitters.lowering.expand_float_ops import ExpandFloatOpsPass
from xla_emitters.lowering.lower_affine import LowerAffinePass
from xla_emitters.lowering.lower_tensors import LowerTensorsPass
from xla_emitters.lowering.lower_to_llvm_gpu import LowerToLlvmGpuPass
from xla_emitters.lowering.merge_pointers_to_same_slice import MergePointersToSameSlicePass
from xla_emitters.lowering.simplify_affine import SimplifyAffinePass
from xla_emitters.lowering.toolchain import (
    compile_to_llvm_ir,
    compile_to_ptx_by_steps,
    start_compile,
    tools_fingerprint,
)
from xla_emitters.program import Argument, ArraySpec, Kernel, Program
from xla_emitters.rewrite.kernel_pass import KernelPass
from xla_emitters.rewrite.recorder import Observer, Recorder
from xla_emitters.runtime.program_cache import key_of, open_cache
from xla_emitters.trace import Trace
from xla_emitters.transforms.canonicalize import CanonicalizePass
from xla_emitters.transforms.cse import CsePass
from xla_emitters.transforms.erase_dead_functions import EraseDeadFunctionsPass
from xla_emitters.transforms.flatten_tensors import FlattenTensorsPass
from xla_emitters.transforms.inline import InlinePass
from xla_emitters.transforms.loop_invariant_code_motion import LoopInvariantCodeMotionPass
from xla_emitters.transforms.lower_xla_loops_to_scf import LowerXlaLoopsToScfPass
from xla_emitters.transforms.lower_xla_to_scf import LowerXlaToScfPass
from xla_emitters.transforms.optimize_loops import OptimizeLoopsPass
from xla_emitters.transforms.peel_loops import PeelLoopsPass
from xla_emitters.transforms.propagate_slice_indices import PropagateSliceIndicesPass
from xla_emitters.transforms.simplify_arith import SimplifyArithPass
from xla_emitters.transforms.symbol_dce import SymbolDcePass
from xla_emitters.transforms.unswitch_loops import UnswitchLoopsPass
from xla_emitters.transforms.vectorize_loads_stores import VectorizeLoadsStoresPass


@dataclass(frozen=True)
class Row:
    """One pass of the pipeline: how to make it for a device, why it stands here, and the stage that ends with it."""

    make: Callable[[Device], KernelPass]
    reason: str
    stage: str | None = None


def _row(make: Callable[[], KernelPass], reason: str, stage: str | None = None) -> Row:
    return Row(lambda _: make(), reason, stage)


PASSES: tuple[Row, ...] = (
    # One function: subgraphs go into the entry, so that everything after sees the whole kernel.
    _row(SimplifyArithPass, "annotates ranges and decides comparisons before anything is moved"),
    _row(CanonicalizePass, "folds what the elemental emitter wrote naively"),
    _row(CsePass, "one load per element, one copy of each index"),
    _row(EraseDeadFunctionsPass, "functions of subgraphs that the hero replaced would block inlining"),
    _row(LowerXlaToScfPass, "combining over a warp becomes calls, which the inliner must count"),
    _row(InlinePass, "single callers and movers of data go into the entry; a function called twice stays"),
    _row(CanonicalizePass, "call boundaries are gone: fold across them"),
    _row(CsePass, "arguments that became equal", "inlined"),
    # Loops become explicit, tensors one-dimensional.
    _row(PeelLoopsPass, "only the last iteration is checked, the others have accesses that vectorise"),
    _row(LowerXlaLoopsToScfPass, "a loop over a map's symbols with its bounds check inside", "scf"),
    _row(PropagateSliceIndicesPass, "callees learn which buffer each tensor is, while arguments still correspond"),
    _row(FlattenTensorsPass, "an index now says where an element lies, which vectorising needs"),
    _row(LoopInvariantCodeMotionPass, "bounds checks that do not depend on the loop leave it, so that ..."),
    _row(UnswitchLoopsPass, "... the branch can go outside: accesses then stand directly in the loop body"),
    _row(LoopInvariantCodeMotionPass, "what the branch held back", "flat"),
    Row(lambda d: VectorizeLoadsStoresPass(d.name), "contiguous, aligned accesses of a loop become one", "vectorized"),
    _row(OptimizeLoopsPass, "straight-line code hides latency; it must know the vectors' loops are short"),
    _row(CanonicalizePass, "the induction variable is constant in each copy"),
    _row(CsePass, "copies of one computation", "unrolled"),
    # Tensors leave: pointers, integers, LLVM.
    _row(ConvertPureCallOpsPass, "calls are no longer free to move: their tensors become memory"),
    Row(lambda d: LowerTensorsPass(d.name), "extract is a load, insert is a store in place"),
    _row(ConvertComplexToStandardPass, "complex numbers become their two parts, which all that follows knows"),
    _row(MergePointersToSameSlicePass, "two names for one buffer become one; then noalias is true"),
    _row(CanonicalizePass, "results of tensor type left empty loops and branches"),
    _row(CsePass, "addresses shared by loads and stores"),
    _row(SimplifyArithPass, "ranges decide what is left of the bounds checks"),
    _row(CanonicalizePass, "branches on decided conditions"),
    _row(SimplifyAffinePass, "maps become arithmetic, unsigned where ranges allow"),
    _row(LowerAffinePass, "maps whose sign is not known, with the signed fix-up"),
    _row(ConvertIndexTypePass, "index arithmetic in the width that the module needs: 32 bits nearly always"),
    _row(LoopInvariantCodeMotionPass, "partial sums of addresses leave loops"),
    _row(SymbolDcePass, "functions that were inlined everywhere"),
    _row(CsePass, "index arithmetic is explicit only now"),
    Row(lambda d: ConvertFloatNvidiaPass(d.name), "instructions for eight-bit floats, where the chip has them"),
    _row(ExpandFloatOpsPass, "integers for narrow floats, f32 tanh and erf as polynomials; libdevice takes the rest"),
    _row(ConvertMathToLibdevicePass, "the rest of `math` calls libdevice; narrow floats go through f32"),
    _row(CsePass, "conversions to f32 of one value"),
    _row(ConvertScfToCfPass, "LLVM has branches only"),
    Row(lambda d: LowerToLlvmGpuPass(d.name), "one dialect for the tools to take", "llvm-dialect"),
)

# Stages in order; `partition` and `hlo` come before emission, `llvm` and `ptx` after the last pass (conventions.md).
STAGES: tuple[str, ...] = (
    "hlo",
    "partition",
    "xla_gpu",
    *(row.stage for row in PASSES if row.stage),
    "llvm",
    "ptx",
)
EXECUTABLE_STAGES: tuple[str, ...] = ("hlo", "xla_gpu", *(row.stage for row in PASSES if row.stage))


def compile(
    source: str | Path,
    *,
    target: str = DEFAULT_DEVICE,
    fusion: str | None = None,
    stage: str = "ptx",
    record: str = "stages",
    verify: bool = False,
    cache: bool = True,
    hero_rules: str = "current",
) -> Program:
    """Compiles HLO text: all fusions of ENTRY in order, or ENTRY's computation when it has none.

    source   path of an `.hlo` file, or HLO text (anything with a newline)
    target   a device ("h200"), an architecture ("sm_90"), or a file with XLA's description of a GPU
    fusion   only the fusion instruction of this name
    stage    stop after it; before "ptx" the kernels' PTX is ""
    record   what the trace keeps of the IR: "none", "stages" (the boundaries), or "passes" (all)
    verify   run the IR verifier after every pass; then the cache is left aside
    cache    whether a program that was compiled before may be the answer
    hero_rules  by which an emitter is chosen: "current" as today's XLA, "seed" as the seed document
    raises   ParseError, VerifyError, Unsupported with the place in the HLO text; ToolError from the toolchain

    >>> compile("examples/gelu.hlo", stage="xla_gpu").kernels[0].launch.grid
    (24576, 1, 1)
    """
    text, name = read_text(source)
    store = open_cache() if cache and not verify else None
    key = _cache_key(text, name, target, fusion, stage, record, hero_rules) if store else None
    if store is None or key is None:
        module = _parsed(text, name)
        return compile_module(
            module, target=target, fusion=fusion, stage=stage, record=record, verify=verify, hero_rules=hero_rules
        )
    if (program := store.get(key)) is None:
        module = _parsed(text, name)
        program = compile_module(
            module, target=target, fusion=fusion, stage=stage, record=record, hero_rules=hero_rules
        )
        store.put(key, program)
    return program


def _cache_key(
    text: str, name: str, target: str, fusion: str | None, stage: str, record: str, hero_rules: str
) -> str | None:
    """What a program depends on; None where a tool is missing, which is for the compilation to say."""
    try:
        tools = tools_fingerprint() if stage in ("llvm", "ptx") else ""
    except ToolError:
        return None
    return key_of(text, name, repr(device(target)), str(fusion), stage, record, hero_rules, own_fingerprint(), tools)


@lru_cache
def own_fingerprint() -> str:
    """Changes whenever a file of this package does."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def read_text(source: str | Path) -> tuple[str, str]:
    """HLO text, and the name of where it stands, for messages. raises ParseError for what is no text, OSError."""
    if isinstance(source, str) and "\n" in source:
        return source, "<hlo>"
    path = Path(source)
    try:
        return path.read_bytes().decode(), str(source)
    except UnicodeDecodeError as error:
        raise ParseError(f"{path} is not text: byte {error.start} is not UTF-8", stage="hlo.parse") from error


def read_module(source: str | Path) -> ModuleOp:
    """The `hlo` module of a file, or of HLO text (a string with a newline). raises ParseError, VerifyError, OSError."""
    return _parsed(*read_text(source))


def _parsed(text: str, name: str) -> ModuleOp:
    """The module, whose ENTRY takes arrays: one parameter for each array of a tuple."""
    module = parse_hlo(text, name)
    flatten_parameters(module)
    return module


def compile_module(
    module: ModuleOp,
    *,
    target: str = DEFAULT_DEVICE,
    fusion: str | None = None,
    stage: str = "ptx",
    record: str = "stages",
    verify: bool = False,
    observers: Callable[[PlannedKernel], Observer] | None = None,
    hero_rules: str = "current",
) -> Program:
    """`compile` for a module of the `hlo` dialect, which is left as it was.

    observers  makes the observer of each kernel's compilation
    """
    if stage not in STAGES:
        raise UsageError(f"unknown stage '{stage}'", help=f"one of: {', '.join(STAGES)}")
    chip = device(target)
    plan = plan_module(module, fusion, hero_rules)
    text = print_hlo(module)
    kernels: list[Kernel] = []
    traces: list[Trace] = []
    for planned in plan.kernels:
        recorder = Recorder(planned.name, record, verify, observers(planned) if observers else None)
        recorder.text("hlo", lambda: text, computation_of(planned.source))
        kernels += _compile_kernel(planned, chip, stage, recorder, hero_rules)
        traces.append(recorder.trace)
    return Program(
        name=module.sym_name.data if module.sym_name else plan.kernels[0].name,
        target=chip.name,
        parameters=tuple(array_spec(type) for type in plan.parameters),
        results=tuple(array_spec(type) for type in plan.results),
        temporaries=tuple(array_spec(type) for type in plan.temporaries),
        kernels=tuple(kernels),
        traces=tuple(traces),
        hlo=text,
        fusion=fusion,
    )


def plan_module(module: ModuleOp, fusion: str | None = None, hero_rules: str = "current") -> ProgramPlan:
    """The kernels of a module, or of its fusion instruction of this name, after what one kernel cannot do has been split."""
    parts = fuse_entry_for_program(module, fusion)
    # By the seed document's rules one kernel makes slices of any sizes.
    if hero_rules != "seed":
        parts = split_results_for_program(*parts)
    return plan_program(*insert_copies_for_program(*split_scatters_for_program(*split_for_program(*parts))))


def _compile_kernel(
    planned: PlannedKernel, chip: Device, stage: str, recorder: Recorder, hero_rules: str
) -> list[Kernel]:
    """Straight down, as far as `stage`. Before "xla_gpu" there is no kernel."""
    wanted = STAGES.index(stage)
    ptx = ""
    # The tool takes longer to start than to work: it starts now and waits for the module.
    with start_compile(chip.architecture) if stage == "ptx" else nullcontext() as pending:
        if wanted >= STAGES.index("partition"):
            recorder.text("partition", lambda: str(partition_fusion(planned.source, chip, hero_rules)))
        if wanted < STAGES.index("xla_gpu"):
            return []
        context = make_context()
        kernel = recorder.emission(lambda: emit_fusion(planned.source, chip, hero_rules))
        for row in PASSES[: rows_until(stage)]:
            recorder.run(row.make(chip), row.stage, context, kernel)
        if stage == "llvm":
            recorder.tool("llvm", lambda: compile_to_llvm_ir(kernel, chip.architecture))
        if pending is not None:
            ptx = recorder.tool("ptx", lambda: pending.finish(kernel))
    arguments = kernel_arguments(planned)
    return [Kernel(sanitize(planned.name), ptx, chip.architecture, launch_of(kernel), shared_bytes(kernel), arguments)]


def rows_until(stage: str) -> int:
    """How many rows of PASSES lead to `stage`."""
    ends = [number for number, row in enumerate(PASSES, 1) if row.stage == stage]
    if ends:
        return ends[0]
    return len(PASSES) if stage in ("llvm", "ptx") else 0


def kernel_arguments(planned: PlannedKernel) -> tuple[Argument, ...]:
    """The pointers that the kernel takes: its operands, then its results."""
    view = view_of(planned.source)
    slots = (*planned.operands, *planned.results)
    types = (*view.parameter_types, *view.result_types)
    return tuple(
        Argument(
            kind=slot.kind,
            index=slot.index,
            array=array_spec(type),
            bytes=buffer.dereferenceable,
            alignment=buffer.align,
            slice_index=buffer.slice_index,
            written=buffer.is_written,
        )
        for slot, type, buffer in zip(slots, types, buffers_of(view), strict=True)
    )


def array_spec(type: Attribute) -> ArraySpec:
    """The logical array of a tensor type of the `hlo` dialect. raises Unsupported for types that nothing stores."""
    return ArraySpec(element_of(type).name, dims_of(type), minor_to_major(type))


def keep_intermediates(program: Program, directory: Path) -> None:
    """Goes the second way to PTX, by mlir-translate, llvm-link, opt and llc, and leaves every file of it in `directory`.

    program   compiled with its IR recorded at "llvm-dialect"
    """
    for kernel, trace in zip(program.kernels, program.traces, strict=True):
        ir = trace["llvm-dialect"].ir
        if ir is None:
            raise UsageError("the program was compiled without recording its IR", stage="toolchain")
        compile_to_ptx_by_steps(parse_ir(ir), kernel.architecture, directory / kernel.name)
