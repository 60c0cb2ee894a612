"""The compiler: HLO text to a program, by the pass lists of `passes.py` in order.

    read_module -> GRAPH -> plan_program -> for each kernel: emit_fusion -> KERNEL -> all kernels in one module -> PTX

`compile()` does all of it, with the cache of programs in front; `compile_module()` starts from a module that was read.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from xla_emitters import plugins
from xla_emitters.device import Device
from xla_emitters.dialects.collector import collector_at_rest
from xla_emitters.dialects.context import context_of_thread, parse_ir
from xla_emitters.dialects.hlo.constant import ConstantOp
from xla_emitters.dialects.hlo.device_groups import devices_of
from xla_emitters.dialects.mlir_printer import print_ir
from xla_emitters.emitters.emit import emit_fusion, emitter_for, partition_fusion
from xla_emitters.emitters.emitter import Emitter
from xla_emitters.errors import InternalError, UsageError, VerifyError, XlaEmittersError
from xla_emitters.graph.computation_steps import PlannedKernel
from xla_emitters.graph.control_computations import kernel_sources
from xla_emitters.graph.entry import entry_of
from xla_emitters.graph.plan import ProgramPlan, plan_program
from xla_emitters.graph.view import STITCHED, FusionView, is_scheduled
from xla_emitters.pipelines.kept_programs import look_up, read_text
from xla_emitters.pipelines.options import CompileKeywords, CompileOptions
from xla_emitters.pipelines.parallel_kernels import compile_kernels
from xla_emitters.pipelines.pass_lists import kernel_rows, refuse_unknown_passes, rows_of
from xla_emitters.pipelines.passes import FOR_TOOLS, GRAPH, STAGES, TOOL_STAGES, line_info
from xla_emitters.pipelines.recorder import Observer, Recorder, hlo_listing
from xla_emitters.pipelines.tool_listings import ToolListing, functions_in, ptx_listing, record, sass_listing
from xla_emitters.program import Compiled, Kernel, LaunchDimensions, Program
from xla_emitters.rewrite.kernel_entry import entry_of_kernel, launch_of, sanitize
from xla_emitters.rewrite.kernel_pass import run_pass
from xla_emitters.rewrite.merge import merge_modules, new_names
from xla_emitters.rewrite.symbols import symbol_name
from xla_emitters.settings import Toolchain
from xla_emitters.text.hlo import parse_hlo, print_hlo
from xla_emitters.text.hlo.stack_frames import PythonLines
from xla_emitters.trace import Decision, Remark, Step

# What makes LLVM IR and PTX is imported at the stages that ask for them.
if TYPE_CHECKING:
    from xla_emitters.lowering.toolchain.toolchain import PtxCompiler
    from xla_emitters.pipelines.equal_kernels import EqualKernels

NO_KERNELS = "// no kernels\n"
"""Printed for a program without kernels at a stage that is not MLIR."""


@collector_at_rest()
def compile(source: str | Path | bytes, *, cache: bool = True, **given: Unpack[CompileKeywords]) -> Program:
    """Compiles HLO text: all fusions of ENTRY in order, or ENTRY's computation when it has none.

    source   path of an `.hlo` file, HLO text (anything with a newline), or the bytes of an HLO proto
    cache    whether a cached program may be returned; ignored where the verifier is to run
    given    the fields of `CompileOptions`: target, fusion, hero_rules, stage, record, verify, triton, line_info, tune
    raises   ParseError, VerifyError, Unsupported with the place in the HLO text; ToolError from the toolchain

    >>> compile("examples/gelu.hlo", stage="xla_gpu").kernels[0].launch.grid
    (24576, 1, 1)
    """
    options = CompileOptions(**given)
    if options.constants:
        raise UsageError("constants are written for programs (StableHLO); a kernel holds its own", stage="compile")
    if options.cpu_features:
        raise UsageError(
            "CPU features are for programs (StableHLO): only they become a CPU's machine code", stage="compile"
        )
    if options.mixed_precision:
        raise UsageError("mixed precision is for programs (StableHLO): a fusion has XLA's types", stage="compile")
    found = look_up(source, options, cache=cache)
    if found.program is not None:
        return found.program
    program = compile_module(parse_module(found.text, found.name), options)
    found.keep(program)
    return program


def read_module(source: str | Path | bytes) -> ModuleOp:
    """The module at the stage `hlo`, from a file or HLO text (a string with a newline). raises ParseError, VerifyError, OSError."""
    return parse_module(*read_text(source))


def parse_module(text: str, name: str) -> ModuleOp:
    """The module at the stage `hlo`, from HLO text. raises ParseError, VerifyError with the place in the text of this name"""
    module = parse_hlo(text, name)
    options, context = CompileOptions(), Context()
    for row in GRAPH:
        if row.wanted is None or row.wanted(options, module):
            row.make(options).apply(context, module)
        if row.stage == "hlo":
            break
    return module


def source_of(program: Program) -> ModuleOp:
    """The module of HLO that a program was compiled from; read again where it was kept as text."""
    assert isinstance(program.compilation, Compiled)
    return program.compilation.source or parse_module(program.hlo, f"<{program.name}>")


@collector_at_rest()
def compile_module(
    module: ModuleOp,
    options: CompileOptions | None = None,
    *,
    observers: Callable[[PlannedKernel], Observer] | None = None,
    graph_observer: Observer | None = None,
    llvm_ir: Callable[[str], None] | None = None,
) -> Program:
    """`compile` for a module of the `hlo` dialect, which is not changed.

    observers       makes the observer of each kernel's compilation
    graph_observer  is called after each pass on HLO
    llvm_ir         is called with the optimised LLVM IR of all kernels that PTX is made from
    """
    options = options or CompileOptions()
    if observers is not None:
        options = replace(options, jobs=1)  # observers see the live IR of every kernel
    if options.stage not in STAGES:
        raise UsageError(f"unknown stage '{options.stage}'", help=f"one of: {', '.join(STAGES)}")
    if options.rng_seed:
        raise UsageError("a seed of random numbers is for programs (StableHLO)", stage="compile")
    if options.entry:
        raise UsageError("an entry is chosen in StableHLO; HLO text has ENTRY", stage="compile", help="fusion=NAME")
    refuse_unknown_passes(options, rows_of("graph"), rows_of("kernel"), FOR_TOOLS)
    chip, wanted, context = options.device, STAGES.index(options.stage), context_of_thread()
    named = module.sym_name.data if module.sym_name else None
    graph = Recorder(named or "module", options.record, options.verify, graph_observer, hlo_listing)
    if wanted > STAGES.index("hlo"):
        options, remarks = with_splits(module, options)
        if remarks:
            graph.trace.steps.append(Step("tune", None, None, 0.0, {}, tuple(remarks)))
    text = print_hlo(module)
    planned_module = run_graph(module, options, graph, context)
    lines = PythonLines(module)
    plan = plan_program(planned_module, lines)
    _refuse_unknown_kernels(options, plan)
    if not options.tune:
        several = len(plan.kernels) > 1 or len(kernel_sources(module, options.fusion)) > 1
        options = replace(options, tune="auto" if several else "xla")
    recorders = [
        Recorder(planned.name, options.record, options.verify, observers(planned) if observers else None)
        for planned in plan.kernels
    ]
    for planned, recorder in zip(plan.kernels, recorders, strict=True):
        recorder.text("hlo", text, planned.view.computation, *_source_of(planned, lines))
    kernels: tuple[Kernel, ...] = ()
    if wanted < STAGES.index("partition"):
        code = text if options.stage == "hlo" else print_hlo(planned_module)
    else:
        # The tool takes longer to start than to work: it is started now and waits for the module.
        needs_tool = options.stage in ("ptx", "sass") and plan.kernels
        with start_tool(chip.architecture, options.toolchain) if needs_tool else nullcontext() as pending:
            code, kernels = _compile_kernels(plan, options, recorders, context, pending, llvm_ir)
    devices = devices_of(module) if options.fusion is None else 1
    return Program(
        name=named or (plan.kernels[0].name if plan.kernels else entry_of(module).sym_name.data),
        target=chip.name,
        parameters=plan.arrays.parameters,
        results=plan.arrays.results,
        compilation=Compiled(
            temporaries=plan.arrays.temporaries,
            steps=plan.with_code(kernels) if len(kernels) == len(plan.kernels) else (),
            kernels=kernels,
            calls=plan.calls,
            code=code,
            graph=graph.trace,
            traces=tuple(recorder.trace for recorder in recorders),
            source=module,
        ),
        stage=options.stage,
        hlo=text,
        fusion=options.fusion,
        left_out=_left_out(plan),
        devices=devices,
        shardings=_shardings_of(module) if devices > 1 else (),
    )


def _refuse_unknown_kernels(options: CompileOptions, plan: ProgramPlan) -> None:
    """raises UsageError for IR that takes the place of a kernel that the module does not have"""
    names = [sanitize(planned.name) for planned in plan.kernels]
    for each in options.replaced:
        entry = symbol_name(entry_of_kernel(parse_ir(each.text, each.name, locate=True)))
        if entry not in names:
            raise UsageError(
                f"{each.name}: its entry is @{entry}, and no kernel has this name",
                stage="compile",
                help=f"one of: {', '.join(names)}" if names else "",
            )


def _shardings_of(module: ModuleOp) -> tuple[str, ...]:
    from xla_emitters.dialects.hlo.shardings import shardings_of  # imported here: most modules are for one device

    return shardings_of(entry_of(module))


def start_tool(architecture: str, toolchain: Toolchain) -> AbstractContextManager[PtxCompiler]:
    """Starts what makes PTX, which takes longer to start than to work."""
    from xla_emitters.lowering.toolchain.toolchain import start_compile

    return start_compile(architecture, toolchain)


def _source_of(planned: PlannedKernel, lines: PythonLines) -> Iterator[Decision]:
    """The lines of Python that a kernel computes; nothing if the text has none."""
    if lines and (found := lines.data_of(planned.view.computation.instructions)):
        from xla_emitters.trace.python_source import source_decision  # imported here: few texts have lines of Python

        yield source_decision(found)


def _left_out(plan: ProgramPlan) -> tuple[str, ...]:
    """The constants of kernels whose data the HLO text omits."""
    views = [planned.view for planned in plan.kernels]
    inside = (op for view in views for around in (view.computation, *view.called) for op in around.instructions)
    found = (op for op in inside if isinstance(op, ConstantOp) and op.is_elided)
    return tuple(dict.fromkeys(f"%{op.instruction_name.data}" for op in found))


def run_graph(module: ModuleOp, options: CompileOptions, recorder: Recorder, context: Context) -> ModuleOp:
    """A copy of `module` after all passes of the list "graph": one kernel for each fusion of its ENTRY."""
    copy = module.clone()
    for row in rows_of("graph"):
        row.run(options, recorder, context, copy)
    return copy


def plan_module(module: ModuleOp, options: CompileOptions) -> ProgramPlan:
    """The kernels that `compile_module` makes of a module."""
    return plan_program(_after_graph(module, options))


def with_splits(module: ModuleOp, options: CompileOptions) -> tuple[CompileOptions, Sequence[Remark]]:
    """The options with the reductions to split, and remarks with the figures of those between which the model chose."""
    if options.splits is not None or options.tune != "price":
        return options, ()
    # Imported here, so that compilations without prices do not load the cost model.
    from xla_emitters.pipelines.tuned import with_cheapest_splits

    return with_cheapest_splits(module, options, _after_graph)


def _after_graph(module: ModuleOp, options: CompileOptions) -> ModuleOp:
    return run_graph(module, options, Recorder("", "none", False, None), context_of_thread())


def _compile_kernels(
    plan: ProgramPlan,
    options: CompileOptions,
    recorders: list[Recorder],
    context: Context,
    pending: PtxCompiler | None,
    llvm_ir: Callable[[str], None] | None,
) -> tuple[str, tuple[Kernel, ...]]:
    """Compiles every kernel up to the wanted stage: returns all of them as one text, and a step for each. Before "xla_gpu" no steps."""
    chip, stage = options.device, options.stage
    if not plan.kernels:
        return NO_KERNELS if stage in ("partition", *TOOL_STAGES) else print_ir(ModuleOp([])), ()
    pairs = list(zip(plan.kernels, recorders, strict=True))
    if stage == "partition":
        return "\n".join(_record_partition(planned, options, recorder) for planned, recorder in pairs), ()
    equal: EqualKernels | None = None
    if len(pairs) > 1 and _may_share(options, recorders):
        from xla_emitters.pipelines.equal_kernels import EqualKernels

        equal = EqualKernels()
    work = [partial(_compile_kernel, planned, options, recorder, context, equal) for planned, recorder in pairs]
    with compile_kernels(work, recorders, options) as shares:
        facts = shares.facts
        launches = [(sanitize(p.name), f.launch, f.shared_bytes) for p, f in zip(plan.kernels, facts, strict=True)]
        if pending is not None and pending.takes_more and shares.are_parts:
            renamed = new_names([of_kernel.symbols for of_kernel in facts])
            entries = [new.get(name, name) for new, (name, _, _) in zip(renamed, launches, strict=True)]
            if (code := shares.ptx(pending, renamed, entries)) is not None:
                return code, _kernels(plan, renamed, launches, code, chip.architecture)
        modules = shares.modules()
    code, renamed, ptx = code_of(modules, options, recorders, context, pending, llvm_ir)
    return code, _kernels(plan, renamed, launches, ptx, chip.architecture)


def code_of(
    modules: Sequence[ModuleOp],
    options: CompileOptions,
    recorders: Sequence[Recorder],
    context: Context,
    pending: PtxCompiler | None,
    llvm_ir: Callable[[str], None] | None = None,
) -> tuple[str, Sequence[Mapping[str, str]], str]:
    """The code at the wanted stage of kernels that all passes ran on.

    modules  one a kernel
    pending  the tool, for the stages that need it
    llvm_ir  is called with the LLVM IR that PTX is made from
    returns  all of them as one text, the new names of each one's functions, and PTX where the stage needs it, else ""
    """
    stage = options.stage
    if options.pipeline is not None and stage in TOOL_STAGES:
        _refuse_other_dialects(modules)
    if options.line_info and stage in TOOL_STAGES:
        for number, (own, recorder) in enumerate(zip(modules, recorders, strict=True)):
            row = line_info(number)
            recorder.run(row.make(options), row.stage, context, own)
    defined = [functions_in(own) for own in modules]
    module, renamed = merge_modules(modules)
    functions = [frozenset(new.get(name, name) for name in names) for names, new in zip(defined, renamed, strict=True)]
    ptx = ""
    if stage in TOOL_STAGES:
        first, *others = recorders
        for row in FOR_TOOLS:
            first.run(row.make(options), row.stage, context, module)
            for recorder in others:
                recorder.trace.steps.append(first.trace.steps[-1])
    match stage:
        case "ptx" | "sass":
            assert pending is not None
            start = time.perf_counter()
            if llvm_ir is not None or any(recorder.keeps_text for recorder in recorders):
                texts = pending.finish_both(module)
                code = ptx = texts.ptx
                (llvm_ir or str)(texts.llvm_ir)
                for recorder in recorders:
                    recorder.tool("llvm", texts.llvm_ir, texts.seconds / len(recorders))
                start += texts.seconds
            else:
                code = ptx = pending.finish(module)
            listing = ptx_listing(ptx, line_info=options.line_info)
            _record("ptx", listing, start, recorders, functions)
            if stage == "sass":
                start = time.perf_counter()
                listing = sass_listing(listing, options.device.architecture, options.toolchain)
                code = listing.text
                _record("sass", listing, start, recorders, functions)
        case "llvm":
            start = time.perf_counter()
            from xla_emitters.lowering.toolchain.toolchain import compile_to_llvm_ir

            code = compile_to_llvm_ir(module, options.device.architecture, options.toolchain)
            _record("llvm", ToolListing(code), start, recorders, functions)
        case _:
            recorded = recorders[0].trace[stage].ir if len(modules) == 1 else None
            code = recorded or print_ir(module)
    return code, renamed, ptx


def _kernels(
    plan: ProgramPlan,
    renamed: Sequence[Mapping[str, str]],
    launches: Sequence[tuple[str, LaunchDimensions, int]],
    ptx: str,
    architecture: str,
) -> tuple[Kernel, ...]:
    return tuple(
        Kernel(names.get(name, name), ptx, architecture, launch, shared, planned.arguments)
        for planned, names, (name, launch, shared) in zip(plan.kernels, renamed, launches, strict=True)
    )


def _may_share(options: CompileOptions, recorders: Sequence[Recorder]) -> bool:
    """Whether only the code of the kernels is wanted: all else that a compilation can give names what is in each kernel."""
    wants_more = options.verify or options.line_info or options.pipeline is not None or plugins.registered()
    return options.stage in ("ptx", "sass") and not wants_more and not any(each.is_watched for each in recorders)


def _compile_kernel(
    planned: PlannedKernel,
    options: CompileOptions,
    recorder: Recorder,
    context: Context,
    equal: EqualKernels | None = None,
) -> ModuleOp:
    """Compiles one kernel up to the wanted stage.

    equal  the module's kernels that are finished; None: each is compiled by itself
    """

    def run_passes() -> None:
        for row in kernel_rows(options):
            row.run(options, recorder, context, kernel)

    if recorder.keeps_text:
        _record_partition(planned, options, recorder)
    try:
        kernel = recorder.emission(partial(_emit, planned, options))
        if equal is not None:
            return equal.finish(kernel, run_passes, recorder.trace.steps)
        run_passes()
        if _plugins_of(planned, options):
            launch_of(kernel)
    except (InternalError, VerifyError) as error:
        # Our pass may fail on IR that a plugin made.
        if (plugin := _plugin_at_fault(planned, options)) is not None:
            said = f"{error.message}; without plugins this compiles"
            raise plugins.fault(type(plugin), f"{_kind_of(plugin)} '{plugin.name}'", said) from error
        error.details += tuple(f"with {plugin}" for plugin in plugins.registered())
        raise
    return kernel


def _plugins_of(planned: PlannedKernel, options: CompileOptions) -> list[Emitter | ModulePass]:
    """The plugins, and the outside passes of a pipeline, that take part in making a kernel, in order."""
    if not plugins.registered() and options.pipeline is None:
        return []
    emitter = [] if is_scheduled(planned.view) else [emitter_for(planned.view, options.device, options.hero_rules)]
    found = [*emitter, *(row.make(options) for row in kernel_rows(options))]
    return [each for each in found if plugins.is_outside(type(each))]


def _plugin_at_fault(planned: PlannedKernel, options: CompileOptions) -> Emitter | ModulePass | None:
    """The last plugin that takes part in making a kernel that fails; None where it fails without plugins too."""
    if not (found := _plugins_of(planned, options)):
        return None
    context = context_of_thread()
    try:
        if is_scheduled(planned.view):
            kernel = _emit(planned, options)
        else:
            emitter = emitter_for(planned.view, options.device, options.hero_rules, own=True)
            kernel = emitter.emit(planned.view, options.device)
        for kernel_pass in (row.make(options) for row in kernel_rows(options)):
            if not plugins.is_outside(type(kernel_pass)):
                run_pass(kernel_pass, context, kernel)
    except XlaEmittersError:
        return None
    return found[-1]


def _kind_of(plugin: Emitter | ModulePass) -> str:
    return "pass" if isinstance(plugin, ModulePass) else "emitter"


def _emit(planned: PlannedKernel, options: CompileOptions) -> ModuleOp:
    """The kernel of a fusion, at the stage "xla_gpu"."""
    choose = None
    # Imported here, so that compilations without prices load neither the loops of programs nor the cost model.
    if is_scheduled(planned.view):
        return _schedule(planned)[0](planned.view, options.device)
    if options.tune == "price":
        from xla_emitters.pipelines.tuned import cheapest_emitter

        choose = partial(cheapest_emitter, planned, options)
    elif options.tune == "auto":
        from xla_emitters.pipelines.kernel_rules import emitter_by_rule

        choose = partial(emitter_by_rule, planned, options)
    return emit_fusion(planned.view, options.device, options.hero_rules, choose)


def _schedule(planned: PlannedKernel) -> tuple[Callable[[FusionView, Device], ModuleOp], Callable[[FusionView], str]]:
    """For a kernel with a schedule of programs: what emits it, and what says as text what it does."""
    if STITCHED in planned.view.computation.attributes:
        from xla_emitters.pipelines.stitched_kernel import emit_stitched, rounds_of

        return emit_stitched, rounds_of
    from xla_emitters.pipelines.sorted_runs import emit_sorted_runs, runs_text

    return emit_sorted_runs, runs_text


def _refuse_other_dialects(modules: Sequence[ModuleOp]) -> None:
    """raises UsageError where the user's pipeline leaves ops that the external tools do not accept."""
    for op in (op for module in modules for op in module.walk() if op is not module):
        if not op.name.startswith(("llvm.", "nvvm.")):
            raise UsageError(
                f"the pipeline leaves '{op.name}', but PTX is made of the LLVM dialect",
                stage="compile",
                help="end it with xla-lower-to-llvm-gpu, or stop at --stage llvm-dialect",
            )


