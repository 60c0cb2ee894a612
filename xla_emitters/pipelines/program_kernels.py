"""The kernels of a program with unknown sizes, and the host program that launches them; all are made on demand.

    lowering = GpuLowering(fused, options)                  buffers and fusions, the module at the stage `fused`
    lowering.at("loops"), lowering.at("host"), ...    each stage's module
    lowering.run(arrays, "llvm-dialect")              its steps, with kernels on the CPU executor; also "llvm", "ptx"
    lowering.kernels, lowering.ptx                    for a GPU

A kernel computes indices with 32 bits. Where the sizes of a launch need more (`rewrite/index_bounds`), the host launches the same kernel
with 64-bit indices, which is compiled when it is first needed. All kernels of one width are one PTX module.
Source: seed document, "DHLO2Executable"; docs/reference/4 3.6 (trap 4), 3.7.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from xdsl.dialects.builtin import MemRefType, ModuleOp, StringAttr
from xdsl.ir import SSAValue

from xla_emitters.dialects.collector import collector_at_rest
from xla_emitters.dialects.context import make_context
from xla_emitters.dialects.lmhlo import WatchOp
from xla_emitters.dialects.mlir import gpu
from xla_emitters.dialects.mlir_printer import print_ir
from xla_emitters.dtypes import Array
from xla_emitters.dynamic.loops.schedule import SCHEDULE
from xla_emitters.lowering.toolchain.toolchain import compile_to_llvm_ir, compile_to_ptx, start_compile
from xla_emitters.pipelines.options import CompileOptions
from xla_emitters.pipelines.pass_lists import program_rows, rows_of
from xla_emitters.pipelines.passes import BY_LLVM, FOR_TOOLS, TOOL_STAGES, PassRow, line_info
from xla_emitters.pipelines.recorder import Observer, Recorder
from xla_emitters.pipelines.tool_listings import ToolListing, functions_in, ptx_listing, record, sass_listing
from xla_emitters.program import Extents, LaunchDimensions
from xla_emitters.rewrite.index_bounds import IndexBounds
from xla_emitters.rewrite.index_width import NARROW
from xla_emitters.rewrite.kernel_entry import shared_bytes
from xla_emitters.rewrite.merge import merge_modules
from xla_emitters.trace import Trace

# What runs programs is imported where one runs: most compilations only print.
if TYPE_CHECKING:
    from xla_emitters.program.executable import Executable
    from xla_emitters.runtime.loaded import LoadedProgram
    from xla_emitters.runtime.numpy_platform import Kernels
    from xla_emitters.runtime.ral.host_program import HostProgram
    from xla_emitters.runtime.ral.simt_kernels import SimtKernels
    from xla_emitters.support.forked import Forked

NO_KERNELS = "// no kernels\n"
_LOOPS = "loops"


@dataclass(frozen=True)
class LoweredKernel:
    """One kernel of a program.

    name          of its entry
    schedule      how its loops are written: "loop", "row1", "column" ...
    block         threads of a block in x, y, z; the number of blocks is computed by the host
    parameters    types of its parameters, in order: buffers, then numbers
    shared_bytes  static shared memory of one block
    architecture  target of its code, e.g. "sm_90"
    written       the parameters, by number, whose memory it writes
    """

    name: str
    schedule: str
    block: Extents
    parameters: tuple[str, ...]
    shared_bytes: int
    architecture: str
    written: frozenset[int]


class GpuLowering:
    """A program's kernels and host program; see the file's head.

    fused    the module at the stage `fused`, which is not changed
    options  of the compilation
    observe  is called after each pass on the whole program
    raises   Unsupported for what no kernel computes
    """

    @collector_at_rest()
    def __init__(self, name: str, fused: ModuleOp, options: CompileOptions, observe: Observer | None = None) -> None:
        self.options = options
        apart = options.jobs > 1 and observe is None
        self._recorder = Recorder(name, options.record, options.verify, observe, apart=apart)
        self._stages = dict[str, ModuleOp]()
        self._loaded: dict[str, LoadedProgram | HostProgram] = {}
        self._read = dict[tuple[str, bool], Any]()
        self._fused = fused
        # Watch ops are inserted after the loops' passes: the passes on the host do not know them.
        is_watched = any(isinstance(op, WatchOp) for op in fused.walk())
        own = None if is_watched else program_rows(options)[1]
        self._rows = own or rows_of("program-loops")
        self._host_rows = () if is_watched or own else rows_of("program-host")
        for stage, module in self._run_rows(self._recorder, self._rows, fused.clone()):
            if stage != _LOOPS:  # made again for those that ask: it is large, and no code is made from it
                self._stages[stage] = module
        self._host_trace: Forked[Trace] | None = None
        if self._recorder.is_apart and not options.verify and not options.constants:
            from xla_emitters.support.forked import Forked  # imported here: it loads multiprocessing

            self._host_trace = Forked(self._recorded_host)
        elif self._recorder.is_watched or options.constants:
            self._make_host()

    def _run_rows(
        self, recorder: Recorder, rows: Sequence[PassRow], module: ModuleOp
    ) -> Iterator[tuple[str, ModuleOp]]:
        """Runs passes on the whole program; yields the module at the end of each stage, which later passes change."""
        context = make_context()
        for row in rows:
            row.run(self.options, recorder, context, module)
            if row.stage:
                yield row.stage, module

    def _make_host(self) -> None:
        """Runs the passes on the host program: only code ahead of time is made from it."""
        if self._host_rows:
            self._stages |= self._run_rows(self._recorder, self._host_rows, self._stages["kernels"].clone())
            self._host_rows = ()

    def _recorded_host(self) -> Trace:
        """The trace of the passes on the host program."""
        self._recorder = Recorder(self._recorder.trace.name, self.options.record, verify=False, observe=None)
        self._make_host()
        return self._recorder.trace

    @property
    def before_kernels(self) -> Trace:
        """The trace of the passes on the whole program that have run."""
        self._recorder.settle()
        if self._host_trace is not None:
            self._recorder.trace.steps += self._host_trace.answer().steps
            self._host_trace = None
        return self._recorder.trace

    @cached_property
    def trace(self) -> Trace:
        """The same, and where texts are recorded all that is left up to the stage of the compilation.

        Of the passes on kernels it has the last stage, with all kernels together.
        """
        found = self.before_kernels
        if self._recorder.keeps_text and self.options.stage not in (_LOOPS, "kernels", "host"):
            self._recorder.read("llvm-dialect", self.at("llvm-dialect"))
            self._recorder.settle()
        return found

    @cached_property
    def steps(self) -> Executable:
        """What launches the kernels. raises like `steps_of_buffers`"""
        return self._steps_at("kernels")

    def _steps_at(self, stage: str) -> Executable:
        from xla_emitters.dynamic.host.steps_of_buffers import steps_of_buffers
        from xla_emitters.runtime.ral.constants_file import constants_in

        return steps_of_buffers(self.at(stage), constants_in(self.options.constants))

    # -------------------------------------------------------------------------------------------------- kernels

    @cached_property
    def _functions(self) -> dict[str, gpu.FuncOp]:
        """The kernels on buffers, in the order of first launches."""
        module = self._stages.get("kernels") or self._stages["host"]
        found = (op for op in module.walk() if isinstance(op, gpu.FuncOp))
        return {function.sym_name.data: function for function in found}

    @cached_property
    def kernels(self) -> tuple[LoweredKernel, ...]:
        """All kernels, in the order of first launches."""
        return tuple(self._kernel(name, function) for name, function in self._functions.items())

    def _kernel(self, name: str, function: gpu.FuncOp) -> LoweredKernel:
        x, y, z = function.known_block_size.get_values() if function.known_block_size else (1, 1, 1)
        parameters = tuple(str(ir_type) for ir_type in function.function_type.inputs)
        shared = shared_bytes(function)
        schedule = function.attributes.get(SCHEDULE)
        how = schedule.data if isinstance(schedule, StringAttr) else ""
        written = frozenset(number for number, value in enumerate(function.body.blocks[0].args) if _is_written(value))
        return LoweredKernel(name, how, (x, y, z), parameters, shared, self.options.device.architecture, written)

    def size_of(self, name: str) -> int:
        """How many ops a kernel has, on buffers."""
        return sum(1 for _ in self._functions[name].walk())

    def _on_buffers(self, name: str) -> ModuleOp:
        holder = self._functions[name].parent_op()
        assert holder is not None
        return ModuleOp([holder.clone()])

    @cached_property
    def _bounds(self) -> dict[str, IndexBounds]:
        return {name: IndexBounds(function) for name, function in self._functions.items()}

    def exceeds(self, name: str, launch: LaunchDimensions, values: Sequence[Any]) -> bool:
        """Whether 32 bits may be too few for the indices of a launch."""
        return self._bounds[name].exceed_32_bits(launch, values)

    def safe_up_to(self, kernel: LoweredKernel) -> int:
        """Largest numbers of a launch, including blocks, for which 32-bit indices are enough: `IndexBounds.safe_up_to`."""
        return self._bounds[kernel.name].safe_up_to(kernel.block)

    @cached_property
    def _code(self) -> dict[tuple[str, bool], ModuleOp]:
        return {}

    @collector_at_rest()
    def lowered(self, name: str, *, is_wide: bool = False, observe: Observer | None = None) -> ModuleOp:
        """A kernel in the LLVM dialect.

        observe  called after each pass; not called for a kernel that is lowered already
        """
        if (name, is_wide) not in self._code:
            self._lower(name, Recorder(name, "none", self.options.verify, observe), is_wide=is_wide)
        return self._code[name, is_wide]

    def _lower(self, name: str, recorder: Recorder, *, is_wide: bool = False) -> ModuleOp:
        """Runs the passes on a kernel; the first result is kept."""
        module, context = self._on_buffers(name), make_context()
        if not is_wide:
            module.attributes["dlti.dl_spec"] = NARROW
        if recorder.keeps_text:
            recorder.read("kernels", module)
        for row in rows_of("program-kernel"):
            row.run(self.options, recorder, context, module)
        self._code.setdefault((name, is_wide), module)
        return module

    def _lowered(self, names: Iterable[str], *, is_wide: bool = False) -> list[ModuleOp]:
        """Copies of kernels in the LLVM dialect."""
        return [self.lowered(name, is_wide=is_wide).clone() for name in names]

    @cached_property
    def ptx(self) -> str:
        """All kernels as one PTX module, with indices of 32 bits. raises ToolError as `compile_to_ptx`"""
        return self._ptx(self._functions)

    @cached_property
    def wide_ptx(self) -> str:
        """The same with indices of 64 bits: for launches whose sizes need them."""
        return self._ptx(self._functions, is_wide=True)

    def ptx_of(self, names: Collection[str]) -> str:
        """These kernels as one PTX module, with indices of 32 bits. raises ToolError as `compile_to_ptx`"""
        # That of all kernels, if it is made already.
        return self.__dict__.get("ptx") or self._ptx([name for name in self._functions if name in names])

    @collector_at_rest()
    def _ptx(self, names: Collection[str], *, is_wide: bool = False) -> str:
        """The PTX of the kernels of these names; with `.loc` if the options ask for line information."""
        if not names:
            return NO_KERNELS
        module, _ = self._merged(self._lowered(names, is_wide=is_wide), has_lines=self.options.line_info)
        return compile_to_ptx(module, self.options.device.architecture, self.options.toolchain)

    @collector_at_rest()
    def _llvm_ir(self, *, is_wide: bool) -> str:
        """All kernels as LLVM IR after LLVM's passes: what their PTX is made from."""
        if not self._functions:
            return NO_KERNELS
        module, _ = self._merged(self._lowered(self._functions, is_wide=is_wide), has_lines=False)
        return compile_to_llvm_ir(module, self.options.device.architecture, self.options.toolchain)

    def _merged(self, modules: Sequence[ModuleOp], *, has_lines: bool) -> tuple[ModuleOp, list[frozenset[str]]]:
        """Modules in the LLVM dialect, which are used up, as one for the tools; and for each the functions that only it uses."""
        context = make_context()
        for number, module in enumerate(modules if has_lines else ()):
            line_info(number).make(self.options).apply(context, module)
        defined = [functions_in(module) for module in modules]
        module, renamed = merge_modules(modules)
        for row in FOR_TOOLS:
            row.make(self.options).apply(context, module)
        return module, [
            frozenset(new.get(name, name) for name in names) for names, new in zip(defined, renamed, strict=True)
        ]

    def _sass(self, ptx: ToolListing) -> ToolListing:
        if not self._functions:
            return ToolListing(NO_KERNELS)
        return sass_listing(ptx, self.options.device.architecture, self.options.toolchain)

    def kernel_traces(
        self, stage: str, in_full: Collection[str] | None = None, names: Collection[str] | None = None
    ) -> tuple[Trace, ...]:
        """For each kernel its passes from buffers on, with the HLO instructions that each line of code comes from.

        stage    the last one: "llvm-dialect", "ptx" or "sass"; PTX and SASS are those of all these kernels, with indices of 32 bits, and
                 only the lines of the kernel's own code have origins
        in_full  the kernels with the IR after each pass: of the others there are the stages; None: all
        names    of the kernels; None: all
        raises   ToolError as `compile_to_ptx` and `sass_listing`
        """

        def wanted(name: str) -> str:
            every = "rewrites" if self.options.record == "rewrites" else "passes"
            return every if in_full is None or name in in_full else "stages"

        chosen = [name for name in self._functions if names is None or name in names]
        recorders = [Recorder(name, wanted(name), self.options.verify, None) for name in chosen]
        modules = [self._lower(name, recorder) for name, recorder in zip(chosen, recorders, strict=True)]
        if not modules or stage not in TOOL_STAGES:
            return tuple(recorder.trace for recorder in recorders)
        module, own = self._merged([module.clone() for module in modules], has_lines=True)
        with start_compile(self.options.device.architecture, self.options.toolchain) as tool:
            texts = tool.finish_both(module)
        listings = dict[str, ToolListing]()
        if stage != "llvm":
            listings["ptx"] = ptx_listing(texts.ptx, line_info=True)
        if stage == "sass":
            listings["sass"] = self._sass(listings["ptx"])
        for recorder, functions in zip(recorders, own, strict=True):
            recorder.tool("llvm", texts.llvm_ir, texts.seconds / len(recorders))
            for made, listing in listings.items():
                record(made, listing, 0.0, recorder, functions)
        return tuple(recorder.trace for recorder in recorders)

    # --------------------------------------------------------------------------------------------------- stages

    def at(self, stage: str) -> ModuleOp:
        """The module of a stage, from "loops" to "llvm-dialect"."""
        if stage == "host":
            self._make_host()
        if stage not in self._stages:
            made = self._loops() if stage == _LOOPS else None
            if made is None:
                modules = self._lowered(self._functions)
                made = merge_modules(modules)[0] if modules else ModuleOp([])
            self._stages[stage] = made
        return self._stages[stage]

    @collector_at_rest()
    def _loops(self) -> ModuleOp | None:
        """The module at the stage "loops"; None where the caller's own passes have no such stage."""
        recorder = Recorder("", "none", self.options.verify, None)
        stages = self._run_rows(recorder, self._rows, self._fused.clone())
        return next((module for stage, module in stages if stage == _LOOPS), None)

    def code(self, stage: str) -> str:
        """The printed text of a stage: IR, LLVM IR, PTX, SASS. raises ToolError like `compile_to_ptx` and `sass_listing`"""
        match stage:
            case "llvm":
                return self._llvm_ir(is_wide=False)
            case "ptx":
                return self.ptx
            case "sass":
                return self._sass(ptx_listing(self.ptx, line_info=self.options.line_info)).text
            case _:
                return print_ir(self.at(stage))

    def loaded(self, stage: str) -> LoadedProgram | HostProgram:
        """The program's steps, with kernels at that stage; for the stage "host", what its host program in IR does."""
        if stage not in self._loaded:
            # Steps are made of buffers, which a host program that the caller's passes made no longer has.
            if stage == "host" or program_rows(self.options)[1] is not None:
                from xla_emitters.runtime.ral.host_program import HostProgram

                self._loaded[stage] = HostProgram(self.at("host"), self._simt_kernels(stage))
            else:
                self._loaded[stage] = self.watched(stage)
        return self._loaded[stage]

    def watched(
        self,
        stage: str,
        watch: Callable[..., None] | None = None,
        kernels: Callable[[Kernels], Kernels] = lambda found: found,
    ) -> LoadedProgram:
        """The program's steps, with kernels at that stage.

        watch    the function that `lmhlo.watch` ops call: (number, values ...)
        kernels  wraps the object that launches kernels
        """
        from xla_emitters.runtime.loaded import LoadedProgram
        from xla_emitters.runtime.numpy_platform import NumpyPlatform

        made = self._steps_at(stage if stage == _LOOPS else "kernels")
        return LoadedProgram(made, NumpyPlatform(made.ops, kernels(self._simt_kernels(stage)), watch))

    def _simt_kernels(self, stage: str) -> SimtKernels:
        from xla_emitters.runtime.ral.simt_kernels import SimtKernels

        if stage in BY_LLVM:
            return SimtKernels(lambda name, is_wide: self.read_back(stage, name, is_wide=is_wide), self.exceeds)
        if stage != "llvm-dialect":
            return SimtKernels(lambda name, _: self._on_buffers(name))
        return SimtKernels(
            lambda name, is_wide: self.lowered(name, is_wide=is_wide),
            self.exceeds,
        )

    def read_back(self, stage: str, name: str, *, is_wide: bool = False) -> ModuleOp:
        """A kernel's LLVM IR, or PTX, as IR that the executor runs. raises ParseError, Unsupported with the place in the text"""
        from xla_emitters.text import llvm_ir, ptx  # imported here: other stages need no readers

        file = f"{self._recorder.trace.name}.{'ptx' if stage == 'ptx' else 'll'}"
        if (key := (stage, is_wide)) not in self._read:
            if stage == "llvm":
                self._read[key] = llvm_ir.read_llvm_ir(self._llvm_ir(is_wide=is_wide), file)
            else:
                self._read[key] = ptx.read_ptx(self.wide_ptx if is_wide else self.ptx, file)
        module = self._read[key]
        entry = ptx.entry_named(module, name)
        if stage == "llvm":
            return llvm_ir.raise_kernel(module, entry)
        # LLVM writes `.ptr` for each pointer, so other parameters of 64 bits are numbers.
        numbers = [number for number, parameter in enumerate(entry.parameters) if not parameter.is_pointer]
        return ptx.raise_kernel(module, entry, numbers=numbers)

    def run(self, arrays: Sequence[Array], stage: str) -> list[Array]:
        """The results for these arguments at a stage from "loops" to "ptx". raises DataError, ExecutionError"""
        return self.loaded(stage).run_on_garbage(arrays)


def _is_written(memory: SSAValue) -> bool:
    """Whether an op writes an array, or a part of it under another name."""
    for use in memory.uses:
        op = use.operation
        if op.results:
            if "atomic" in op.name or any(isinstance(r.type, MemRefType) and _is_written(r) for r in op.results):
                return True
        elif "store" in op.name or "write" in op.name or op.name == "memref.copy":
            return True
    return False
