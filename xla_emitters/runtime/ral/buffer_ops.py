"""Executes every op of `lmhlo` by NumPy: writes the value of its `hlo` op into its buffers.

    function_of(lmhlo.dot %x, %y -> %o)      f(x, y, o): o[...] = dot(x, y), at the sizes that x, y and o have

An op is executed at the sizes of its buffers. If its value depends on sizes, the op is rebuilt whenever they change, with these sizes in
its types, and its shape rule is checked: a broadcast of 1 against n is refused, and so is a product with unequal sizes. If the rule or
NumPy fails, the run ends with a DataError that names the op. Elementwise ops compare shapes at each call, which is cheaper than rebuilding
an op; ops that take sizes as values, transposes, concatenations, and reductions that NumPy folds check their operands themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np
from xdsl.ir import Block, Operation

from xla_emitters import library
from xla_emitters.dialects.hlo.base import Call, HloOp, RuleBroken, fault
from xla_emitters.dialects.hlo.called import fold
from xla_emitters.dialects.hlo.constant import ConstantOp
from xla_emitters.dialects.hlo.contractions import ConvolutionOp, DotOp
from xla_emitters.dialects.hlo.dynamic_shape_ops import DynamicBroadcastInDimOp, PrintOp, SizeOp
from xla_emitters.dialects.hlo.elementwise import ElementwiseOp, is_elementwise
from xla_emitters.dialects.hlo.reductions import ReduceOp
from xla_emitters.dialects.hlo.rule_ops import RuleOp
from xla_emitters.dialects.hlo.shape_ops import ConcatenateOp, TransposeOp
from xla_emitters.dialects.hlo.types import array_type, element_of, has_dynamic_dims, tuple_type
from xla_emitters.dialects.lmhlo import BufferOp, tensor_of
from xla_emitters.dtypes import Array
from xla_emitters.runtime.numpy_calls import BufferFunction
from xla_emitters.runtime.plain_ops import print_array

# Classes of ops that few programs have are imported where such an op is computed.
if TYPE_CHECKING:
    from xla_emitters.dialects.hlo.dynamic_slices import DynamicUpdateSliceOp


def value_of(op: HloOp, operands: Sequence[Any], call: Call) -> Any:
    """The value of an op of a program: of products and convolutions by `library`, of others by the op's class.

    Not the reference's products: they add one after the other, which the error bounds of kernels need but which is far slower.
    """
    return _evaluator(op, call)(operands)


def _evaluator(op: HloOp, call: Call) -> Callable[[Sequence[Any]], Any]:
    """A function from operands to the value; work that does not depend on the operands is done once."""
    if not isinstance(op, DotOp | ConvolutionOp | RuleOp) and op.opcode != "dynamic-conv":
        return lambda operands: op.evaluate(operands, call)
    from xla_emitters.dialects.hlo.control_meaning import library_evaluator
    from xla_emitters.dialects.hlo.dynamic_routines import DynamicConvOp
    from xla_emitters.dialects.hlo.library_calls import is_evaluated_by_library

    if isinstance(op, DotOp | ConvolutionOp) or is_evaluated_by_library(op):
        return library_evaluator(op, call)
    if op.opcode == "custom-call":
        once = cache(lambda: library_evaluator(op, call))  # a call that no library has is refused where it is reached
        return lambda operands: once()(operands)
    if not isinstance(op, DynamicConvOp):
        return lambda operands: op.evaluate(operands, call)
    found = dict[Any, Callable[[Sequence[Any]], Any]]()

    def convolve(operands: Sequence[Any]) -> Any:
        image, kernel, padding = operands
        key = image.shape, kernel.shape, padding.tobytes()
        if key not in found:
            found.clear()
            made = op.static(operands)
            try:
                made.verify_rule()
            except RuleBroken as error:
                raise fault(op, "; ".join((error.message, *error.details))) from None
            found[key] = library_evaluator(made, call)
        return found[key](operands[:2])

    return convolve


Evaluator: TypeAlias = Callable[[Sequence[Any]], Any]
"""Operands' values -> the op's value."""


def function_of(op: BufferOp, beside: Operation | None = None) -> BufferFunction:
    """The function that executes an op on buffers.

    beside   an op of the module with the computations that `op` applies; None: `op`
    """
    made, call = op.as_hlo(), _calls_beside(beside or op)
    if isinstance(made, DotOp):
        return multiplying(made)
    if isinstance(made, ConstantOp):
        held = made.evaluate((), call)  # once: a call only copies it

        def write(out: Array) -> None:
            _write(made, held, (out,))

        return write
    if isinstance(made, PrintOp):
        return partial(print_array, made.label.data, element_of(made.operands[0]).name)
    if made.opcode == "dynamic-update-slice":
        return _updating(cast("DynamicUpdateSliceOp", made))
    if made.opcode == "scatter":
        return _scattering(op, call)
    is_static = not any(has_dynamic_dims(tensor_of(operand.type)) for operand in op.operands)
    if is_elementwise(made) and (not is_static or made.ufunc() is not None):
        return _elementwise(made, len(op.inputs), call)
    if is_static or _needs_no_sizes(made):
        return _writing(made, len(op.inputs), call)
    return _sized(op, call)


def _calls_beside(beside: Operation) -> Call:
    found: Call | None = None

    def call(name: str, operands: Sequence[Any]) -> Any:
        nonlocal found
        if found is None:
            # Imported here: most ops apply no computation.
            from xla_emitters.runtime.reference.reference import call_beside

            found = call_beside(beside)
        return found(name, operands)

    return call


def multiplying(made: DotOp) -> BufferFunction:
    """A product by `library`, which takes any sizes: NumPy would repeat a factor's batch of one."""
    from xla_emitters.dialects.hlo.library_calls import library_call_of

    (name, config), pairing, element = library_call_of(made), made.pairing, element_of(made.result).name
    paired = list(
        zip((*pairing.lhs_batch, *pairing.lhs_contracting), (*pairing.rhs_batch, *pairing.rhs_contracting), strict=True)
    )

    def run(left: Array, right: Array, out: Array) -> None:
        if any(left.shape[one] != right.shape[other] for one, other in paired):
            sizes = f"{list(left.shape)} and {list(right.shape)} is {list(out.shape)}"
            raise fault(made, f"the sizes differ: no product of {sizes}")
        (out[...],) = library.call(name, config, (left, right), [(element, out.shape)])

    return run


