"""Values on which passes of programs easily go wrong, before and after: initial values, wrap-around, padding, nested loops, memories."""

import numpy as np
import pytest
from runtime.stablehlo_programs import CORPUS
from runtime.test_program_passes import PASSES, parsed
from xdsl.dialects.builtin import ModuleOp

from xla_emitters.dialects.hlo.base import HloOp
from xla_emitters.dialects.hlo.placement import GPU, HOST, TransferOp, devices_of
from xla_emitters.dtypes import Array
from xla_emitters.dynamic.passes.disc_canonicalize_reduction import DiscCanonicalizeReductionPass
from xla_emitters.dynamic.passes.disc_conv_rewriter import DiscConvRewriterPass
from xla_emitters.dynamic.passes.disc_element_type_converter import DiscElementTypeConverterPass
from xla_emitters.dynamic.passes.disc_gpu_conv_padding import DiscGpuConvPaddingPass
from xla_emitters.dynamic.passes.disc_inliner import DiscInlinerPass
from xla_emitters.dynamic.passes.disc_loop_invariant import DiscLoopInvariantPass
from xla_emitters.dynamic.passes.places import CONTROL, host_operands
from xla_emitters.errors import DataError
from xla_emitters.graph.entry import entry_of
from xla_emitters.rewrite.kernel_pass import KernelPass
from xla_emitters.runtime.reference.reference import evaluate
from xla_emitters.text.stablehlo import parse_stablehlo


def body(name: str, element: str, opcode: str) -> str:
    return f"""
hlo.computation @{name} {{
  %x = hlo.parameter 0 {{name = "x"}} : tensor<{element}>
  %y = hlo.parameter 1 {{name = "y"}} : tensor<{element}>
  %s = hlo.{opcode} %x, %y {{name = "s"}} : tensor<{element}>
  hlo.return %s : tensor<{element}>
}}"""


def reduction(element: str, opcode: str, init: str, shape: str, dims: str, result: str) -> ModuleOp:
    kept = f"tensor<{result}{element}>"
    return parsed(
        body("f", element, opcode)
        + f"""
hlo.computation @main entry {{
  %x = hlo.parameter 0 {{name = "x"}} : tensor<{shape}x{element}>
  %i = hlo.constant {{name = "i"}} dense<{init}> : tensor<{element}>
  %r = hlo.reduce %x, %i {{dimensions = array<i64: {dims}>, name = "r", to_apply = @f}}
    : (tensor<{shape}x{element}>, tensor<{element}>) -> {kept}
  hlo.return %r : {kept}
}}"""
    )


def value_after(module: ModuleOp, inputs: list[Array], *passes: KernelPass) -> Array:
    for each in passes:
        each.apply_to(module)
        module.verify()
    (found,) = evaluate(entry_of(module), inputs)
    return found


@pytest.mark.parametrize(
    ("dims", "result", "axes"),
    [("0", "?x?x", (0,)), ("2", "?x?x", (2,)), ("1", "?x?x", (1,)), ("0, 2", "?x", (0, 2)), ("0, 1, 2", "", (0, 1, 2))],
)
@pytest.mark.parametrize("shape", [(3, 4, 5), (1, 1, 1), (2, 0, 3), (0, 2, 2)])
def test_an_initial_value_counts_once(dims: str, result: str, axes: tuple[int, ...], shape: tuple[int, ...]) -> None:
    """A sum from 5, of integers in floats: 5 more than NumPy's sum, whatever is reduced, even if it is empty."""
    module = reduction("f32", "add", "5.0", "?x?x?", dims, result)
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    found = value_after(module, [x], DiscCanonicalizeReductionPass())
    np.testing.assert_array_equal(found, x.sum(axes) + 5)


@pytest.mark.parametrize(
    ("element", "opcode", "init", "numpy", "fold"),
    [
        ("i8", "add", "0", np.int8, np.add),
        ("i8", "multiply", "1", np.int8, np.multiply),
        ("i8", "minimum", "127", np.int8, np.minimum),
        ("ui8", "minimum", "255", np.uint8, np.minimum),
        ("ui8", "maximum", "0", np.uint8, np.maximum),
        ("i16", "xor", "0", np.int16, np.bitwise_xor),
        ("i1", "and", "true", np.bool_, np.logical_and),
        ("i1", "or", "false", np.bool_, np.logical_or),
        ("i1", "xor", "false", np.bool_, np.logical_xor),
        ("i1", "add", "false", np.bool_, np.logical_or),
    ],
)
def test_narrow_integers_wrap_around_as_before(
    element: str, opcode: str, init: str, numpy: type, fold: np.ufunc
) -> None:
    module = reduction(element, opcode, init, "?x?", "0", "?x")
    random = np.random.default_rng(3)
    low, high = (0, 2) if numpy is np.bool_ else (-99, 99)
    x: Array = np.asarray(random.integers(low, high, (6, 7))).astype(numpy)
    found = value_after(module, [x], DiscElementTypeConverterPass())
    assert found.dtype == numpy
    np.testing.assert_array_equal(found, fold.reduce(x, axis=0, dtype=numpy))


