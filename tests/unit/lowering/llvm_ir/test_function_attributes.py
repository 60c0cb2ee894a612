"""Attributes of functions and parameters in LLVM IR; `test_printer.py` compares whole functions with mlir-translate."""

import pytest
from xdsl.dialects.builtin import DictionaryAttr

from xla_emitters.dialects.context import parse_ir
from xla_emitters.dialects.mlir import llvm
from xla_emitters.errors import Unsupported
from xla_emitters.lowering.llvm_ir.function_attributes import function_attributes, memory_word, parameter_attributes


def function(attributes: str) -> llvm.FuncOp:
    (op,) = parse_ir(f"llvm.func @f(){attributes}").ops
    assert isinstance(op, llvm.FuncOp)
    return op


def parameter(attributes: str) -> DictionaryAttr:
    (op,) = parse_ir(f"llvm.func @f(!llvm.ptr {{{attributes}}})").ops
    assert isinstance(op, llvm.FuncOp)
    return op.arg_attrs.data[0]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("llvm.noalias", "noalias "),
        ("llvm.align = 16 : index", "align 16 "),
        ("llvm.dereferenceable = 64 : i64, llvm.noalias", "dereferenceable(64) noalias "),
        ("llvm.dereferenceable = 0 : index, llvm.noalias", "noalias "),
        ("llvm.byval = !llvm.array<4 x f32>", "byval([4 x float]) "),
        ("llvm.nocapture", "captures(none) "),
        ("llvm.range = #llvm.constant_range<i8, -1, 9>", "range(i8 -1, 9) "),
        ("nvvm.grid_constant", '"nvvm.grid_constant" '),
        ("xla.slice_index = 1 : index, gpu.x", ""),
    ],
)
def test_words_of_a_parameter(given: str, words: str) -> None:
    assert parameter_attributes(parameter(given)) == words


def test_no_words_without_a_dictionary() -> None:
    assert parameter_attributes(None) == ""


@pytest.mark.parametrize("given", ["llvm.swiftself", "llvm.align", "llvm.nofpclass = 3 : i64"])
def test_a_convention_that_is_not_known_is_refused(given: str) -> None:
    with pytest.raises(Unsupported, match=f"no LLVM IR for the parameter attribute {given.split()[0]}"):
        parameter_attributes(parameter(given))


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (" attributes {nvvm.kernel, nvvm.reqntid = array<i32: 128, 2, 1>}", ' "nvvm.reqntid"="128,2,1"'),
        (
            " attributes {nvvm.minctasm = 2 : i32, nvvm.blocksareclusters}",
            ' "nvvm.minctasm"="2" "nvvm.blocksareclusters"',
        ),
        (" attributes {always_inline, no_unwind}", " alwaysinline nounwind"),
        (
            ' attributes {no_nans_fp_math = true, fp_contract = "fast"}',
            ' "fp-contract"="fast" "no-nans-fp-math"="true"',
        ),
        (' attributes {passthrough = ["cold", ["a\\22", "b"]]}', ' cold "a\\22"="b"'),
        (" attributes {gpu.known_grid_size = array<i32: 7, 1, 1>}", ""),
    ],
)
def test_words_of_a_function(given: str, words: str) -> None:
    assert function_attributes(function(given)) == words


@pytest.mark.parametrize(
    ("effects", "word"),
    [
        ({}, "memory(none)"),
        ({"argMem": "read"}, "memory(argmem: read)"),
        ({"other": "readwrite"} | dict.fromkeys(("argMem", "inaccessibleMem", "errnoMem"), "readwrite"),
         "memory(readwrite, target_mem0: none, target_mem1: none)"),
        ({"inaccessibleMem": "write", "errnoMem": "read"}, "memory(inaccessiblemem: write, errnomem: read)"),
    ],
)  # fmt: skip
def test_effects_on_memory(effects: dict[str, str], word: str) -> None:
    """What is said of most memory comes first; of other memory only what differs."""
    kinds = ("other", "argMem", "inaccessibleMem", "errnoMem", "targetMem0", "targetMem1")
    given = ", ".join(f"{kind} = {effects.get(kind, 'none')}" for kind in kinds)
    op = function(f" attributes {{memory_effects = #llvm.memory_effects<{given}>}}")
    assert op.memory_effects is not None
    assert memory_word(op.memory_effects) == word
