"""The passes of dependent launches are not in the list;
in a pipeline that has them in XLA's places, PTX waits and the numbers do not change.
"""

from pathlib import Path

import numpy as np
import pytest

from xla_emitters.pipelines.compiler import compile
from xla_emitters.pipelines.options import CompileOptions
from xla_emitters.pipelines.passes import KERNEL
from xla_emitters.tools.pass_list import pipeline_of

EXAMPLES = Path(__file__).parents[3] / "examples"


def xlas_pipeline() -> str:
    """The list KERNEL with both passes where XLA has them."""
    specs = [row.make(CompileOptions()).spec() for row in KERNEL]
    names = [spec.name for spec in specs]
    passes = [str(spec) for spec in specs]
    # The second place first: it does not move the first.
    passes.insert(names.index("xla-lower-tensors") + 1, "xla-lower-pdl-wait")
    passes.insert(names.index("xla-convert-pure-call-ops"), "xla-gpu-insert-pdl")
    return f"builtin.module({','.join(passes)})"


@pytest.mark.parametrize("name", ["negate_20x40x300", "row_sum"])
def test_numbers_and_code_stay_but_for_the_wait(name: str) -> None:
    path = EXAMPLES / f"{name}.hlo"
    alone = compile(path, stage="llvm-dialect", cache=False)
    waiting = compile(path, stage="llvm-dialect", cache=False, pipeline=pipeline_of(xlas_pipeline()))
    assert [line for line in waiting.code.split("\n") if "griddepcontrol" not in line] == alone.code.split("\n")
    assert waiting.code.count("nvvm.griddepcontrol wait") == 1
    draw = np.random.default_rng(0)
    arrays = [draw.standard_normal(spec.shape).astype(np.float32) for spec in alone.parameters]
    results = [program.run_cpu(*arrays) for program in (waiting, alone)]
    for one, other in zip(*(made if isinstance(made, tuple) else (made,) for made in results), strict=True):
        assert np.array_equal(one, other)


def test_the_list_does_not_wait() -> None:
    names = {row.make(CompileOptions()).name for row in KERNEL}
    assert names.isdisjoint({"xla-gpu-insert-pdl", "xla-lower-pdl-wait"})
