"""A fusion of HLO as a kernel by a schedule of programs, at the fusion's own sizes: what is common to all such schedules.

    ENTRY of a program ─PROGRAM_FUSED─> one lmhlo.fusion                                    on_buffers
                       ─PROGRAM_LOOPS─> gpu.func on buffers, one launch                     kernel_of_fusion
                       ─first rows of PROGRAM_KERNEL─> func.func @fused(!llvm.ptr, !llvm.ptr) {xla.entry}

What such a fusion may be, and how its schedule is chosen, is in `stitched_kernel` and `sorted_runs`. The kernel has the arguments of any
kernel of the fusion, one per operand and result, in this order, with their alignments and sizes; ids have ranges because the launch is
known. The kernel then goes through all passes of the list "kernel"; those on tensors find nothing to do.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    DictionaryAttr,
    FunctionType,
    IndexType,
    IntegerAttr,
    IntegerType,
    ModuleOp,
    StringAttr,
    UnitAttr,
    i32,
)
from xdsl.rewriter import InsertPoint, Rewriter

from xla_emitters.dialects.context import make_context
from xla_emitters.dialects.hlo.types import dims_of
from xla_emitters.dialects.isa import isa
from xla_emitters.dialects.lmhlo import BufferOp, FusionOp, buffer_type
from xla_emitters.dialects.mlir import arith, func, gpu
from xla_emitters.dialects.mlir import gpu as gpu_functions
from xla_emitters.dialects.ranges import RANGE_ATTR, range_attr
from xla_emitters.dynamic.host.steps_of_buffers import steps_of_buffers
from xla_emitters.emitters.entry_function import argument_attributes, data_layout
from xla_emitters.errors import InternalError, XlaEmittersError
from xla_emitters.graph.buffers import kernel_arguments
from xla_emitters.graph.view import FusionView
from xla_emitters.lowering.disc_lower_memrefs import NO_ALIAS, DiscLowerMemrefsPass
from xla_emitters.pipelines.options import CompileOptions
from xla_emitters.pipelines.pass_lists import rows_of
from xla_emitters.pipelines.passes import PassRow
from xla_emitters.pipelines.recorder import Recorder
from xla_emitters.program import Extents, LaunchDimensions
from xla_emitters.program.bind import bind
from xla_emitters.program.steps import ArrayPlace, Extent, Launch, View
from xla_emitters.rewrite.kernel_entry import DIMENSIONS, GRID, sanitize
from xla_emitters.rewrite.kernel_pass import run_pass
from xla_emitters.rewrite.notes import take_notes
from xla_emitters.runtime.numpy_platform import NumpyPlatform


def on_buffers(module: ModuleOp, options: CompileOptions, kind: str, what: str) -> FusionOp | str:
    """The only fusion on buffers, of this kind, that the passes of programs make of a module, which they change; or why there is none.

    what  such a fusion is, for the reason
    """
    try:
        with take_notes():
            for row in rows_of("program"):
                run_pass(row.make(options), make_context(), module)
    except XlaEmittersError as error:
        return error.message
    ops = [op for op in module.walk() if isinstance(op, FusionOp)]
    outside = [op for op in module.walk() if isinstance(op, BufferOp) and not isinstance(op.parent_op(), FusionOp)]
    outside = [op for op in outside if not isinstance(op, FusionOp)]
    if len(ops) == 1 and not outside and ops[0].kind_text == kind:
        return ops[0]
    kinds = [op.kind_text or "?" for op in ops] + [op.name for op in outside]
    return f"it is not {what}, but {', '.join(kinds) or 'nothing'}"


def kernel_of_fusion(module: ModuleOp, view: FusionView, options: CompileOptions) -> tuple[ModuleOp, LaunchDimensions]:
    """The kernel of a fusion on buffers: an entry on pointers, the form after xla-lower-tensors; and its launch.

    module  of `on_buffers`, with the attributes that choose the schedule; it is changed
    raises  InternalError if it needs more than one launch
    """
    with take_notes():
        recorder, context = Recorder(view.name, "none", options.verify, None), make_context()
        for row in rows_of("program-loops"):
            recorder.run(row.make(options), row.stage, context, module)
    launched, numbers = _only_launch(module, view)
    launch = LaunchDimensions(_triple(launched.grid), _triple(launched.block))
    kernel = _with_constants(module, launched)
    _take_all_arguments(kernel, view, numbers)
    _give_ranges(kernel, launch)
    kernel.attributes |= data_layout(view)
    kernel.location = view.location
    with take_notes():
        for row in _rows_to_pointers(options):
            run_pass(row.make(options), make_context(), kernel)
    (entry,) = (op for op in kernel.ops if isinstance(op, func.FuncOp))
    entry.arg_attrs = ArrayAttr(argument_attributes(argument) for argument in kernel_arguments(view))
    entry.attributes[GRID] = DenseArrayBase.from_list(i32, launch.grid)
    return kernel, launch


def _only_launch(module: ModuleOp, view: FusionView) -> tuple[Launch, list[int]]:
    """The one launch of a module on buffers of known sizes; of each array it takes, the number among arguments and results.

    raises  InternalError where there is no such launch
    """
    made = steps_of_buffers(module)
    sizes = [[size for size in place.shape if isinstance(size, int)] for place in made.parameters]
    evaluate = NumpyPlatform(made.ops).evaluate
    bound = bind(made.steps, made.parameters, made.results, sizes, made.constants, evaluate)
    viewed = dict[int, int]()
    for step in bound.steps:
        if isinstance(step, View):
            viewed[step.target.slot] = viewed.get(step.source.slot, step.source.slot)
    arrays = [viewed.get(place.slot, place.slot) for place in (*made.parameters, *bound.results)]
    launches = [step for step in bound.steps if isinstance(step, Launch)]
    taken = [viewed.get(a.slot, a.slot) for step in launches for a in step.arguments if isinstance(a, ArrayPlace)]
    if len(launches) != 1 or not set(taken) <= set(arrays) or len(set(arrays)) < len(arrays):
        raise InternalError(f"fusion %{view.name} became {len(launches)} launches, not one", stage="stitch")
    return launches[0], [arrays.index(slot) for slot in taken]


def _triple(extents: Sequence[Extent]) -> Extents:
    x, y, z = (extent for extent in extents if isinstance(extent, int))
    return x, y, z


def _with_constants(module: ModuleOp, launch: Launch) -> ModuleOp:
    """A copy of a launch's kernel in which the numbers that it takes are constants; its indices have 32 bits where that is enough."""
    (function,) = (
        op for op in module.walk() if isinstance(op, gpu_functions.FuncOp) and op.sym_name.data == launch.kernel
    )
    holder = function.parent_op()
    assert holder is not None
    copy = holder.clone()
    (kernel,) = (op for op in copy.walk() if isinstance(op, gpu_functions.FuncOp))
    block, kept = kernel.body.blocks[0], list[int]()
    for number, (argument, value) in enumerate(zip(list(block.args), launch.arguments, strict=False)):
        if not isinstance(value, int):
            kept.append(number)
            continue
        assert isa(argument.type, IntegerType) or isa(argument.type, IndexType)
        made = arith.ConstantOp(IntegerAttr(value, argument.type))
        Rewriter.insert_op(made, InsertPoint.at_start(block))
        argument.replace_all_uses_with(made.result)
        block.erase_arg(argument)
    if kernel.arg_attrs is not None:
        kernel.arg_attrs = ArrayAttr([kernel.arg_attrs.data[number] for number in kept])
    kernel.function_type = FunctionType.from_lists([kernel.function_type.inputs.data[n] for n in kept], [])
    return ModuleOp([copy])


