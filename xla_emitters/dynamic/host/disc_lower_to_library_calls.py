"""Lowers dots, convolutions, copies, `inc_ref` and similar ops to calls of the runtime's functions.

    lmhlo.dot %a, %b -> %o                       disc_ral.dispatch "ral_gemm" on "gpu"(%ctx, %stream, %a, %b, %o, %ta, %tb, %const)
    lmhlo.dynamic_conv %x, %w, %p -> %o          disc_ral.dispatch "ral_conv" on "gpu"(..., %x, %w, %p, %o) config array<i64: ...>
    lmhlo.copy %a -> %b                          disc_ral.dispatch "d2d" on "gpu"(..., %a, %b)
    lmhlo.copy or lmhlo.h2d, cpu to gpu          disc_ral.dispatch "h2d" on "gpu"(...), then "sync_on_stream"; likewise d2h
    lmhlo.topk, lmhlo.rng_bit_generator          disc_ral.dispatch "topk", "ral_rng" on their device
    lmhlo.print %x {label = "x"}                 disc_ral.dispatch "ral_print" on its device, config "x"
    lmhlo.rng, lmhlo.dynamic_rng                 disc_ral.dispatch "ral_rng_uniform", "ral_rng_normal" config array<i64: start, seed>
    %v = lmhlo.inc_ref %a(%n)                    %v = disc_ral.dispatch "inc_ref" on "gpu"(%ctx, %a, %n, %c4)

A dot becomes a gemm if its batch dimensions come first, in order, on both sides, and it has one free and one contracting dimension on
each: the two flags say which operands are transposed. Rows in several dimensions, with one matrix on the right, are one matrix. Other
dots stay `lmhlo` ops, which the runtime executes under their own names, as it does sorts, whose comparators are computations of
the module. %const says that the right operand is a constant of the program.
The metadata of a convolution: for each dimension (batch, features, spatial ...) its position in input, kernel (input features first), and
result; strides; dilations of the kernel; whether the kernel is a constant; if any, the groups of features and of the batch;
behind these, if any, the dilations of the image.
Source: seed document, "LowerToLibraryCallsV2"; docs/reference/4 1.3, 4.5.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, ModuleOp, StringAttr, i64
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from xla_emitters.dialects import lmhlo
from xla_emitters.dialects.disc_ral import DispatchOp
from xla_emitters.dialects.hlo.contractions import DotOp
from xla_emitters.dialects.hlo.dynamic_routines import DynamicConvOp
from xla_emitters.dialects.hlo.library_calls import NUMBERS_BEFORE, RANDOM_SEED
from xla_emitters.dialects.lmhlo import BufferOp, space_of, tensor_of
from xla_emitters.dialects.mlir import arith
from xla_emitters.dynamic.host.contexts import context_of, sizes_of, stream_of
from xla_emitters.rewrite.kernel_pass import KernelPass


class DiscLowerToLibraryCallsPass(KernelPass):
    name = "disc-lower-to-library-calls"

    def apply_to(self, op: ModuleOp) -> None:
        for inner in list(op.walk()):
            if isinstance(inner, lmhlo.IncRefOp):
                _inc_ref(inner)
            elif isinstance(inner, BufferOp) and (lower := LOWERINGS.get(inner.name)) is not None:
                if isinstance(inner.parent_op(), lmhlo.FusionOp):
                    self.skip(inner, "it is part of a fusion")
                elif (reason := lower(inner)) is not None:
                    self.skip(inner, reason)


def _replace(op: Operation, *made: Operation) -> None:
    for one in made:
        one.location = op.location
    Rewriter.replace_op(op, made, [] if not op.results else None)


def _device(op: BufferOp) -> str:
    return space_of(op.outputs[0].type) or "gpu"


def _call(
    op: BufferOp, name: str, extra: Sequence[SSAValue] = (), config: DenseArrayBase | StringAttr | None = None
) -> None:
    """A call of that function with the op's buffers, inputs first."""
    arguments = [context_of(op), stream_of(op), *op.operands, *extra]
    _replace(op, DispatchOp(name, _device(op), arguments, config=config))


def _is_constant(buffer: SSAValue) -> bool:
    return any(use.operation.name == "lmhlo.constant" for use in buffer.uses)


def _flag(op: Operation, holds: bool) -> SSAValue:
    made = arith.ConstantOp(IntegerAttr.from_bool(holds))
    made.location = op.location
    Rewriter.insert_op(made, InsertPoint.before(op))
    return made.result


# ------------------------------------------------------------------------------------------------------- calls by op