def _needs_no_sizes(made: HloOp) -> bool:
    """Whether an op can compute its value, and refuse operands that do not fit, without the sizes that its types leave open."""
    match made:
        case SizeOp() | TransposeOp() | ConcatenateOp():
            return True
        case ReduceOp() if len(made.operands) == 2:
            held = element_of(made.operands[0]).numpy
            return fold(made, made.to_apply, np.zeros((), held), np.zeros(1, held)) is not None
        case _:
            return False


def _writing(made: HloOp, count: int, call: Call) -> BufferFunction:
    """The op with its own types."""
    broadcast = made if isinstance(made, DynamicBroadcastInDimOp) else None
    evaluate = broadcast.view if broadcast else _evaluator(made, call)

    def run(*buffers: Array) -> None:
        try:
            value = evaluate(buffers if broadcast else buffers[:count])
        except ValueError as error:
            raise fault(made, str(error)) from error
        _write(made, value, buffers[count:])

    return run


def _elementwise(made: HloOp, count: int, call: Call) -> BufferFunction:
    """All operands have the result's shape, or are scalars. One NumPy function writes into the buffer, without a temporary array."""
    function = made.ufunc() if isinstance(made, ElementwiseOp) else None
    scalars = [not cast(Any, operand.type).get_num_dims() for operand in made.operands]
    arrays = [number for number in range(count) if not scalars[number]]

    def run(*buffers: Array) -> None:
        shape = buffers[count].shape
        for number in arrays:
            if buffers[number].shape != shape:
                shapes = ", ".join(str(list(buffer.shape)) for buffer in buffers[:count])
                raise fault(made, f"the operands' sizes differ: {shapes}, where the result is {list(shape)}")
        if function is not None:
            function(*buffers[:count], out=buffers[count], casting="no")
            return
        buffers[count][...] = made.evaluate(buffers[:count], call)

    return run


