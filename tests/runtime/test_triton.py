"""Fusions that the real XLA gives to Triton (`tests/corpus/triton`): the parts that they are split into, and their values."""

from functools import cache
from pathlib import Path

import pytest
from long_lists import every
from xdsl.dialects.builtin import ModuleOp

from xla_emitters.dialects.hlo.computation import ComputationOp, FusionOp, find_computation
from xla_emitters.dtypes import Array
from xla_emitters.explore.check.check import check
from xla_emitters.graph.buffers import array_spec
from xla_emitters.graph.control_computations import control_computations
from xla_emitters.graph.entry import entry_of
from xla_emitters.graph.split_results import SplitResultsPass
from xla_emitters.graph.split_triton_fusions import split_triton_fusions
from xla_emitters.runtime.inputs import draw_inputs
from xla_emitters.runtime.reference.reference import evaluate
from xla_emitters.text.hlo import parse_hlo, print_hlo

CORPUS = Path(__file__).parents[1] / "corpus" / "triton"

# By reading: contractions, and fusions of the whole module after the pass. A contraction of arrays that are in memory needs no prologue;
# where XLA divided the contracting dimension, a fusion of its own sums the parts.
PARTS = {
    "softmax_f32": (0, 3),  # max; sum of exp; quotient
    "softmax_bf16": (0, 3),
    "softmax_small": (0, 3),
    "layer_norm": (0, 3),  # mean; variance; the rest
    "rms_norm": (0, 2),
    "scan_rms_norm": (0, 4),  # in the body, with the counter's sum; the condition
    "cross_entropy": (0, 3),  # max; logarithm of the sum; sum of products
    "attention": (2, 5),  # scale; softmax; sum of parts
    "softmax_of_gemm": (1, 4),  # sum of parts; softmax
    "gemm_f32": (1, 0),
    "gemm_split_k": (1, 1),
    "gemm_batched": (1, 0),
    "gemm_bias_gelu": (1, 2),  # bias; XLA's own fusion for the rest
    "gemm_residual": (1, 1),
    "gemm_concatenated": (1, 1),
    "gemm_mixed": (1, 1),
    "gemm_s8": (1, 1),
    "gemm_s4": (1, 1),
    "gemm_f8": (1, 2),  # transpose; convert
}


@cache
def text_of(name: str) -> str:
    return (CORPUS / f"{name}.hlo").read_text()


@cache
def split_text(name: str) -> str:
    module = parse_hlo(text_of(name), name)
    split_triton_fusions(module)
    module.verify()
    return print_hlo(module)


def fusions(module: ModuleOp) -> list[FusionOp]:
    return [op for each in control_computations(module) for op in each.instructions if isinstance(op, FusionOp)]


def drawn(computation: ComputationOp) -> list[Array]:
    return draw_inputs(computation, tuple(array_spec(p.result.type) for p in computation.parameters), 0)


def test_every_file_is_here() -> None:
    assert {path.stem for path in CORPUS.glob("*.hlo")} == PARTS.keys()


@pytest.mark.parametrize("name", PARTS)
def test_parts(name: str) -> None:
    """As many as there should be, and each is a kernel: later passes need not split them."""
    module = parse_hlo(split_text(name))
    dots = [op for each in control_computations(module) for op in each.instructions if op.opcode == "dot"]
    assert (len(dots), len(fusions(module))) == PARTS[name]
    assert not any("__triton" in str(op.attributes) for op in fusions(module))
    SplitResultsPass().apply_to(module)
    assert print_hlo(module) == split_text(name)


@pytest.mark.parametrize("name", [name for name in PARTS if name != "scan_rms_norm"])
def test_the_whole_keeps_its_values(name: str) -> None:
    """Bit for bit in the reference, for no instruction is computed otherwise than before."""
    before, after = entry_of(parse_hlo(text_of(name))), entry_of(parse_hlo(split_text(name)))
    inputs = drawn(before)
    (one,), (two,) = evaluate(before, inputs), evaluate(after, inputs)
    assert one.tobytes() == two.tobytes()


def alone(name: str, fusion: str) -> str:
    """A module whose ENTRY computes one of the fusions."""
    module = parse_hlo(split_text(name))
    (found,) = (op for op in fusions(module) if op.instruction_name.data == fusion)
    entry_of(module).entry = None
    find_computation(found, found.calls).set_entry()
    module.attributes.clear()
    return print_hlo(module)


SPLIT = [
    ("softmax_f32", "triton_softmax.2.reduce.0"),
    ("softmax_f32", "triton_softmax.2.reduce.1"),
    ("softmax_bf16", "triton_softmax.2.reduce.1"),
    ("softmax_bf16", "triton_softmax.2.epilogue"),
    ("layer_norm", "fusion.6.reduce.1"),
    ("layer_norm", "fusion.6.epilogue"),
    ("scan_rms_norm", "fusion.4.reduce.0"),
    ("scan_rms_norm", "fusion.4.epilogue"),
    ("cross_entropy", "fusion.6.reduce.1"),
    ("cross_entropy", "fusion.6.reduce.2"),
    ("attention", "gemm_fusion_dot_general.2.epilogue"),
    ("softmax_of_gemm", "triton_softmax.2.reduce.0"),
    ("gemm_bias_gelu", "gemm_fusion_dot_general.1.epilogue"),
    ("gemm_residual", "gemm_fusion_dot_general.1.epilogue"),
    ("gemm_concatenated", "gemm_fusion_dot_general.1.prologue.0"),
    ("gemm_s8", "gemm_fusion_dot_general.1.prologue.0"),
    ("gemm_s4", "gemm_fusion_dot_general.1.prologue.0"),
    ("gemm_f8", "gemm_fusion_dot_general.1.prologue.0"),
]


@pytest.mark.parametrize(("name", "fusion"), every(3, SPLIT))
def test_each_part_compiles_and_has_the_reference_s_numbers(name: str, fusion: str) -> None:
    check(alone(name, fusion), blocks=4, stages="xla_gpu,llvm-dialect", verify=False).raise_if_different()


def test_a_whole_module_is_checked_within_the_bounds_of_its_parts() -> None:
    """In the fusion as XLA has it nothing says that threads share its reduction; the bounds of the whole must know that they do."""
    check(text_of("rms_norm").replace("512", "16"), stages="llvm-dialect").raise_if_different()