def _gemm(op: BufferOp) -> str | None:
    dot = op.as_hlo()
    assert isinstance(dot, DotOp)
    if dot.algorithm is not None:
        return f"the algorithm {dot.algorithm.data} is said"
    pairing = dot.pairing
    lhs, rhs = (tensor_of(buffer.type).get_num_dims() for buffer in op.inputs)
    batch = tuple(range(rhs - 2))
    if rhs < 2 or lhs < rhs or (lhs > rhs > 2):
        return "it is not a product of two matrices"
    if (pairing.lhs_batch, pairing.rhs_batch) != (batch, batch):
        return "its batch dimensions are not all but the last two"
    if len(pairing.lhs_contracting) != 1:
        return f"it has {len(pairing.lhs_contracting)} contracting dimensions"
    if lhs > rhs and pairing.lhs_contracting != (lhs - 1,):
        return "rows in several dimensions are not a matrix unless the last one is summed"
    flags = (
        pairing.lhs_contracting[0] != lhs - 1,
        pairing.rhs_contracting[0] != rhs - 2,
        _is_constant(op.inputs[1]),
    )
    _call(op, "ral_gemm", [_flag(op, flag) for flag in flags])
    return None


def _conv(op: BufferOp) -> str | None:
    conv = op.as_hlo()
    assert isinstance(conv, DynamicConvOp)
    window = conv.window.data.dims
    if any(along.reversed for along in window):
        return "it turns the kernel around"
    groups = [1 if count is None else count.value.data for count in (conv.feature_group_count, conv.batch_group_count)]
    in_image, in_kernel, in_result = conv.dim_labels.data.replace("->", "_").split("_")
    spatial = "".join(str(number) for number in range(len(window)))
    numbers = [in_image.index(label) for label in f"bf{spatial}"]
    numbers += [in_kernel.index(label) for label in f"io{spatial}"]
    numbers += [in_result.index(label) for label in f"bf{spatial}"]
    numbers += [along.stride for along in window] + [along.window_dilation for along in window]
    numbers.append(int(_is_constant(op.inputs[1])))
    spread = [along.base_dilation for along in window]
    if groups != [1, 1] or max(spread, default=1) != 1:
        numbers += groups
    if max(spread, default=1) != 1:
        numbers += spread
    _call(op, "ral_conv", config=DenseArrayBase.from_list(i64, numbers))
    return None


def _copy(op: BufferOp) -> str | None:
    source, target = ("h" if space_of(value.type) == "cpu" else "d" for value in (op.inputs[0], op.outputs[0]))
    name = f"{source}2{target}"
    device = "cpu" if name == "h2h" else "gpu"
    context, stream = context_of(op), stream_of(op)
    made: list[Operation] = [DispatchOp(name, device, [context, stream, *op.operands])]
    if name in ("h2d", "d2h"):
        made.append(DispatchOp("sync_on_stream", device, [context, stream]))
    _replace(op, *made)
    return None


def _topk(op: BufferOp) -> str | None:
    """The number of elements is the last size of the results."""
    if op.properties.get("largest") == IntegerAttr.from_bool(False):
        return "it takes the smallest"
    _call(op, "topk")
    return None


def _rng(op: BufferOp) -> str | None:
    algorithm = op.properties["algorithm"]
    assert isinstance(algorithm, StringAttr)
    _call(op, "ral_rng", config=algorithm)
    return None


def _random(op: BufferOp) -> str | None:
    """The two bounds (or mean and deviation) and the result; where its part of the generator's sequence starts, and the seed."""
    word, before, seed = (op.properties["distribution"], *map(op.attributes.get, (NUMBERS_BEFORE, RANDOM_SEED)))
    if not isinstance(before, IntegerAttr):
        return "it has no number: disc-number-random-ops"
    assert isinstance(word, StringAttr)
    config = DenseArrayBase.from_list(i64, [before.value.data, seed.value.data if isinstance(seed, IntegerAttr) else 0])
    arguments = [context_of(op), stream_of(op), *op.operands[:2], op.outputs[0]]
    _replace(op, DispatchOp(f"ral_{word.data}", _device(op), arguments, config=config))
    return None


def _print(op: BufferOp) -> str | None:
    label, device = op.properties["label"], space_of(op.operands[0].type) or "gpu"
    assert isinstance(label, StringAttr)
    _replace(op, DispatchOp("ral_print", device, [context_of(op), stream_of(op), *op.operands], config=label))
    return None


LOWERINGS: Mapping[str, Callable[[BufferOp], str | None]] = {
    "lmhlo.copy": _copy,
    "lmhlo.d2h": _copy,
    "lmhlo.dot": _gemm,
    "lmhlo.dynamic_conv": _conv,
    "lmhlo.h2d": _copy,
    "lmhlo.dynamic_rng": _random,
    "lmhlo.print": _print,
    "lmhlo.rng": _random,
    "lmhlo.rng_bit_generator": _rng,
    "lmhlo.topk": _topk,
}
"""Op -> the function that replaces it by a call; it returns why not, or None."""


def _inc_ref(op: lmhlo.IncRefOp) -> None:
    device = space_of(op.source.type) or "gpu"
    sizes = sizes_of(op, op.view.type, op.dynamic_sizes)
    made = DispatchOp("inc_ref", device, [context_of(op), op.source, *sizes], [op.view.type])
    made.location = op.location
    made.res[0].name_hint = op.view.name_hint
    Rewriter.replace_op(op, made)
