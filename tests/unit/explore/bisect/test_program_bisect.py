"""Programs with unknown sizes: a wrong pass of each list is named, with its element and its op; a right compiler is not blamed."""

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from in_process import messages, written
from runtime.stablehlo_programs import CORPUS
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.rewriter import Rewriter

from xla_emitters.dialects import lmhlo
from xla_emitters.dialects.hlo.base import HloOp
from xla_emitters.dialects.hlo.computation import ComputationOp
from xla_emitters.dialects.mlir import arith, llvm, memref
from xla_emitters.dynamic.passes.shape_code import Number, ShapeCode
from xla_emitters.explore.bisect import wrong_thread
from xla_emitters.explore.bisect.bisect import bisect
from xla_emitters.explore.bisect.blame import Culprit, Search
from xla_emitters.explore.compile import compile_text
from xla_emitters.lowering.expand_float_ops import ExpandFloatOpsPass
from xla_emitters.pipelines.options import CompileOptions
from xla_emitters.pipelines.pass_lists import LISTS, rows_of
from xla_emitters.pipelines.passes import PassRow
from xla_emitters.pipelines.program_inputs import drawn_inputs
from xla_emitters.rewrite.kernel_pass import KernelPass
from xla_emitters.runtime.simt.follow import LaneValues
from xla_emitters.tools.main import main

TEXT = """
module @m {
  func.func public @main(%x: tensor<?x3xf32>, %y: tensor<?x3xf32>) -> tensor<?x3xf32> {
    %a = stablehlo.subtract %x, %y : tensor<?x3xf32>
    %b = stablehlo.abs %a : tensor<?x3xf32>
    %c = stablehlo.add %b, %y : tensor<?x3xf32>
    return %c : tensor<?x3xf32>
  }
}
""".lstrip()


class SwapsOperands(KernelPass):
    """Operands of the first subtraction or division are exchanged, on tensors, on buffers, in loops."""

    name = "swaps-operands"

    def apply_to(self, op: ModuleOp) -> None:
        kinds = HloOp | lmhlo.BufferOp | arith.SubfOp | llvm.FSubOp
        each = next(each for each in op.walk() if isinstance(each, kinds) and "sub" in each.name)
        each.operands[0], each.operands[1] = each.operands[1], each.operands[0]


class AddsInsteadOfSubtracts(KernelPass):
    name = "adds-instead-of-subtracts"

    def apply_to(self, op: ModuleOp) -> None:
        found = next((each for each in op.walk() if isinstance(each, arith.SubfOp)), None)
        if found is not None:
            added = arith.AddfOp(found.lhs, found.rhs)
            added.location = found.location
            Rewriter.replace_op(found, added)


class LosesAStore(KernelPass):
    name = "loses-a-store"

    def apply_to(self, op: ModuleOp) -> None:
        stores = [each for each in op.walk() if isinstance(each, memref.StoreOp)]
        Rewriter.erase_op(stores[-1])


class KeepsABuffer(KernelPass):
    name = "keeps-a-buffer"

    def apply_to(self, op: ModuleOp) -> None:
        Rewriter.erase_op(next(each for each in op.walk() if isinstance(each, memref.DeallocOp)))


@contextmanager
def behind(pass_name: str, of: str, wrong: type[KernelPass]) -> Generator[int]:
    """Inside, `wrong` runs behind the first pass of that name in the list `of`; yields its number there, from 1."""
    rows, options = rows_of(of), CompileOptions()
    number = [row.make(options).name for row in rows].index(pass_name) + 1
    LISTS[of] = (*rows[:number], PassRow(lambda _: wrong(), "wrong"), *rows[number:])
    try:
        yield number + 1
    finally:
        LISTS[of] = rows


def searched(text: str = TEXT, **given: Any) -> Search:
    program = compile_text(text, "m.mlir", CompileOptions(record="none"))
    sizes = dict.fromkeys(program.symbols, 5)
    return bisect(program, inputs=drawn_inputs(program, sizes, 0), **given)


def found(text: str = TEXT) -> Culprit:
    culprit = searched(text).culprit
    assert culprit is not None
    return culprit