@pytest.mark.parametrize("padding", ["[[0, 1], [2, 2]]", "[[-1, 2], [0, -2]]", "[[3, 0], [1, 1]]"])
@pytest.mark.parametrize("dilation", ["", ", lhs_dilate = [2, 3]"])
@pytest.mark.parametrize("is_constant", [True, False])
def test_padding_that_is_not_the_same_on_both_sides(padding: str, dilation: str, *, is_constant: bool) -> None:
    """The value before the pass, for known and unknown padding, negative too, and in a dilated image."""
    pads = np.asarray(eval(padding), np.int32)
    constant = f'%p = hlo.constant {{name = "p"}} dense<{padding}> : tensor<2x2xi32>'
    parameter = '%p = hlo.parameter 2 {name = "p"} : tensor<2x2xi32>'
    text = f"""
hlo.computation @main entry {{
  %x = hlo.parameter 0 {{name = "x"}} : tensor<?x?x?x2xf32>
  %w = hlo.parameter 1 {{name = "w"}} : tensor<3x2x3x2xf32>
  {constant if is_constant else parameter}
  %y = hlo.dynamic_conv %x, %w, %p {{dim_labels = "b01f_o01i->b01f", name = "y", window = #hlo.window<size = [2, 3]{dilation}>}}
    : (tensor<?x?x?x2xf32>, tensor<3x2x3x2xf32>, tensor<2x2xi32>) -> tensor<?x?x?x3xf32>
  hlo.return %y : tensor<?x?x?x3xf32>
}}"""
    random = np.random.default_rng(1)
    inputs = [
        random.integers(-4, 5, (2, 5, 6, 2)).astype(np.float32),
        random.integers(-4, 5, (3, 2, 3, 2)).astype(np.float32),
    ]
    inputs += [] if is_constant else [pads]
    wanted = value_after(parsed(text), inputs)
    module = parsed(text)
    np.testing.assert_array_equal(value_after(module, inputs, DiscGpuConvPaddingPass()), wanted)
    np.testing.assert_array_equal(value_after(module, inputs, DiscConvRewriterPass()), wanted)


NESTED = """
module @m {
  func.func public @main(%x: tensor<?xf32>, %w: tensor<?xf32>, %n: tensor<i32>) -> tensor<?xf32> {
    %z = stablehlo.constant dense<0> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %r:2 = stablehlo.while(%i = %z, %a = %x) : tensor<i32>, tensor<?xf32>
    cond {
      %c = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %c : tensor<i1>
    } do {
      %q:2 = stablehlo.while(%j = %z, %b = %a) : tensor<i32>, tensor<?xf32>
      cond {
        %d = stablehlo.compare LT, %j, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %d : tensor<i1>
      } do {
        %e = stablehlo.negate %w : tensor<?xf32>
        %f = stablehlo.add %b, %e : tensor<?xf32>
        %k = stablehlo.add %j, %one : tensor<i32>
        stablehlo.return %k, %f : tensor<i32>, tensor<?xf32>
      }
      %l = stablehlo.add %i, %one : tensor<i32>
      stablehlo.return %l, %q#1 : tensor<i32>, tensor<?xf32>
    }
    return %r#1 : tensor<?xf32>
  }
}
"""


@pytest.mark.parametrize("trips", [0, 1, 3])
def test_what_an_inner_loop_does_not_change_leaves_both_loops(trips: int) -> None:
    module = parse_stablehlo(NESTED, "nested.mlir")
    for each in (DiscInlinerPass(), DiscLoopInvariantPass()):
        each.apply_to(module)
        module.verify()
    (negate,) = (op for op in module.walk() if isinstance(op, HloOp) and op.opcode == "negate")
    assert negate.parent_op() is entry_of(module)
    x, w = np.asarray([1, 2], np.float32), np.asarray([3, 5], np.float32)
    (found,) = evaluate(entry_of(module), [x, w, np.asarray(trips, np.int32)])
    np.testing.assert_array_equal(found, x - trips * trips * w)


@pytest.mark.parametrize("name", ["layer", "loop", "scan", "branches", "kernel_of_unknown_size"])
def test_no_op_reads_from_the_other_memory(name: str) -> None:
    """After all passes every operand is in the memory that its op expects: shapes on the host, data where the op is."""
    module = parse_stablehlo((CORPUS / f"{name}.mlir").read_text(), name)
    for each in PASSES:
        each.apply_to(module)
    checked = 0
    for op in module.walk():
        if not isinstance(op, HloOp) or not devices_of(op) or op.opcode in CONTROL or isinstance(op, TransferOp):
            if isinstance(op, TransferOp):
                owner = op.operands[0].owner
                assert isinstance(owner, HloOp)
                assert {*devices_of(op), *devices_of(owner)} == {HOST, GPU}
            continue
        shape = host_operands(op)
        for number, operand in enumerate(op.operands):
            owner = operand.owner
            assert isinstance(owner, HloOp)
            there = devices_of(owner)
            if len(there) != 1 or op.opcode in ("get-dimension-size", "get-tuple-element"):
                continue
            wanted = devices_of(op)[number] if op.opcode == "tuple" else HOST if number in shape else devices_of(op)[0]
            assert there == (wanted,), f"operand {number} of {op.opcode}"
            checked += 1
    assert checked > 20


def test_a_size_1_is_not_repeated_at_run_time() -> None:
    """In a branch no guard of the program compares the sizes: the op does, where NumPy would broadcast."""
    module = parsed(
        """
hlo.computation @main entry {
  %x = hlo.parameter 0 {name = "x"} : tensor<?xf32>
  %y = hlo.parameter 1 {name = "y"} : tensor<?xf32>
  %s = hlo.add %x, %y {name = "s"} : tensor<?xf32>
  hlo.return %s : tensor<?xf32>
}"""
    )
    with pytest.raises(DataError, match=r"%s = add: operands of shapes \[3\] and \[1\]"):
        evaluate(entry_of(module), [np.zeros(3, np.float32), np.zeros(1, np.float32)])