def _record_partition(planned: PlannedKernel, options: CompileOptions, recorder: Recorder) -> str:
    """The functions that the emitter cuts the fusion into, as text."""
    if is_scheduled(planned.view):
        text = _schedule(planned)[1](planned.view)
    else:
        text = str(partition_fusion(planned.view, options.device, options.hero_rules))
    recorder.text("partition", text)
    return text


def _record(
    stage: str, listing: ToolListing, start: float, recorders: Sequence[Recorder], functions: list[frozenset[str]]
) -> None:
    """Records what an external tool made of all kernels since `start`: each kernel's trace gets its text, and an equal part of its time."""
    seconds = (time.perf_counter() - start) / len(recorders)
    for recorder, own in zip(recorders, functions, strict=True):
        record(stage, listing, seconds, recorder, own)


def lower_for_tools(module: ModuleOp, options: CompileOptions, observe: Observer | None = None) -> None:
    """Runs the rows of FOR_TOOLS on a module of the stage "llvm-dialect".

    observe  called after each row
    """
    context = context_of_thread()
    for row in FOR_TOOLS:
        kernel_pass = row.make(options)
        run_pass(kernel_pass, context, module)
        if observe is not None:
            observe(kernel_pass.name, row.stage, module)


def keep_intermediates(program: Program, directory: Path, toolchain: Toolchain) -> None:
    """Compiles to PTX by llvmlite, or mlir-translate, llvm-link, opt and llc, and writes every intermediate file to `directory`.

    program   compiled with its IR recorded at "llvm-dialect"
    """
    from xla_emitters.lowering.toolchain.toolchain import compile_to_ptx_by_steps

    for kernel, trace in zip(program.kernels, program.traces, strict=True):
        ir = trace["llvm-dialect"].ir
        if ir is None:
            raise UsageError("the program was compiled without recording its IR", stage="toolchain")
        module = parse_ir(ir)
        lower_for_tools(module, CompileOptions(target=program.target))
        compile_to_ptx_by_steps(module, kernel.architecture, toolchain, directory / kernel.name)
