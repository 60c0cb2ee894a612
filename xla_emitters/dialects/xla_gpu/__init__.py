"""The `xla_gpu` dialect: the ops of XLA:GPU's emitters: loops over indexing maps, calls without side effects, shared memory.

    %l = xla_gpu.loop (%tid, %bid)[%vector_index] -> (%dim0, %dim1) in #map iter_args(%iter = %init) -> (tensor<4xf32>) {
      %e = xla_gpu.pure_call @f(%arg, %dim0, %dim1) : (tensor<8xf32>, index, index) -> f32
      %t = tensor.insert %e into %iter[%dim0] : tensor<4xf32>
      xla_gpu.yield %t : tensor<4xf32>
    }
    %s = xla_gpu.sync_threads %l : tensor<4xf32>

The ops are in `loops.py` (apply_indexing, loop, atomic_rmw, yield), `pure_calls.py` (pure_call, shuffle_reduce, reduce), `tensors.py`
(guarded elements, shared memory, waiting) and `tiles.py` (indexed vectors); other packages import them from here.
All are written as in the seed; the generic form and today's XLA's `xla.loop` (`xla.py`) are read too.
Source: seed document, "MLIR Conversion"; docs/reference/1 1.1-1.8.
"""

from __future__ import annotations

from xdsl.dialect_interfaces.constant_materialization import ConstantMaterializationInterface
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Attribute, Dialect, Operation

from xla_emitters.dialects.completion import classes_among
from xla_emitters.dialects.isa import isa
from xla_emitters.dialects.mlir import arith
from xla_emitters.dialects.xla_gpu.indexing_map import IndexingMapAttr as IndexingMapAttr
from xla_emitters.dialects.xla_gpu.loops import INDEX as INDEX
from xla_emitters.dialects.xla_gpu.loops import INDUCTION_NAMES as INDUCTION_NAMES
from xla_emitters.dialects.xla_gpu.loops import PACKED as PACKED
from xla_emitters.dialects.xla_gpu.loops import ApplyIndexingOp as ApplyIndexingOp
from xla_emitters.dialects.xla_gpu.loops import AtomicRMWOp as AtomicRMWOp
from xla_emitters.dialects.xla_gpu.loops import LoopOp as LoopOp
from xla_emitters.dialects.xla_gpu.loops import YieldOp as YieldOp
from xla_emitters.dialects.xla_gpu.loops import parse_map as parse_map
from xla_emitters.dialects.xla_gpu.loops import parse_operands as parse_operands
from xla_emitters.dialects.xla_gpu.loops import print_values as print_values
from xla_emitters.dialects.xla_gpu.pure_calls import PureCallOp as PureCallOp
from xla_emitters.dialects.xla_gpu.pure_calls import ReduceOp as ReduceOp
from xla_emitters.dialects.xla_gpu.pure_calls import ShuffleReduceOp as ShuffleReduceOp
from xla_emitters.dialects.xla_gpu.tensors import AllocateSharedOp as AllocateSharedOp
from xla_emitters.dialects.xla_gpu.tensors import GetDynamicDimSizeOp as GetDynamicDimSizeOp
from xla_emitters.dialects.xla_gpu.tensors import PdlLaunchDependentsOp as PdlLaunchDependentsOp
from xla_emitters.dialects.xla_gpu.tensors import PdlWaitOp as PdlWaitOp
from xla_emitters.dialects.xla_gpu.tensors import PredicatedExtractOp as PredicatedExtractOp
from xla_emitters.dialects.xla_gpu.tensors import PredicatedInsertOp as PredicatedInsertOp
from xla_emitters.dialects.xla_gpu.tensors import SyncThreadsOp as SyncThreadsOp
from xla_emitters.dialects.xla_gpu.tiles import IndexedVectorType as IndexedVectorType
from xla_emitters.dialects.xla_gpu.tiles import InsertOp as InsertOp
from xla_emitters.dialects.xla_gpu.tiles import LayoutAttr as LayoutAttr
from xla_emitters.dialects.xla_gpu.tiles import MaterializeOp as MaterializeOp
from xla_emitters.dialects.xla_gpu.tiles import MemorySpaceAttr as MemorySpaceAttr


class _Constants(ConstantMaterializationInterface):
    def materialize_constant(self, value: Attribute, type: Attribute) -> Operation | None:  # noqa: A002 (xDSL's name)
        return arith.ConstantOp(value, type) if isa(value, IntegerAttr) else None


XLA_GPU = Dialect(
    "xla_gpu",
    classes_among(globals(), Operation, "xla_gpu"),
    classes_among(globals(), Attribute, "xla_gpu"),
    [_Constants()],
)
