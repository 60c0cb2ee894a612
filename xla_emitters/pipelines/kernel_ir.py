"""A kernel that is given as IR of some stage, in a file of its own: the passes go on from there.

    compile_kernel_ir(text, "kernel.mlir", CompileOptions(stage="ptx"))  ->  Program of one kernel

The IR says what is needed: its entry has the launch, and its arguments are the arrays. Which stage it is of, its ops say; IR between two
stages counts as the earlier one, whose passes leave alone what is done. Nothing says what the kernel should compute, so the program has
no reference: `explore/check/kernel_stages` compares the stages with the IR that was given.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext

from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, DictionaryAttr, IntegerAttr, ModuleOp, TensorType
from xdsl.ir import Attribute

from xla_emitters.dialects.context import context_of_thread, parse_ir
from xla_emitters.dialects.isa import isa
from xla_emitters.dialects.mlir import func, llvm
from xla_emitters.dialects.xla_gpu import (
    LoopOp,
    PredicatedExtractOp,
    PredicatedInsertOp,
    PureCallOp,
    ShuffleReduceOp,
)
from xla_emitters.dtypes import dtype_of
from xla_emitters.errors import UsageError
from xla_emitters.pipelines.compiler import code_of, start_tool
from xla_emitters.pipelines.options import CompileOptions
from xla_emitters.pipelines.pass_lists import EMITTED, kernel_rows
from xla_emitters.pipelines.passes import EXECUTABLE_STAGES, PassRow
from xla_emitters.pipelines.recorder import Recorder
from xla_emitters.program import Argument, Arrays, ArraySpec, Compiled, Kernel, Program, steps
from xla_emitters.rewrite.kernel_entry import INVARIANT, SLICE_INDEX, entry_of_kernel, launch_of, shared_bytes
from xla_emitters.rewrite.kernel_pass import refusal
from xla_emitters.rewrite.symbols import symbol_name

_GONE_BEHIND_SCF = (LoopOp, PredicatedExtractOp, PredicatedInsertOp, PureCallOp, ShuffleReduceOp)
ALIGN, DEREFERENCEABLE = "llvm.align", "llvm.dereferenceable"


def stage_of(module: ModuleOp) -> str:
    """The stage that a kernel's IR is of: the earliest that it can be."""
    entry = entry_of_kernel(module)
    if isinstance(entry, llvm.FuncOp):
        return EXECUTABLE_STAGES[-1]
    ops = list(module.walk())
    if any(isinstance(op, _GONE_BEHIND_SCF) for op in ops):
        return EMITTED
    types = [argument.type for argument in entry.body.blocks[0].args]
    is_flat = all(len(each.get_shape()) <= 1 for each in types if isa(each, TensorType[Attribute]))
    if is_flat and any(op.name.startswith("vector.transfer") for op in ops):
        return "vectorized"
    return "flat" if is_flat and any(op.name.startswith("scf.") for op in ops) else "scf"


def compile_kernel_ir(text: str, name: str, options: CompileOptions) -> Program:
    """A program of the one kernel, which takes the arrays that it only reads and returns those that it may write.

    text     IR of a stage, as `--stage` prints it
    raises   ParseError, VerifyError with the place; UsageError for a stage before the text's; as `compile`
    """
    module = parse_ir(text, name, locate=True)
    stage, launch, entry = stage_of(module), launch_of(module), entry_of_kernel(module)
    kernel, arguments = symbol_name(entry) or "kernel", tuple(_arguments(entry))
    recorder, context = Recorder(kernel, options.record, options.verify, None), context_of_thread()
    recorder.read(stage, module)
    rows, architecture = _rows_after(stage, options), options.device.architecture
    with start_tool(architecture, options.toolchain) if options.stage in ("ptx", "sass") else nullcontext() as pending:
        for row in rows:
            recorder.run(row.make(options), row.stage, context, module)
        shared = shared_bytes(module)
        code, (renamed,), ptx = code_of([module], options, [recorder], context, pending)
    made = Kernel(renamed.get(kernel, kernel), ptx, architecture, launch, shared, arguments)
    read, written = (
        tuple(each.array for each in arguments if each.written == is_written) for is_written in (False, True)
    )
    arrays = Arrays(read, written, ())
    places = tuple(arrays.place(each.slot) for each in arguments)
    return Program(
        name=kernel,
        target=options.device.name,
        parameters=arrays.parameters,
        results=arrays.results,
        compilation=Compiled(
            steps=(steps.Launch(made.name, launch.grid, launch.block, 0, places),),
            kernels=(made,),
            code=code,
            traces=(recorder.trace,),
        ),
        stage=options.stage,
    )


def _rows_after(stage: str, options: CompileOptions) -> Sequence[PassRow]:
    """The passes that a kernel of this stage has before it. raises UsageError where the wanted stage is behind it"""
    rows = kernel_rows(options)
    if stage == EMITTED:
        return rows
    ends = [number for number, row in enumerate(rows, 1) if row.stage == stage]
    if not ends:
        raise UsageError(f"the IR is of stage {stage}, which is behind {options.stage}", stage="compile")
    return rows[ends[-1] :]


def _arguments(entry: func.FuncOp | llvm.FuncOp) -> Iterator[Argument]:
    """The arrays of a kernel. Those that it may write are results, one for each slice of memory."""
    given: Sequence[DictionaryAttr] = entry.arg_attrs.data if entry.arg_attrs is not None else ()
    results, parameters = dict[int, int](), 0
    for number, argument in enumerate(entry.body.blocks[0].args):
        attributes: Mapping[str, Attribute] = given[number].data if given else {}
        if (spec := _array(argument.type, attributes)) is None:
            is_pointer = isinstance(argument.type, llvm.LLVMPointerType)
            wanted = "how many bytes it has is not known" if is_pointer else "a kernel's arrays are tensors or pointers"
            help = (
                f"give it the attribute {DEREFERENCEABLE}"
                if is_pointer
                else "disc-lower-memrefs makes pointers of a gpu.func's buffers"
            )
            raise refusal("kernel", entry, f"argument {number} of the kernel is {argument.type}; {wanted}", help)
        index, alignment = attributes.get(SLICE_INDEX), attributes.get(ALIGN)
        buffer = index.value.data if isinstance(index, IntegerAttr) else number
        aligned = alignment.value.data if isinstance(alignment, IntegerAttr) else 1
        if INVARIANT in attributes:
            yield Argument("parameter", parameters, spec, spec.bytes, aligned, buffer, False)
            parameters += 1
        else:
            result = results.setdefault(buffer, len(results))
            yield Argument("result", result, spec, spec.bytes, aligned, buffer, True)


def _array(of: Attribute, attributes: Mapping[str, Attribute]) -> ArraySpec | None:
    """An argument's array; memory without a type is bytes. None where its size is not known"""
    if isa(of, TensorType[Attribute]):
        encoding, rank = of.encoding, len(of.get_shape())
        order = encoding.get_values() if isinstance(encoding, DenseIntOrFPElementsAttr) else reversed(range(rank))
        return ArraySpec(dtype_of(of.element_type).name, of.get_shape(), tuple(map(int, order)))
    size = attributes.get(DEREFERENCEABLE) if isinstance(of, llvm.LLVMPointerType) else None
    return ArraySpec("u8", (size.value.data,), (0,)) if isinstance(size, IntegerAttr) else None
