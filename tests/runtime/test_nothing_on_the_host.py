"""Programs of the corpora on a stand-in for a GPU: numbers as JAX has them, and no op that the host computes, in no branch.

`make gpu-rehearsal` counts over all 134 programs, with kernels that do nothing.
"""

import warnings
from collections.abc import Iterable

import numpy as np
import pytest
from long_lists import but_long
from runtime.programs_table import difference, programs
from unit.runtime.fake_gpu import fake_cupy, program_for_fake
from xdsl.ir import Operation

from xla_emitters.dialects.hlo.placement import GPU
from xla_emitters.dialects.lmhlo import BufferOp, space_of
from xla_emitters.library.convolution import NO_CUDNN
from xla_emitters.pipelines.program_gpu import GpuProgram, called_op
from xla_emitters.runtime.cuda.cupy_steps import CONSTANT, COPIES

NAMES = {
    "all_the_largest": "the k largest of unknown size",
    "cache_by_rows": "a scatter into windows",
    "convnet": "a convolution, a pooling",
    "cumulative": "prefixes of rows and columns",
    "double": "functions that HLO lacks, in f64",
    "generator": "random bits",
    "gradients": "gradients of a convolution",
    "histogram": "a scatter by atomic instructions",
    "half_channels_first": "a convolution whose padding is an operand",
    "narrow": "products of narrow floats",
    "pooling_gradient": "select_and_scatter",
    "routines": "linear algebra",
    "segments": "a scatter in the order of sorted keys",
    "special_functions": "functions that HLO lacks",
}


LONG = (
    *(
        "convnet",
        "cache_by_rows",
        "cumulative",
        "double",
        "gradients",
        "half_channels_first",
        "narrow",
        "pooling_gradient",
    ),
    *("routines", "special_functions"),
)


@pytest.mark.parametrize("name", but_long(NAMES, LONG))
def test_a_program(name: str) -> None:
    case = programs()[name]
    with fake_cupy(), warnings.catch_warnings(record=True) as said:
        program = program_for_fake(case.folder / f"{name}.mlir", record="none")
        assert left_to_the_host(program.compilation.lowering.at("kernels").walk()) == []
        on_gpu, worst = GpuProgram(program.compilation), 0.0
        with np.load(case.folder / f"{name}.npz") as expected:
            for number, sizes in enumerate(case.case.sizes):
                for i, found in enumerate(on_gpu.run(case.inputs(sizes))):
                    worst = max(worst, difference(np.asarray(found), expected[f"{number}/r{i}"]))
        assert worst <= case.case.tolerance
        assert on_gpu.log == {}
    assert {str(each.message) for each in said} <= {NO_CUDNN}


def left_to_the_host(ops: Iterable[Operation]) -> list[str]:
    """Names of the ops on arrays of the device that neither a kernel nor a library computes."""
    found = list[str]()
    for op in ops:
        if isinstance(op, BufferOp) and GPU in [space_of(buffer.type) for buffer in (*op.inputs, *op.outputs)]:
            called = called_op(op)
            if called.library is None and called.opcode not in (*COPIES, CONSTANT):
                found.append(op.instruction_name)
    return found
