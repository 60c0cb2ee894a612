"""The `xla_gpu` dialect's ops that name a function: pure_call, and two that combine values by one.

    %c = xla_gpu.pure_call @f(%a, %i) {noinline} : (tensor<4xf32>, index) -> f32
    %q:2 = xla_gpu.shuffle_reduce(%a, %b) to 16 combiner=@argmax : f32, i32
    %u:2 = xla_gpu.reduce(%x, %y) inits(%a, %b) dimensions=[0, 2] combiner=@argmax : tensor<..>, tensor<..> to tensor<8xf32>, tensor<8xi32>

A combiner takes the values so far, then the values to add to them, and gives the new values: (f32, i32, f32, i32) -> (f32, i32).
`shuffle_reduce` combines each lane's values with those of the lane `d` above it, for d = max_distance, max_distance / 2, ... 1; after it
the first lane of each run of 2 * max_distance lanes has the values of all of them.
`reduce` combines the elements along the dimensions named. Today's XLA has it for an experiment; it is read, never emitted here.
Import the ops from `xla_gpu.py`.
Source: spec/1 1.1-1.3.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects import func
from xdsl.dialects.builtin import (
    ContainerType,
    DenseArrayBase,
    FlatSymbolRefAttrConstr,
    IntegerAttr,
    SymbolRefAttr,
    TensorType,
    i64,
)
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    SameVariadicOperandSize,
    irdl_op_definition,
    prop_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure, SymbolTable, SymbolUserOpInterface
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.hints import isa

from xla_emitters.dialects.xla_gpu_loops import comma_separated, print_values


