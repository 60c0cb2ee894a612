"""The `xla_gpu` dialect's ops that name a function: pure_call, and two that combine values with it.

    %c = xla_gpu.pure_call @f(%a, %i) {noinline} : (tensor<4xf32>, index) -> f32
    %q:2 = xla_gpu.shuffle_reduce(%a, %b) to 16 combiner=@argmax : f32, i32
    %u:2 = xla_gpu.reduce(%x, %y) inits(%a, %b) dimensions=[0, 2] combiner=@argmax : tensor<..>, tensor<..> to tensor<8xf32>, tensor<8xi32>

A combiner takes the accumulated values, then those to combine with them, and returns the new ones: (f32, i32, f32, i32) -> (f32, i32).
`shuffle_reduce` combines each lane's values with those of the lane `d` above it, for d = max_distance, max_distance / 2, ... 1; after it
the first lane of each run of 2 * max_distance lanes has the combined values of the run.
`reduce` combines the elements along the dimensions named. An experimental op of today's XLA; it is read, never emitted here.
Import the ops from `xla_gpu.py`.
Source: docs/reference/1 1.1-1.3.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import func as upstream  # a callee that xDSL read is one too
from xdsl.dialects.builtin import (
    DenseArrayBase,
    FlatSymbolRefAttrConstr,
    IntegerAttr,
    SymbolRefAttr,
    TensorType,
    i64,
)
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import (
    AnyAttr,
    RangeOf,
    RangeVarConstraint,
    SameVariadicOperandSize,
    base,
    eq,
    prop_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.traits import Pure, SymbolUserOpInterface
from xdsl.utils.exceptions import VerifyException

from xla_emitters.dialects.attributes import symbol
from xla_emitters.dialects.isa import isa
from xla_emitters.dialects.mlir.directives import DerivedRange
from xla_emitters.dialects.mlir.function_syntax import called_function
from xla_emitters.dialects.op_definition import op_definition
from xla_emitters.dialects.quick_op import QuickOp
from xla_emitters.dialects.xla_gpu.loops import comma_separated


def _verify_called(
    name: SymbolRefAttr, callee: upstream.FuncOp, inputs: Sequence[Attribute], outputs: Sequence[Attribute]
):
    wanted = callee.function_type
    if wanted.inputs.data != tuple(inputs) or wanted.outputs.data != tuple(outputs):
        raise VerifyException(
            f"@{name.root_reference.data} is ({comma_separated(wanted.inputs.data)}) -> "
            f"({comma_separated(wanted.outputs.data)}), but is called as "
            f"({comma_separated(inputs)}) -> ({comma_separated(outputs)})"
        )


# ---- pure_call --------------------------------------------------------------------------------------------------------------------------


class _CalleeIsFunc(SymbolUserOpInterface):
    """The callee is a `func.func` of the call's type."""

    def verify(self, op: Operation) -> None:
        assert isinstance(op, PureCallOp)
        callee = called_function(op, op.callee_attr, upstream.FuncOp, "function")
        if callee is not None:
            _verify_called(op.callee_attr, callee, op.operand_types, op.result_types)


@op_definition
class PureCallOp(QuickOp):
    """`%c = xla_gpu.pure_call @f(%a, %i) {noinline} : (tensor<4xf32>, index) -> f32`: a call without side effects."""

    name = "xla_gpu.pure_call"

    arguments = var_operand_def()
    callee_attr = prop_def(FlatSymbolRefAttrConstr, prop_name="callee")
    outs = var_result_def()

    assembly_format = "$callee `(` $arguments `)` attr-dict `:` functional-type($arguments, $outs)"

    traits = traits_def(Pure(), _CalleeIsFunc())

    def __init__(
        self,
        callee: str,
        arguments: Sequence[SSAValue | Operation],
        result_types: Sequence[Attribute],
    ):
        super().__init__(operands=[arguments], result_types=[result_types], properties={"callee": symbol(callee)})

    @property
    def callee(self) -> str:
        """The name of the function called, without `@`."""
        return self.callee_attr.root_reference.data


# ---- combiners --------------------------------------------------------------------------------------------------------------------------


class _CombinerFits(SymbolUserOpInterface):
    """The combiner is a `func.func` from the accumulated values and those to combine, of the given types, to the new values."""

    def verify(self, op: Operation) -> None:
        assert isinstance(op, ShuffleReduceOp | ReduceOp)
        combiner = called_function(op, op.combiner_attr, upstream.FuncOp, "function")
        if combiner is not None:
            types = op.combined_types
            _verify_called(op.combiner_attr, combiner, (*types, *types), types)


class CombiningOp(QuickOp):
    """An op that names a function which combines values."""

    combiner_attr = prop_def(FlatSymbolRefAttrConstr, prop_name="combiner")

    traits = traits_def(Pure(), _CombinerFits())

    @property
    def combiner(self) -> str:
        """The name of the combining function, without `@`."""
        return self.combiner_attr.root_reference.data