def _rows_to_pointers(options: CompileOptions) -> Sequence[PassRow]:
    """The rows of PROGRAM_KERNEL up to the one after which no buffers are left; later rows are the same as for fusions."""
    rows = rows_of("program-kernel")
    names = [row.make(options).name for row in rows]
    return rows[: names.index(DiscLowerMemrefsPass.name) + 1]


def _take_all_arguments(kernel: ModuleOp, view: FusionView, arguments: Sequence[int]) -> None:
    """Gives a kernel one argument for each operand and each result of the fusion, in order.

    arguments  for each of its present arguments, the number of its array
    """
    (function,) = (op for op in kernel.walk() if isinstance(op, gpu_functions.FuncOp))
    block, types = function.body.block, [*view.parameter_types, *view.result_types]
    old = list(block.args[: len(arguments)])
    for number, ir_type in enumerate(types):
        given = old[arguments.index(number)] if number in arguments else None
        found = buffer_type(ir_type.element_type, [prod(dims_of(ir_type))], "gpu") if given is None else given.type
        made = block.insert_arg(found, number)
        if given is not None:
            made.name_hint = given.name_hint
            given.replace_all_uses_with(made)
    for argument in old:
        block.erase_arg(argument)
    function.function_type = FunctionType.from_lists(list(block.arg_types[: len(types)]), [])
    no_alias = DictionaryAttr({NO_ALIAS: UnitAttr()})
    function.arg_attrs = ArrayAttr([no_alias] * len(types))
    function.sym_name = StringAttr(sanitize(view.name))


def _give_ranges(kernel: ModuleOp, launch: LaunchDimensions) -> None:
    for op in kernel.walk():
        if isinstance(op, gpu.ThreadIdOp | gpu.BlockIdOp):
            extents = launch.block if isinstance(op, gpu.ThreadIdOp) else launch.grid
            extent = extents[DIMENSIONS.index(op.dimension.data.value)]
            op.attributes[RANGE_ATTR] = range_attr(0, extent - 1)
