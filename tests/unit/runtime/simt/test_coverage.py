"""Every op that kernels are made of has a meaning, is structure that other ops read, or is listed here with the reason."""

from fnmatch import fnmatchcase

import numpy as np
import pytest

from xla_emitters.dialects.context import make_context, parse_ir
from xla_emitters.errors import Unsupported
from xla_emitters.runtime.simt import execute
from xla_emitters.runtime.simt.execute import RULES

DIALECTS = (
    *(
        "xla_gpu",
        "xla",
        "arith",
        "math",
        "complex",
        "tensor",
        "scf",
        "vector",
        "affine",
        "cf",
        "gpu",
        "nvvm",
        "llvm",
        "func",
    ),
    *("index", "memref", "ub", "builtin"),
)
# Read by the op around them, or by the executor itself.
STRUCTURE = (
    *(
        "builtin.module",
        "builtin.unregistered",
        "func.func",
        "func.return",
        "llvm.func",
        "llvm.return",
        "llvm.mlir.global",
    ),
    *("xla_gpu.yield", "tensor.yield", "tensor.parallel_insert_slice", "memref.global", "llvm.module_flags"),
    *("scf.yield", "scf.condition", "scf.reduce", "scf.reduce.return", "scf.forall.in_parallel", "affine.yield"),
    *("gpu.module", "gpu.func", "gpu.return", "gpu.terminator", "gpu.yield", "ub.unreachable"),
)
WITHOUT_MEANING = {
    "xla.[!w]*": "read as the xla_gpu op; they exist only after xla-to-upstream-spelling",
    **dict.fromkeys(
        (
            *(
                "arith.scaling_*",
                "gpu.all_reduce",
                "gpu.printf",
                "gpu.rotate",
                "gpu.subgroup_broadcast",
                "gpu.subgroup_reduce",
            ),
            *(
                "memref.copy",
                "tensor.bitcast",
                "tensor.*_shape",
                "tensor.*t_slice",
                "tensor.concat",
                "tensor.generate",
                "tensor.pad",
                "tensor.rank",
                "tensor.reshape",
            ),
            *(
                "vector.compressstore",
                "vector.constant_mask",
                "vector.create_mask",
                "vector.deinterleave",
                "vector.expandload",
            ),
            *("vector.gather", "vector.masked*", "vector.multi_reduction", "vector.outerproduct", "vector.scan"),
            *("vector.scatter", "vector.step"),
        ),
        "in no kernel of XLA's",
    ),
    "xla_gpu.insert": "tiles, an experiment of XLA",
    "xla_gpu.materialize": "tiles, an experiment of XLA",
    "xla_gpu.reduce": "tiles, an experiment of XLA",
    "xla_gpu.get_dynamic_dim_size": "the size stands behind the array in a buffer of XLA's runtime",
    "affine.*": "memory and control flow of affine; emitter IR has scf",
    "gpu.alloc": "the host's",
    "gpu.dealloc": "the host's",
    "gpu.host_*": "the host's",
    "gpu.launch*": "the host's",
    "gpu.memcpy": "the host's",
    "gpu.set_default_device": "the host's",
    "gpu.wait": "the host's",
    "gpu.dynamic_shared_memory": "a launch here has static shared memory",
    "gpu.cluster_*": "clusters of blocks",
    "nvvm.read.ptx.sreg.cluster*": "clusters of blocks",
    "nvvm.read.ptx.sreg.ncluster*": "clusters of blocks",
    "nvvm.cluster.*": "clusters of blocks",
    "nvvm.read.ptx.sreg.*smid": "of the chip, not of the program",
    "nvvm.read.ptx.sreg.n[sw]*id": "of the chip, not of the program",
    "nvvm.read.ptx.sreg.gridid": "of the driver",
    "nvvm.read.ptx.sreg.*.smem.size": "of the driver",
    "nvvm.read.ptx.sreg.envreg*": "of the driver",
    "nvvm.read.ptx.sreg.clock*": "time",
    "nvvm.read.ptx.sreg.globaltimer*": "time",
    "nvvm.breakpoint": "a debugger's",
    "nvvm.*mbarrier*": "asynchronous barriers",
    "func.call_indirect": "functions as values",
    "vector.print": "output",
    "memref.alloca_scope*": "stacks",
    "memref.dma_*": "other hardware's",
    "memref.*view": "a tensor here has no offset",
    "memref.reinterpret_cast": "a tensor here has no offset",
    "memref.extract_strided_metadata": "a tensor here has no offset",
}


def without_rule() -> list[str]:
    context = make_context()
    names = [op.name for dialect in DIALECTS for op in context._registered_dialects[dialect]().operations]
    return [name for name in names if RULES.step_of(name) is None and RULES.branch_of(name) is None]


def test_every_op_has_a_meaning_or_a_reason() -> None:
    unexplained = [
        name
        for name in without_rule()
        if name not in STRUCTURE and not any(fnmatchcase(name, pattern) for pattern in WITHOUT_MEANING)
    ]
    assert unexplained == []


def test_no_reason_is_given_for_what_has_a_meaning() -> None:
    missing = without_rule()
    assert [name for name in STRUCTURE if name not in missing] == []
    assert [p for p in WITHOUT_MEANING if not any(fnmatchcase(name, p) for name in missing)] == []


@pytest.mark.parametrize(
    ("op", "name"),
    [
        ("%c = nvvm.read.ptx.sreg.clock : i32", "nvvm.read.ptx.sreg.clock"),
        ('%c = llvm.inline_asm "mov.u32 $0, 1;", "=r" : () -> i32', "llvm.inline_asm"),
        ("%c = gpu.dynamic_shared_memory : memref<?xi8, #gpu.address_space<workgroup>>", "gpu.dynamic_shared_memory"),
    ],
)
def test_what_has_none_is_refused_by_name_and_place(op: str, name: str) -> None:
    text = (
        "func.func @f(%t: tensor<4xf32>) -> tensor<4xf32> attributes {xla.entry, gpu.known_grid_size = array<i32: 1, 1, 1>, "
        f'gpu.known_block_size = array<i32: 4, 1, 1>}} {{\n  {op} loc("clock"("a.hlo":3:1))\n  return %t : tensor<4xf32>\n}}'
    )
    with pytest.raises(Unsupported) as refused:
        execute(parse_ir(text), [np.zeros(4, np.float32)])
    assert name in str(refused.value)
    assert "a.hlo:3:1" in str(refused.value)