def test_a_right_compiler_is_not_blamed() -> None:
    search = searched()
    assert search.culprit is None
    assert search.kernels == 2  # of which one is for sizes that vectors divide


DIVIDED = """
module @m {
  func.func public @main(%x: tensor<50x3xf32>) -> tensor<50x3xf32> {
    %three = stablehlo.constant dense<3.0> : tensor<50x3xf32>
    %d = stablehlo.divide %x, %three : tensor<50x3xf32>
    return %d : tensor<50x3xf32>
  }
}
""".lstrip()


def test_a_division_that_became_a_product_is_not_a_wrong_one() -> None:
    """Its last bit changes: some of these numbers are not those of x / 3."""
    x = drawn_inputs(compile_text(DIVIDED, "m.mlir", CompileOptions(record="none")), {}, 0)[0]
    assert np.any(x * np.float32(1 / 3) != x / np.float32(3))
    assert searched(DIVIDED).culprit is None


@pytest.mark.parametrize(
    ("before", "of"),
    [("disc-canonicalize-reduction", "program"), ("disc-fuse-on-buffer", "program"), ("xla-cse", "program-kernel")],
)
def test_the_pass_is_named_in_whichever_list_it_is(before: str, of: str) -> None:
    """x - y is y - x behind it; |x - y| hides that, so the numbers are those of y - x + y only where abs is not applied."""
    text = TEXT.replace("stablehlo.abs", "stablehlo.negate")
    wrong = AddsInsteadOfSubtracts if of == "program-kernel" else SwapsOperands
    with behind(before, of, wrong) as number:
        culprit = found(text)
        assert (culprit.kind, culprit.name) == ("numbers", wrong.name)
    assert culprit.number == number
    assert culprit.element.was == culprit.element.wanted != culprit.element.now
    assert culprit.blame.instructions == ("a",)
    assert "m.mlir:3" in culprit.blame.place


REDUCED = """
module @m {
  func.func public @main(%x: tensor<?x3xf32>, %y: tensor<?x3xf32>) -> tensor<?xf32> {
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?x3xf32>) -> tensor<i32>
    %m = stablehlo.get_dimension_size %y, dim = 0 : (tensor<?x3xf32>) -> tensor<i32>
    %same = stablehlo.compare EQ, %n, %m, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.custom_call @shape_assertion(%same, %n) {error_message = "{0} rows"} : (tensor<i1>, tensor<i32>) -> ()
    %a = stablehlo.subtract %x, %y : tensor<?x3xf32>
    %sum = stablehlo.reduce(%a init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<?x3xf32>, tensor<f32>) -> tensor<?xf32>
    return %sum : tensor<?xf32>
  }
}
""".lstrip()


@pytest.mark.parametrize("before", ["disc-canonicalize-reduction", "disc-legalize-to-lhlo"])
def test_programs_with_assertions_and_reductions(before: str) -> None:
    """HLO text has no word for an assertion about sizes, and on buffers what a reduction applies is a computation without an entry."""
    with behind(before, "program", SwapsOperands):
        culprit = found(REDUCED)
    assert (culprit.kind, culprit.name) == ("numbers", "swaps-operands")
    assert culprit.element is not None
    assert culprit.blame.instructions == ("a",)
    assert culprit.blame.diff


def test_a_pass_that_hides_no_number_is_not_blamed() -> None:
    """|x - y| is |y - x|: no number changes."""
    with behind("disc-canonicalize-reduction", "program", SwapsOperands):
        assert searched().culprit is None


@pytest.mark.parametrize("right_elements", [0, 7, 14])
def test_the_kernel_the_thread_and_the_op_are_named(right_elements: int) -> None:
    """x + 0 is x - 0: the elements before the first y that is not zero stay right. Each thread computes the element of its number."""
    y = np.ones((5, 3), np.float32)
    y.flat[:right_elements] = 0
    program = compile_text(TEXT.replace("stablehlo.abs", "stablehlo.negate"), "m.mlir", CompileOptions(record="none"))
    with behind("xla-cse", "program-kernel", AddsInsteadOfSubtracts):
        culprit = bisect(program, inputs=(np.ones((5, 3), np.float32), y)).culprit
    assert "main" in culprit.kernel
    assert culprit.element.index == divmod(right_elements, 3)
    assert (culprit.thread.block, culprit.thread.thread) == (0, right_elements)
    assert culprit.blame.op.startswith("%")
    assert "arith.addf" in culprit.blame.op