@op_definition
class ShuffleReduceOp(CombiningOp):
    """`%q:2 = xla_gpu.shuffle_reduce(%a, %b) to 16 combiner=@argmax : f32, i32`: combines values across the lanes of a warp.

    max_distance  the distance of the first partner lane; then half of it, down to 1
    """

    name = "xla_gpu.shuffle_reduce"

    arguments = var_operand_def(RangeVarConstraint("T", RangeOf(AnyAttr())))
    max_distance_attr = prop_def(IntegerAttr.constr(type=eq(i64)), prop_name="max_distance")
    outs = var_result_def(DerivedRange("T", list))

    assembly_format = (
        "`(` $arguments `)` `to` $max_distance `combiner` `` `=` `` $combiner attr-dict (`:` type($arguments)^)?"
    )

    def __init__(
        self,
        arguments: Sequence[SSAValue | Operation],
        combiner: str,
        max_distance: int,
    ):
        super().__init__(
            operands=[arguments],
            result_types=[[SSAValue.get(argument).type for argument in arguments]],
            properties={"combiner": SymbolRefAttr(combiner), "max_distance": IntegerAttr(max_distance, 64)},
        )

    @property
    def max_distance(self) -> int:
        return self.max_distance_attr.value.data

    @property
    def combined_types(self) -> tuple[Attribute, ...]:
        return tuple(self.arguments.types)

    def verify_(self) -> None:
        if self.result_types != self.arguments.types:
            raise VerifyException(
                f"combines ({comma_separated(self.arguments.types)}), "
                f"but its results are ({comma_separated(self.result_types)})"
            )
        if self.max_distance < 0:
            raise VerifyException(f"the maximum distance is {self.max_distance}; it must not be negative")


@op_definition
class ReduceOp(CombiningOp):
    """`%u = xla_gpu.reduce(%x) inits(%a) dimensions=[0, 2] combiner=@add : tensor<4x8x2xf32> to tensor<8xf32>`

    inputs      tensors of one shape
    inits       their elements' first values
    dimensions  the reduced dimensions, in ascending order
    """

    name = "xla_gpu.reduce"

    inputs = var_operand_def(RangeVarConstraint("T", RangeOf(base(TensorType))))
    inits = var_operand_def(DerivedRange("T", lambda tensors: [tensor.element_type for tensor in tensors]))
    dimensions_attr = prop_def(DenseArrayBase.constr(i64), prop_name="dimensions")
    outs = var_result_def(TensorType)

    assembly_format = (
        "`(` $inputs `)` `inits` `(` $inits `)` `dimensions` `` `=` `` $dimensions `combiner` `` `=` `` $combiner attr-dict"
        " `:` type($inputs) `to` type($outs)"
    )

    irdl_options = (SameVariadicOperandSize(),)

    def __init__(
        self,
        inputs: Sequence[SSAValue | Operation],
        inits: Sequence[SSAValue | Operation],
        dimensions: Sequence[int],
        combiner: str,
    ):
        super().__init__(
            operands=[inputs, inits],
            result_types=[_reduced_types([SSAValue.get(reduced).type for reduced in inputs], dimensions)],
            properties={
                "dimensions": DenseArrayBase.from_list(i64, dimensions),
                "combiner": SymbolRefAttr(combiner),
            },
        )

    @property
    def dimensions(self) -> tuple[int, ...]:
        return tuple(self.dimensions_attr.iter_values())

    @property
    def combined_types(self) -> tuple[Attribute, ...]:
        return tuple(self.inits.types)

    def verify_(self) -> None:
        if not self.inputs:
            raise VerifyException("there is nothing to reduce")
        for number, (tensor, init) in enumerate(zip(self.inputs.types, self.inits.types, strict=True)):
            assert isa(tensor, TensorType)
            if init != tensor.element_type:
                raise VerifyException(f"input {number} is {tensor}, but its init {init}")
        wanted = _reduced_types(self.inputs.types, self.dimensions)
        if self.result_types != tuple(wanted):
            raise VerifyException(
                f"the results are ({comma_separated(wanted)}), not ({comma_separated(self.result_types)})"
            )


def _reduced_types(inputs: Sequence[Attribute], dimensions: Sequence[int]) -> list[Attribute]:
    """The results' types: the inputs' without `dimensions`.

    raises  VerifyException if the inputs differ in shape or the dimensions are not ascending ones of theirs
    """
    types = [tensor for tensor in inputs if isa(tensor, TensorType)]
    if len(types) != len(inputs) or len({tensor.shape for tensor in types}) > 1:
        raise VerifyException(f"the inputs differ in shape: {comma_separated(inputs)}")
    shape = types[0].get_shape() if types else ()
    if list(dimensions) != sorted({dim for dim in dimensions if 0 <= dim < len(shape)}):
        raise VerifyException(f"the dimensions must be ascending and below {len(shape)}, but are {list(dimensions)}")
    kept = [size for dim, size in enumerate(shape) if dim not in dimensions]
    return [TensorType(tensor.element_type, kept) for tensor in types]
