"""A list of sizes may have elements of type `index`, as other compilers write it: the same numbers after every pass."""

from typing import Any

import numpy as np
import pytest

from xla_emitters.dialects.context import make_context, parse_ir
from xla_emitters.pipelines.cpu_lowering import CpuLowering
from xla_emitters.pipelines.options import CompileOptions
from xla_emitters.pipelines.program_kernels import GpuLowering
from xla_emitters.pipelines.program_passes import (
    PROGRAM_FUSED,
    PROGRAM_GRAPH,
    PROGRAM_HOST,
    PROGRAM_OPS,
    RUN_ON_KERNELS,
)
from xla_emitters.pipelines.program_runs import run_module
from xla_emitters.rewrite.kernel_pass import run_pass

ON_BUFFERS = PROGRAM_FUSED[len(PROGRAM_GRAPH) + 1 :]
"""The passes after disc-legalize-to-lhlo."""
OPS = {
    "dynamic_broadcast_in_dim": (
        'lmhlo.dynamic_broadcast_in_dim %x, %s -> %y {dimensions = array<i64: 0, 1>, name = "y", disc.device = "gpu"}',
        '(memref<?x4xf32, "gpu">, memref<2xindex, "cpu">)',
        lambda x: x,
    ),
    "dynamic_reshape": (
        'lmhlo.dynamic_reshape %x, %s -> %y {name = "y", disc.device = "gpu"}',
        '(memref<?x4xf32, "gpu">, memref<2xindex, "cpu">)',
        lambda x: x,
    ),
    "dynamic_iota": (
        'lmhlo.dynamic_iota %s -> %y {iota_dimension = 1 : i64, name = "y", disc.device = "gpu"}',
        '(memref<2xindex, "cpu">)',
        lambda x: np.broadcast_to(np.arange(4, dtype=np.float32), x.shape),
    ),
}


def text(name: str) -> str:
    op, types, _ = OPS[name]
    return f"""func.func @main(%x: memref<?x4xf32, "gpu">) -> memref<?x?xf32, "gpu"> {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %b = memref.dim %x, %c0 : memref<?x4xf32, "gpu">
  %s = memref.alloc() : memref<2xindex, "cpu">
  memref.store %b, %s[%c0] : memref<2xindex, "cpu">
  memref.store %c4, %s[%c1] : memref<2xindex, "cpu">
  %y = memref.alloc(%b, %c4) : memref<?x?xf32, "gpu">
  {op} : {types} -> memref<?x?xf32, "gpu">
  memref.dealloc %s : memref<2xindex, "cpu">
  return %y : memref<?x?xf32, "gpu">
}}"""


@pytest.mark.parametrize("name", OPS)
def test_a_list_of_sizes_of_type_index_goes_through_all_passes(name: str) -> None:
    options, context = CompileOptions(), make_context()
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    wanted: np.ndarray[Any, Any] = OPS[name][2](x)
    module = parse_ir(text(name), "sizes.mlir")
    for row in ON_BUFFERS:
        run_pass(row.make(options), context, module, verify=True)
        np.testing.assert_array_equal(run_module(module, [x])[0], wanted)
    fused = module.clone()
    for row in (*PROGRAM_OPS, *PROGRAM_HOST):
        run_pass(row.make(options), context, module, verify=True)
    np.testing.assert_array_equal(run_module(module, [x])[0], wanted)
    kernels = GpuLowering("sizes", fused, options)
    for stage in RUN_ON_KERNELS:
        np.testing.assert_array_equal(kernels.run([x], stage)[0], wanted)
    pytest.importorskip("llvmlite.binding", reason="llvmlite is not installed")
    np.testing.assert_array_equal(CpuLowering("sizes", fused, options).loaded.run([x])[0], wanted)