TWO_KERNELS = """
module @m {
  func.func public @main(%x: tensor<?x4xf32>, %z: tensor<?x4xf32>, %y: tensor<4x5xf32>) -> tensor<?x5xf32> {
    %a = stablehlo.subtract %x, %z : tensor<?x4xf32>
    %p = stablehlo.dot_general %a, %y, contracting_dims = [1] x [0] : (tensor<?x4xf32>, tensor<4x5xf32>) -> tensor<?x5xf32>
    %c = stablehlo.negate %p : tensor<?x5xf32>
    return %c : tensor<?x5xf32>
  }
}
""".lstrip()


def test_the_thread_is_of_the_kernel_that_is_wrong() -> None:
    """The product and the kernel behind it are right. A thread subtracts four elements, of which the first is wrong."""
    x = np.zeros((3, 4), np.float32)
    x[2, 0] = 1
    program = compile_text(TWO_KERNELS, "m.mlir", CompileOptions(record="none"))
    with behind("xla-cse", "program-kernel", AddsInsteadOfSubtracts):
        culprit = bisect(program, inputs=(x, x, np.ones((4, 5), np.float32))).culprit
    assert "subtract" in culprit.kernel
    assert culprit.element.index == (2, 0)
    assert (culprit.thread.block, culprit.thread.thread) == (0, 2)
    assert culprit.thread.writes == "element [8] of the kernel's argument 2"


TANH_AND_MORE = """
module @m {
  func.func public @main(%x: tensor<?x3xf32>, %y: tensor<?x7xf32>) -> (tensor<?x3xf32>, tensor<?x7xf32>) {
    %a = stablehlo.tanh %x : tensor<?x3xf32>
    %b = stablehlo.tanh %y : tensor<?x7xf32>
    %c = stablehlo.subtract %y, %b : tensor<?x7xf32>
    return %a, %c : tensor<?x3xf32>, tensor<?x7xf32>
  }
}
""".lstrip()


class ExpandsAndSwaps(ExpandFloatOpsPass):
    """Expands tanh as it should, which changes bits, and exchanges the operands of the one subtraction of the text."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        found = [each for each in op.walk() if isinstance(each, arith.SubfOp)]
        super().apply(ctx, op)
        for each in found:
            each.operands[0], each.operands[1] = each.operands[1], each.operands[0]


def test_a_right_kernel_whose_bits_change_is_not_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Behind a pass that may change bits: the kernel of %a is launched first and differs in bits, the one of %c is wrong."""
    rows = rows_of("program-kernel")
    names = [row.make(CompileOptions()).name for row in rows]
    number = names.index(ExpandsAndSwaps.name)
    monkeypatch.setitem(
        LISTS, "program-kernel", (*rows[:number], PassRow(lambda _: ExpandsAndSwaps(), "wrong"), *rows[number + 1 :])
    )
    culprit = found(TANH_AND_MORE)
    assert (culprit.kind, culprit.name) == ("numbers", "xla-expand-float-ops")
    assert "subtract" in culprit.kernel
    assert culprit.element.result == "r1"


def test_a_pass_on_tensors_whose_result_cannot_be_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """A reshape to one element of an array with more."""

    def wrong(self: ShapeCode, numbers: Sequence[Number]) -> Number:
        return 1

    monkeypatch.setattr(ShapeCode, "product", wrong)
    program = compile_text((CORPUS / "narrow.mlir").read_text(), "narrow.mlir", CompileOptions(record="none"))
    culprit = bisect(program, inputs=drawn_inputs(program, dict.fromkeys(program.symbols, 5), 0)).culprit
    assert (culprit.kind, culprit.name) == ("execution", "disc-canonicalize-reduction")
    assert "reshape" in culprit.summary
    assert culprit.blame.diff