def _updating(made: DynamicUpdateSliceOp) -> BufferFunction:
    """Copies the array, unless it is the result's buffer already, and writes the update into its window."""

    def run(array: Array, update: Array, *rest: Array) -> None:
        out = rest[-1]
        if update.ndim != array.ndim or any(map(int.__gt__, update.shape, array.shape)):
            raise fault(made, f"the update of {list(update.shape)} does not fit the operand of {list(array.shape)}")
        if out.shape != array.shape:
            raise fault(made, f"its value is of {list(array.shape)}, its result of {list(out.shape)}")
        if not _is_same(array, out):
            out[...] = array
        out[made.window((array, update, *rest[:-1]), update.shape)] = update

    return run


def _is_same(array: Array, out: Array) -> bool:
    """Whether two arrays of one shape are the same buffer."""
    return out is array or out.ctypes.data == array.ctypes.data


def _scattering(op: BufferOp, call: Call) -> BufferFunction:
    """Copies the arrays, unless they are the results' buffers already, and applies the updates."""
    from xla_emitters.dialects.hlo.gather_scatter import ScatterOp

    count, at_sizes = len(op.inputs), _sizes_cache(op, call)

    def run(*buffers: Array) -> None:
        made, _ = at_sizes(buffers)
        assert isinstance(made, ScatterOp)
        inputs, outputs = buffers[:count], buffers[count:]
        for array, out in zip(inputs, outputs, strict=False):
            if not _is_same(array, out):
                out[...] = array
        try:
            made.update(outputs, inputs, call)
        except ValueError as error:
            raise fault(made, str(error)) from error

    return run


def _sized(op: BufferOp, call: Call) -> BufferFunction:
    """The op with the sizes of its buffers in its types; rebuilt when they change."""
    count, at_sizes = len(op.inputs), _sizes_cache(op, call)

    def run(*buffers: Array) -> None:
        made, evaluate = at_sizes(buffers)
        _write(made, evaluate(buffers[:count]), buffers[count:])

    return run


def _sizes_cache(op: BufferOp, call: Call) -> Callable[[Sequence[Array]], tuple[HloOp, Evaluator]]:
    """A function that returns the op for the sizes of its buffers, and its evaluator; both are rebuilt when sizes change. Thread-safe."""
    held: tuple[list[tuple[int, ...]], HloOp, Evaluator] | None = None

    def at_sizes(buffers: Sequence[Array]) -> tuple[HloOp, Evaluator]:
        nonlocal held
        sizes, found = [buffer.shape for buffer in buffers], held
        if found is None or found[0] != sizes:
            made = _at(op, sizes)
            held = found = sizes, made, _evaluator(made, call)
        return found[1:]

    return at_sizes


def _at(op: BufferOp, sizes: Sequence[tuple[int, ...]]) -> HloOp:
    """The op at these sizes. raises DataError if its shape rule does not hold."""
    types = [
        array_type(tensor_of(value.type).element_type, shape) for value, shape in zip(op.operands, sizes, strict=True)
    ]
    count, on_tensors = len(op.inputs), op.as_hlo()
    results = types[count:]
    made = op.HLO.create(
        operands=Block(arg_types=types[:count]).args,
        result_types=[results[0] if len(results) == 1 else tuple_type(results)],
        properties=on_tensors.properties,
        attributes={**on_tensors.attributes},
        location=op.location,
    )
    made.parent = op.parent
    try:
        made.verify_rule()
    except RuleBroken as error:
        raise fault(made, "; ".join((error.message, *error.details))) from None
    return made


def _write(made: HloOp, value: Any, outputs: Sequence[Array]) -> None:
    values = cast("tuple[Any, ...]", value) if isinstance(value, tuple) else (value,)
    for array, output in zip(values, outputs, strict=True):
        if np.shape(array) != output.shape:
            raise fault(made, f"its value is of {list(np.shape(array))}, its result of {list(output.shape)}")
        output[...] = array
