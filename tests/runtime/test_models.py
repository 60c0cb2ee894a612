"""The models of examples/models in small: compiled once, run at several sizes, against JAX's results; memory. In full: `make models`."""

from functools import cache

import numpy as np
import pytest
from long_lists import but_long
from runtime.live_set import live_set
from runtime.models import CORPUS, NAMES, TOLERANCE, compiled, runs, worst_difference

from xla_emitters.dialects.disc_ral import DispatchOp
from xla_emitters.pipelines.cpu_lowering import CpuLowering
from xla_emitters.pipelines.options import CompileOptions
from xla_emitters.pipelines.programs import COMPILATIONS, compile_program
from xla_emitters.program import Program
from xla_emitters.text.stablehlo import parse_stablehlo


@cache
def program(name: str) -> Program:
    return compiled(name)


def test_every_model_is_in_the_corpus() -> None:
    assert {path.name for path in CORPUS.iterdir()} == {f"{name}.{end}" for name in NAMES for end in ("mlir", "npz")}


# `test_cpu_programs.py` and `test_library_programs.py` have programs of the parts of the others.
LARGE = ("decoder", "encoder", "resnet", "unet")


@pytest.mark.parametrize("name", but_long(NAMES, LARGE))
def test_a_model_compiled_once_gives_what_jax_gives_at_all_its_sizes(name: str) -> None:
    made, before = program(name), COMPILATIONS.made
    differences = [worst_difference(made.run(inputs), wanted) for inputs, wanted in runs(name)]
    assert len(differences) >= 3
    assert max(differences) <= TOLERANCE
    assert COMPILATIONS.made == before


SCALARS = 512
"""Bytes of constants with equal elements, which live as long as the call."""


@pytest.mark.parametrize("name", but_long(NAMES, LARGE))
def test_a_run_takes_little_more_memory_than_its_order_needs(name: str) -> None:
    for inputs, wanted in runs(name):
        made, results = program(name), sum(result.nbytes for result in wanted)
        least = live_set(made, inputs)
        assert results <= least <= made.memory(inputs).peak <= 1.1 * least + SCALARS


@pytest.mark.long  # `disc_merge_equal_kernels.mlir` shows it of a few kernels
def test_layers_share_their_kernels() -> None:
    """Two layers of an encoder compute the same: fewer than two thirds of the launches are of different kernels."""
    made = program("encoder")
    assert made.compilation.fused is not None
    host = CpuLowering(made.name, made.compilation.fused, made.compilation.options).host
    launched = [op.config for op in host.walk() if isinstance(op, DispatchOp) and op.call.data == "ral_kernel_launch"]
    assert 0 < len(set(launched)) <= 2 / 3 * len(launched)


def test_a_live_set_counts_a_buffer_from_its_first_use_to_its_last() -> None:
    """Of three products in a row two are live at once: the operand and the result of one."""
    text = """module @m {
      func.func public @main(%x: tensor<?x?xf32>) -> tensor<?x?xf32> {
        %y = stablehlo.dot_general %x, %x, contracting_dims = [1] x [0] : (tensor<?x?xf32>, tensor<?x?xf32>) -> tensor<?x?xf32>
        %z = stablehlo.dot_general %y, %x, contracting_dims = [1] x [0] : (tensor<?x?xf32>, tensor<?x?xf32>) -> tensor<?x?xf32>
        %w = stablehlo.dot_general %z, %x, contracting_dims = [1] x [0] : (tensor<?x?xf32>, tensor<?x?xf32>) -> tensor<?x?xf32>
        return %w : tensor<?x?xf32>
      }
    }"""
    made = compile_program(parse_stablehlo(text, "m.mlir"), CompileOptions(record="none"))
    assert live_set(made, [np.ones((5, 5), np.float32)]) == 2 * 4 * 25