class ReadsTheOtherParameter(KernelPass):
    """The entry's root reads the second parameter."""

    name = "reads-the-other-parameter"

    def apply_to(self, op: ModuleOp) -> None:
        entry = next(each for each in op.ops if isinstance(each, ComputationOp) and each.is_entry)
        root = entry.root.owner
        assert isinstance(root, Operation)
        root.operands[0] = entry.parameters[1].result


def test_results_of_other_sizes_are_wrong() -> None:
    """An array of 2 x 3 cannot be compared with one of 5 x 3 element by element."""
    text = """
module @m {
  func.func public @main(%x: tensor<?x3xf32>, %y: tensor<?x3xf32>) -> tensor<?x3xf32> {
    %a = stablehlo.negate %x : tensor<?x3xf32>
    return %a : tensor<?x3xf32>
  }
}
""".lstrip()
    program = compile_text(text, "m.mlir", CompileOptions(record="none"))
    with behind("disc-canonicalize-reduction", "program", ReadsTheOtherParameter):
        culprit = bisect(program, inputs=(np.ones((5, 3), np.float32), np.ones((2, 3), np.float32))).culprit
    assert culprit.name == ReadsTheOtherParameter.name


def test_what_only_the_host_does_has_no_thread() -> None:
    """A buffer that the host never frees: the call says so, and every kernel is right."""
    program = compile_text(TWO_KERNELS, "m.mlir", CompileOptions(record="none"))
    with behind("disc-dead-temp-buffer-removal", "program", KeepsABuffer):
        culprit = bisect(program, inputs=drawn_inputs(program, dict.fromkeys(program.symbols, 3), 0)).culprit
    assert (culprit.kind, culprit.name) == ("execution", "keeps-a-buffer")
    assert "not freed" in culprit.summary
    assert culprit.thread is None


def test_a_fault_of_the_search_is_not_hidden(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The thread is not left out: the command says that the fault is ours."""

    class Broken(LaneValues):
        def __init__(self, *lane: int) -> None:
            raise AttributeError("no such lane")

    path = written(tmp_path / "m.mlir", TEXT)
    monkeypatch.setattr(wrong_thread, "LaneValues", Broken)
    with behind("xla-cse", "program-kernel", AddsInsteadOfSubtracts):
        assert main(["bisect", str(path), "--sizes", "d0=5"]) == 70
    assert "no such lane" in capsys.readouterr().err


def test_passes_between_which_nothing_can_be_executed_are_all_named() -> None:
    """Loops are half written behind disc-lhlo-legalize-to-loop: the next pass is named too."""
    with behind("disc-lhlo-legalize-to-loop", "program-loops", LosesAStore):
        culprit = found()
    assert "loses-a-store" in (culprit.name, *culprit.alternatives)
    assert culprit.executed > 0


def test_the_verb_takes_programs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path / "m.mlir", TEXT)
    assert "--sizes" in messages(1, "bisect", path)
    with behind("disc-flatten-memref", "program-loops", LosesAStore):
        assert main(["bisect", str(path), "--sizes", "d0=5"]) == 3
    out = capsys.readouterr().out
    assert "loses-a-store" in out
    assert "0) exit 0;; 3) exit 1;; *) exit 125;;" in out
    assert (
        f"git bisect run sh -c 'PYTHONPATH=$PWD python -m xla_emitters.tools.main check {path} --sizes d0=5; case"
        in out
    )


def test_numbers_that_nothing_wrote_are_not_those_of_the_run_before() -> None:
    """A stage runs on memory without right numbers: without its store each result is NaN, however often the right program ran."""
    with behind("disc-flatten-memref", "program-loops", LosesAStore):
        program = compile_text(TEXT, "m.mlir")
        arrays = drawn_inputs(program, {"d0": 5}, 0)
        right = program.run(arrays, "fused")
        (found,) = program.run(arrays, "loops")
    assert np.isfinite(right).all()
    assert np.isnan(found).any()
