"""Sizes of programs: names from JAX's text, every dimension known, guards that are checked before anything is computed."""

from functools import cache
from time import process_time
from typing import Any

import numpy as np
import pytest
from runtime.stablehlo_programs import CASES, CORPUS, inputs_of
from xdsl.dialects.builtin import ModuleOp

from xla_emitters.algebra.axes import Axes
from xla_emitters.algebra.facts import Facts
from xla_emitters.algebra.size import Size
from xla_emitters.algebra.size_text import parse_size
from xla_emitters.dialects.context import make_context
from xla_emitters.dialects.hlo.base import HloOp
from xla_emitters.dynamic.passes.disc_size_cse import DiscSizeCsePass
from xla_emitters.dynamic.sizes import ArgumentFacts, Sizes, sizes_of
from xla_emitters.dynamic.sizes.size_walk import Walk
from xla_emitters.dynamic.sizes.walked_array import Leaf, Value
from xla_emitters.errors import DataError, VerifyError
from xla_emitters.graph.entry import entry_of
from xla_emitters.runtime.reference.reference import evaluate
from xla_emitters.text.stablehlo import parse_stablehlo

SYMBOLIC = [name for name, case in CASES.items() if case.sizes != ({},)]
HLO_NAMES = {"float32": "f32", "float64": "f64", "int32": "s32", "int8": "s8", "uint32": "u32", "bool": "pred"}


@cache
def read(name: str) -> ModuleOp:
    """A program of the corpus; nothing here changes it."""
    return parse_stablehlo((CORPUS / f"{name}.mlir").read_text(), f"{name}.mlir")


@cache
def sizes_in(name: str) -> Sizes:
    return sizes_of(read(name))


def program(body: str, signature: str, result: str) -> Sizes:
    """The sizes of a StableHLO function of a few lines."""
    text = f"module @m {{\n  func.func public @main({signature}) -> {result} {{\n{body}\n  }}\n}}\n"
    return sizes_of(parse_stablehlo(text, "m.mlir"))


def named(sizes: Sizes, opcode: str) -> HloOp:
    """The only op with that opcode."""
    (found,) = {v.owner for v in sizes.walk.values if isinstance(v.owner, HloOp) and v.owner.opcode == opcode}
    return found


def arguments(name: str, sizes: dict[str, int]) -> list[ArgumentFacts]:
    return [
        ArgumentFacts(
            HLO_NAMES.get(array.dtype.name, {"bfloat16": "bf16", "float16": "f16"}.get(array.dtype.name, "?")),
            array.shape,
        )
        for array in inputs_of(name, sizes)
    ]


@pytest.mark.tiny
def test_every_dimension_of_the_layer_is_known() -> None:
    sizes = sizes_in("layer")
    assert sizes.unresolved == []
    assert len(sizes.walk.values) > 190
    assert [solved.symbol for solved in sizes.guards.plan.solved] == ["b", "s"]


@pytest.mark.parametrize("name", CASES)
def test_every_dimension_of_every_program_is_known(name: str) -> None:
    """No size of these programs depends on data; an implementation without a rule for one of their ops leaves some open."""
    assert sizes_in(name).unresolved == []


@pytest.mark.parametrize("name", SYMBOLIC)
def test_the_symbols_are_found_from_the_arguments(name: str) -> None:
    guards = sizes_in(name).guards
    for wanted in CASES[name].sizes:
        assert guards.check(arguments(name, dict(wanted))) == {k: v for k, v in wanted.items() if k in "bs"} | (
            {"s": wanted["s"]} if "s" in wanted else {}
        )


@pytest.mark.parametrize("name", SYMBOLIC)
def test_the_results_have_the_sizes_that_jax_computes(name: str) -> None:
    """The shape of every result, evaluated at the symbols' values, is that of JAX's array in the corpus."""
    module, expected = read(name), np.load(CORPUS / f"{name}.npz")
    sizes = sizes_in(name)
    entry = entry_of(module)
    for number, values in enumerate(CASES[name].sizes):
        for i, root in enumerate(entry.roots):
            shape = tuple(size.evaluate(values) for size in sizes.of(root) if size is not None)
            assert shape == expected[f"{number}/r{i}"].shape


def test_an_axis_is_written_over_jaxs_names() -> None:
    """`2*b` and `s + 1` of the specification, not d0 and d1."""
    guards = sizes_in("halves").guards
    assert guards.parameters[0].shape == (parse_size("2*b"), parse_size("s + 1"))
    assert guards.parameters[0].name == "x"


def test_without_names_symbols_are_numbered() -> None:
    sizes = program(
        "    %0 = stablehlo.add %a, %b : tensor<?x?xf32>\n    return %0 : tensor<?x?xf32>",
        "%a: tensor<?x?xf32>, %b: tensor<?x?xf32>",
        "tensor<?x?xf32>",
    )
    shapes = [parameter.shape for parameter in sizes.guards.parameters]
    assert shapes == [(Size.symbol("d0"), Size.symbol("d1"))] * 2


def test_jaxs_assertion_speaks_first_and_in_its_words() -> None:
    guards = sizes_in("masked_softmax").guards
    with pytest.raises(DataError) as caught:
        guards.check([ArgumentFacts("f32", (2, 3, 4)), ArgumentFacts("s32", (2,))])
    assert "Found inconsistency between dimension size args[0].shape[2] (= 4) and the specification 's' (= 3)" in str(
        caught.value
    )


def test_a_division_that_is_not_exact_is_jaxs_error() -> None:
    with pytest.raises(DataError, match="Division had remainder 1 when computing the value of 'b'"):
        sizes_in("halves").guards.check([ArgumentFacts("f32", (5, 3))])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (ArgumentFacts("f64", (2, 3, 32)), r"argument 0 \(p0\) 'x': type f64, expected f32"),
        (ArgumentFacts("f32", (2, 3)), r"argument 0 \(p0\) 'x': rank 2, expected 3"),
        (ArgumentFacts("f32", (2, 3, 31)), r"argument 0 \(p0\) 'x': axis 2 is 31, expected 32"),
        (ArgumentFacts("f32", (0, 3, 32)), "Expected value >= 1 for dimension variable 'b'"),
    ],
)
def test_an_argument_that_does_not_fit_is_named(given: ArgumentFacts, message: str) -> None:
    guards = sizes_in("layer").guards
    right = arguments("layer", {"b": 2, "s": 3})
    with pytest.raises(DataError, match=message):
        guards.check([given, *right[1:]])


def test_one_against_n_is_no_broadcast() -> None:
    """Elementwise operands have one size; a run with 1 and 5 stops before it computes."""
    sizes = program(
        "    %0 = stablehlo.add %a, %b : tensor<?xf32>\n    return %0 : tensor<?xf32>",
        "%a: tensor<?xf32>, %b: tensor<?xf32>",
        "tensor<?xf32>",
    )
    assert sizes.guards.check([ArgumentFacts("f32", (5,))] * 2) == {"d0": 5}
    with pytest.raises(DataError, match=r"argument 1 \(p1\): axis 0 is 1, but d0 is 5"):
        sizes.guards.check([ArgumentFacts("f32", (5,)), ArgumentFacts("f32", (1,))])


def test_known_sizes_that_cannot_be_equal_are_an_error_at_the_op() -> None:
    with pytest.raises(VerifyError) as caught:
        program(
            "    %0 = stablehlo.constant dense<4> : tensor<1xi32>\n"
            "    %1 = stablehlo.dynamic_iota %0, dim = 0 : (tensor<1xi32>) -> tensor<?xf32>\n"
            "    %2 = stablehlo.constant dense<5> : tensor<1xi32>\n"
            "    %3 = stablehlo.dynamic_iota %2, dim = 0 : (tensor<1xi32>) -> tensor<?xf32>\n"
            "    %4 = stablehlo.add %1, %3 : tensor<?xf32>\n    return %4 : tensor<?xf32>",
            "",
            "tensor<?xf32>",
        )
    assert "sizes differ: 4 and 5" in str(caught.value)
    assert caught.value.place.line == 7


def test_a_size_that_is_data_is_not_known_and_a_slice_of_n_from_there_is() -> None:
    sizes = program(
        "    %n = stablehlo.constant dense<3> : tensor<1xi32>\n    %one = stablehlo.constant dense<1> : tensor<1xi32>\n"
        "    %e = stablehlo.add %i, %n : tensor<1xi32>\n"
        "    %0 = stablehlo.real_dynamic_slice %x, %i, %e, %one : "
        "(tensor<?xf32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<?xf32>\n"
        "    %1 = stablehlo.dynamic_iota %i, dim = 0 : (tensor<1xi32>) -> tensor<?xf32>\n    return %0, %1 : tensor<?xf32>, tensor<?xf32>",
        "%x: tensor<?xf32>, %i: tensor<1xi32>",
        "(tensor<?xf32>, tensor<?xf32>)",
    )
    assert sizes.of(named(sizes, "real-dynamic-slice").result) == (Size.constant(3),)
    assert sizes.of(named(sizes, "dynamic-iota").result) == (None,)


def test_a_gather_from_an_axis_without_elements_stops_the_run() -> None:
    """Its start is clamped into [0, size - 1], and there is no element 0; also where no row is gathered, as at known sizes."""
    dims = "offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1"
    sizes = program(
        f'    %0 = "stablehlo.gather"(%x, %i) <{{dimension_numbers = #stablehlo.gather<{dims}>, slice_sizes = array<i64: 1, 3>}}> : '
        "(tensor<?x3xf32>, tensor<?x1xi32>) -> tensor<?x3xf32>\n    return %0 : tensor<?x3xf32>",
        "%x: tensor<?x3xf32>, %i: tensor<?x1xi32>",
        "tensor<?x3xf32>",
    )
    sizes.guards.check([ArgumentFacts("f32", (1, 3)), ArgumentFacts("s32", (2, 1))])
    for rows in (0, 2):
        with pytest.raises(DataError, match=r"gather: the range from 0 to 1 .* not inside an axis of size 0"):
            sizes.guards.check([ArgumentFacts("f32", (0, 3)), ArgumentFacts("s32", (rows, 1))])


def test_a_window_of_updates_that_is_larger_than_the_array_stops_the_run() -> None:
    dims = "update_window_dims = [0, 1], scatter_dims_to_operand_dims = [1], index_vector_dim = 0"
    sizes = program(
        f'    %0 = "stablehlo.scatter"(%x, %i, %u) <{{scatter_dimension_numbers = #stablehlo.scatter<{dims}>}}> ({{\n'
        "    ^bb0(%a: tensor<f32>, %b: tensor<f32>):\n      stablehlo.return %b : tensor<f32>\n"
        "    }) : (tensor<?x?xf32>, tensor<1xi32>, tensor<?x2xf32>) -> tensor<?x?xf32>\n    return %0 : tensor<?x?xf32>",
        "%x: tensor<?x?xf32>, %i: tensor<1xi32>, %u: tensor<?x2xf32>",
        "tensor<?x?xf32>",
    )
    indices = ArgumentFacts("s32", (1,))
    sizes.guards.check([ArgumentFacts("f32", (3, 2)), indices, ArgumentFacts("f32", (3, 2))])
    sizes.guards.check([ArgumentFacts("f32", (3, 9)), indices, ArgumentFacts("f32", (1, 2))])
    with pytest.raises(DataError, match=r"scatter: the range from 0 to 2 .* not inside an axis of size 1"):
        sizes.guards.check([ArgumentFacts("f32", (3, 1)), indices, ArgumentFacts("f32", (3, 2))])
    with pytest.raises(DataError, match=r"scatter: the range from 0 to d2 is 0 to 4, not inside an axis of size 3"):
        sizes.guards.check([ArgumentFacts("f32", (3, 2)), indices, ArgumentFacts("f32", (4, 2))])


def test_more_of_the_largest_than_there_are_stop_the_run() -> None:
    sizes = program(
        "    %k = stablehlo.get_dimension_size %y, dim = 0 : (tensor<?xf32>) -> tensor<i32>\n"
        "    %0:2 = stablehlo.custom_call @stablehlo.dynamic_top_k(%x, %k) : "
        "(tensor<2x?xf32>, tensor<i32>) -> (tensor<2x?xf32>, tensor<2x?xi32>)\n    return %0#0 : tensor<2x?xf32>",
        "%x: tensor<2x?xf32>, %y: tensor<?xf32>",
        "tensor<2x?xf32>",
    )
    sizes.guards.check([ArgumentFacts("f32", (2, 5)), ArgumentFacts("f32", (5,))])
    with pytest.raises(
        DataError, match=r"dynamic-top-k: the range from 0 to d1 is 0 to 6, not inside an axis of size 5"
    ):
        sizes.guards.check([ArgumentFacts("f32", (2, 5)), ArgumentFacts("f32", (6,))])


def test_a_batch_of_transforms_has_the_sizes_of_the_operand() -> None:
    sizes = program(
        "    %0 = stablehlo.fft %x, type = RFFT, length = [8] : (tensor<?x8xf32>) -> tensor<?x5xcomplex<f32>>\n"
        "    return %0 : tensor<?x5xcomplex<f32>>",
        "%x: tensor<?x8xf32>",
        "tensor<?x5xcomplex<f32>>",
    )
    assert sizes.of(named(sizes, "fft").result) == (Size.symbol("d0"), Size.constant(5))


def test_the_parts_of_a_bitcast_are_a_dimension() -> None:
    sizes = program(
        "    %0 = stablehlo.bitcast_convert %x : (tensor<?xf32>) -> tensor<?x4xui8>\n"
        "    %1 = stablehlo.bitcast_convert %0 : (tensor<?x4xui8>) -> tensor<?xi32>\n    return %1 : tensor<?xi32>",
        "%x: tensor<?xf32>",
        "tensor<?xi32>",
    )
    assert not sizes.unresolved


def test_a_product_of_sizes_that_32_bits_do_not_hold_stops_the_run() -> None:
    """JAX multiplies sizes in s32: 65536 * 65537 wraps around to 65536, which looks like a size."""
    sizes = program(
        "    %0 = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?x?xi8>) -> tensor<i32>\n"
        "    %1 = stablehlo.get_dimension_size %x, dim = 1 : (tensor<?x?xi8>) -> tensor<i32>\n"
        "    %2 = stablehlo.multiply %0, %1 : tensor<i32>\n    %3 = stablehlo.reshape %2 : (tensor<i32>) -> tensor<1xi32>\n"
        "    %4 = stablehlo.dynamic_reshape %x, %3 : (tensor<?x?xi8>, tensor<1xi32>) -> tensor<?xi8>\n    return %4 : tensor<?xi8>",
        "%x: tensor<?x?xi8>",
        "tensor<?xi8>",
    )
    assert sizes.guards.check([ArgumentFacts("s8", (4, 5))]) == {"d0": 4, "d1": 5}
    with pytest.raises(DataError, match=r"the size d0\*d1 is 4295032832, which 32 bits do not hold"):
        sizes.guards.check([ArgumentFacts("s8", (65536, 65537))])


def test_a_loop_that_grows_its_array_leaves_the_size_open() -> None:
    """The body's array is one longer each time; what the loop carries unchanged keeps its size."""
    text = (CORPUS / "scan.mlir").read_text()
    assert "stablehlo.while" in text
    sizes = sizes_of(parse_stablehlo(text, "scan.mlir"))
    (loop,) = (value for value in sizes.walk.values if isinstance(value.owner, HloOp) and value.owner.opcode == "while")
    assert sizes.walk.values[loop]
    grown = """
module @m {
  func.func public @main(%x: tensor<?xf32>) -> tensor<?xf32> {
    %z = stablehlo.constant dense<0> : tensor<i32>
    %r:2 = stablehlo.while(%i = %z, %a = %x) : tensor<i32>, tensor<?xf32>
    cond {
      %n = stablehlo.constant dense<3> : tensor<i32>
      %c = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %c : tensor<i1>
    } do {
      %one = stablehlo.constant dense<1> : tensor<i32>
      %j = stablehlo.add %i, %one : tensor<i32>
      %f = stablehlo.constant dense<0.0> : tensor<1xf32>
      %b = stablehlo.concatenate %a, %f, dim = 0 : (tensor<?xf32>, tensor<1xf32>) -> tensor<?xf32>
      stablehlo.return %j, %b : tensor<i32>, tensor<?xf32>
    }
    return %r#1 : tensor<?xf32>
  }
}
"""
    module = parse_stablehlo(grown, "grown.mlir")
    entry = entry_of(module)
    assert sizes_of(module).of(entry.root) == (None,)


def test_sizes_that_meet_in_a_branch_alone_are_no_condition_of_the_program() -> None:
    """The branch may not run: a call with other sizes is right as long as it does not."""
    text = """
module @m {
  func.func public @main(%x: tensor<?xf32>, %y: tensor<?xf32>, %p: tensor<i1>) -> tensor<?xf32> {
    %r = "stablehlo.if"(%p) ({
      %s = stablehlo.add %x, %y : tensor<?xf32>
      stablehlo.return %s : tensor<?xf32>
    }, {
      stablehlo.return %x : tensor<?xf32>
    }) : (tensor<i1>) -> tensor<?xf32>
    return %r : tensor<?xf32>
  }
}
"""
    sizes = sizes_of(parse_stablehlo(text, "m.mlir"))
    assert sizes.guards.check([ArgumentFacts("f32", (2,)), ArgumentFacts("f32", (3,)), ArgumentFacts("pred", ())]) == {
        "d0": 2,
        "d1": 3,
    }
    assert [op.opcode for op in sizes.walk.unproved] == ["add"]


SCATTERED = """
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %r = "stablehlo.select_and_scatter"(%x, %s, %zero) <{window_dimensions = array<i64: 2>, window_strides = array<i64: 2>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %1 = stablehlo.compare GE, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %1 : tensor<i1>
    }, {
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %1 = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %1 : tensor<f32>
    }) : (tensor<?xf32>, tensor<?xf32>, tensor<f32>) -> tensor<?xf32>
"""


@pytest.mark.parametrize(("size", "places"), [(0, 0), (1, 0), (6, 3), (7, 3)])
def test_a_window_that_scatters_has_one_source_for_each_place(size: int, places: int) -> None:
    signature = "%x: tensor<?xf32>, %s: tensor<?xf32>"
    sizes = program(f"{SCATTERED} return %r : tensor<?xf32>", signature, "tensor<?xf32>")
    assert not sizes.walk.unproved
    sizes.guards.check([ArgumentFacts("f32", (size,)), ArgumentFacts("f32", (places,))])
    for wrong in {abs(places - 1), places + 1}:
        with pytest.raises(DataError, match="argument 1"):
            sizes.guards.check([ArgumentFacts("f32", (size,)), ArgumentFacts("f32", (wrong,))])
    # In a branch it checks itself, so that no kernel takes it.
    branch = f"""
    %q = "stablehlo.if"(%p) ({{ {SCATTERED}
      stablehlo.return %r : tensor<?xf32>
    }}, {{ stablehlo.return %x : tensor<?xf32> }}) : (tensor<i1>) -> tensor<?xf32>
    return %q : tensor<?xf32>"""
    unproved = program(branch, f"{signature}, %p: tensor<i1>", "tensor<?xf32>").walk.unproved
    assert [op.opcode for op in unproved] == ["select-and-scatter"]


def test_the_report_says_where_symbols_are_from_and_what_is_checked() -> None:
    report = sizes_in("halves").report()
    assert "b     argument 0 (p0) 'x', axis 0, which is 2*b" in report
    assert "argument 0 (p0) 'x' is f32[2*b,s + 1]" in report
    assert "mod(p0_0, 2) == 0 (said by the program)" in report
    assert report.endswith("0 that depend on data")


@pytest.mark.parametrize("name", ["masked_softmax", "halves", "reversed", "update_slice", "gradient"])
def test_a_call_is_refused_exactly_where_jaxs_assertions_refuse_it(name: str) -> None:
    """Sizes drawn at random: the guards stop with the sentence with which the program's own assertions stop, and only then."""
    module = read(name)
    guards = sizes_in(name).guards
    entry = entry_of(module)
    random = np.random.default_rng(7)
    examples = inputs_of(name, {"b": 2, "s": 3})
    refused = 0
    for _ in range(60):
        drawn: list[tuple[int, ...]] = [
            tuple(int(random.integers(0, 5)) for _ in array.shape) if random.random() < 0.5 else array.shape
            for array in examples
        ]
        fixed = [
            tuple(
                size if wanted.value is None else wanted.value
                for size, wanted in zip(shape, parameter.shape, strict=True)
            )
            for shape, parameter in zip(drawn, guards.parameters, strict=True)
        ]
        inputs = [np.zeros(shape, array.dtype) for shape, array in zip(fixed, examples, strict=True)]
        given = [ArgumentFacts(HLO_NAMES[array.dtype.name], array.shape) for array in inputs]
        said = ""
        try:
            evaluate(entry, inputs)
        except DataError as error:
            said = error.message
        if not said:
            assert guards.check(given)
            continue
        refused += 1
        with pytest.raises(DataError) as caught:
            guards.check(given)
        assert caught.value.message == said
    assert 10 < refused < 60


def test_the_work_grows_with_the_program() -> None:
    """Twice the ops: no more than three times the time, and 2,000 ops in a few seconds on any machine."""
    times = list[float]()
    for count in (500, 1000, 2000):
        lines = [f"    %{n + 1} = stablehlo.add %{n}, %{n} : tensor<?x?xf32>" for n in range(count)]
        text = "\n".join(
            ["    %0 = stablehlo.negate %x : tensor<?x?xf32>", *lines, f"    return %{count} : tensor<?x?xf32>"]
        )
        module = parse_stablehlo(
            f"module @m {{\n  func.func public @main(%x: tensor<?x?xf32>) -> tensor<?x?xf32> {{\n{text}\n  }}\n}}",
            "m.mlir",
        )
        start = process_time()
        assert sizes_of(module).unresolved == []
        times.append(process_time() - start)
    assert times[2] < 5
    assert times[2] < 9 * times[0] + 0.2


class Counting(Walk):
    """Counts the arrays that it makes: one for each op each time that it is walked."""

    arrays = 0

    def made(self, *args: Any, **named: Any) -> Value:
        self.arrays += 1
        return super().made(*args, **named)


def nested_loops(depth: int) -> ModuleOp:
    """Loops in each other, each of which changes its counter, and the innermost the array too."""
    text = "%b0 = stablehlo.exponential %a0 : tensor<?xf32>"
    for level in range(depth):
        at, inner = f"{level + 1}", f"{level}"
        text = f"""
    %r{at}:2 = stablehlo.while(%i{inner} = %i{at}, %a{inner} = %a{at}) : tensor<i32>, tensor<?xf32>
    cond {{
      %n{at} = stablehlo.constant dense<3> : tensor<i32>
      %c{at} = stablehlo.compare LT, %i{inner}, %n{at}, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %c{at} : tensor<i1>
    }} do {{
      {text}
      %one{at} = stablehlo.constant dense<1> : tensor<i32>
      %j{at} = stablehlo.add %i{inner}, %one{at} : tensor<i32>
      stablehlo.return %j{at}, {"%b0" if level == 0 else f"%r{level}#1"} : tensor<i32>, tensor<?xf32>
    }}"""
    signature = f"%a{depth}: tensor<?xf32>, %i{depth}: tensor<i32>"
    body = f"{text}\n    return %r{depth}#1 : tensor<?xf32>"
    return parse_stablehlo(
        f"module @m {{\n  func.func public @main({signature}) -> tensor<?xf32> {{\n{body}\n  }}\n}}\n", "m.mlir"
    )


def test_the_work_grows_with_the_square_of_nested_loops_at_most() -> None:
    """An outer loop's trials do not repeat what its inner loops found."""
    arrays = list[int]()
    for depth in (2, 4, 8):
        entry = entry_of(nested_loops(depth))
        walk = Counting(Axes(Facts.of_symbols("b", 0, "a size")))
        walk.entry(entry, [[Size.symbol("b")], []], ["x", "i"])
        (result,) = walk.values[entry.root]
        assert isinstance(result, Leaf)
        assert walk.size(result.axis(0)) == Size.symbol("b")
        arrays.append(walk.arrays)
    assert max(arrays[1] / arrays[0], arrays[2] / arrays[1]) < 4, arrays


BOUNDED = """
func.func @main(%x: tensor<?x?xf32, #stablehlo.bounds<8, ?>>, %y: tensor<?xf32, #stablehlo.bounds<3>>)
    -> tensor<?x?xf32, #stablehlo.bounds<8, ?>> {
  %0 = stablehlo.exponential %x : tensor<?x?xf32, #stablehlo.bounds<8, ?>>
  return %0 : tensor<?x?xf32, #stablehlo.bounds<8, ?>>
}
"""


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        ((8, 100), (3,), ""),
        ((0, 0), (0,), ""),
        ((9, 2), (3,), r"argument 0 \(p0\): axis 0 is 9, its bound is 8"),
        ((8, 2), (4,), r"argument 1 \(p1\): axis 0 is 4, its bound is 3"),
    ],
)
def test_an_argument_is_at_most_as_large_as_its_types_bound(
    x: tuple[int, ...], y: tuple[int, ...], message: str
) -> None:
    guards = sizes_of(parse_stablehlo(BOUNDED, "<bounded>")).guards
    given = [ArgumentFacts("f32", x), ArgumentFacts("f32", y)]
    if not message:
        assert guards.check(given) == {"d0": x[0], "d1": x[1], "d2": y[0]}
        return
    with pytest.raises(DataError, match=message):
        guards.check(given)


@pytest.mark.parametrize("name", SYMBOLIC)
def test_a_walk_of_the_assertions_gives_the_names_that_a_walk_of_all_gives(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    report = sizes_in(name).report()
    monkeypatch.setattr("xla_emitters.dynamic.sizes.program.last_assertion", lambda entry: None)
    assert sizes_of(read(name)).report() == report


def test_a_function_of_sizes_is_walked_once_for_the_same_numbers() -> None:
    """Two calls with n, one with n + 1; what is drawn is another number in each call."""
    text = """module @m {
      func.func public @main(%x: tensor<?xf32>) -> (tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) {
        %n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?xf32>) -> tensor<i32>
        %one = stablehlo.constant dense<1> : tensor<i32>
        %m = stablehlo.add %n, %one : tensor<i32>
        %a = call @half(%n) : (tensor<i32>) -> tensor<i32>
        %b = call @half(%n) : (tensor<i32>) -> tensor<i32>
        %c = call @half(%m) : (tensor<i32>) -> tensor<i32>
        %d = call @draw(%n) : (tensor<i32>) -> tensor<i32>
        %e = call @draw(%n) : (tensor<i32>) -> tensor<i32>
        return %a, %b, %c, %d, %e : tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>
      }
      func.func private @half(%k: tensor<i32>) -> tensor<i32> {
        %two = stablehlo.constant dense<2> : tensor<i32>
        %q = stablehlo.divide %k, %two : tensor<i32>
        return %q : tensor<i32>
      }
      func.func private @draw(%k: tensor<i32>) -> tensor<i32> {
        %zero = stablehlo.constant dense<0> : tensor<i32>
        %shape = stablehlo.constant dense<> : tensor<0xi64>
        %r = stablehlo.rng %zero, %k, %shape, distribution = UNIFORM : (tensor<i32>, tensor<i32>, tensor<0xi64>) -> tensor<i32>
        return %r : tensor<i32>
      }
    }"""
    sizes = sizes_of(parse_stablehlo(text, "m.mlir"))
    quotient, drawn = named(sizes, "divide"), named(sizes, "rng")
    assert len(sizes.walk.values[quotient.result]) == 2
    first, second = sizes.walk.values[drawn.result]
    assert isinstance(first, Leaf)
    assert isinstance(second, Leaf)
    assert first.elements != second.elements


ASSERTED = """
  %one = stablehlo.constant dense<1> : tensor<i32>
  %two = stablehlo.constant dense<2> : tensor<i32>
  %n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?xf32>) -> tensor<i32>
  %m = stablehlo.get_dimension_size %y, dim = 0 : (tensor<?xf32>) -> tensor<i32>
  %o1 = stablehlo.compare GE, %n, %one : (tensor<i32>, tensor<i32>) -> tensor<i1>
  %o2 = stablehlo.compare GE, %m, %one : (tensor<i32>, tensor<i32>) -> tensor<i1>
"""
SAYS = """
  stablehlo.custom_call @shape_assertion({0}) {{error_message = "{1}", has_side_effect = true}} : ({2}) -> ()
"""
NAMED = SAYS.format("%o1, %n", "'a' = {0} from specification 'a'", "tensor<i1>, tensor<i32>") + SAYS.format(
    "%o2, %m", "'b' = {0} from specification 'b'", "tensor<i1>, tensor<i32>"
)
HALVED = """
  func.func private @ratio(%k: tensor<i32>, %l: tensor<i32>) -> tensor<i32> {
    %q = stablehlo.divide %k, %l : tensor<i32>
    return %q : tensor<i32>
  }"""
BEHIND_THE_NAMES = {
    "an op makes two names equal": NAMED + "%z = stablehlo.add %x, %y : tensor<?xf32>",
    "an op makes a name a number": NAMED
    + """%w = stablehlo.constant dense<1.0> : tensor<4xf32>
    %z = stablehlo.add %x, %w : (tensor<?xf32>, tensor<4xf32>) -> tensor<4xf32>""",
    "an assertion of what a loop returns": NAMED
    + """%r:2 = stablehlo.while(%i = %one, %k = %n) : tensor<i32>, tensor<i32>
      cond { %l = stablehlo.compare LT, %i, %two : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %l : tensor<i1> }
      do { %j = stablehlo.add %i, %one : tensor<i32>
        stablehlo.return %j, %k : tensor<i32>, tensor<i32> }
    %o3 = stablehlo.compare GE, %r#1, %m : (tensor<i32>, tensor<i32>) -> tensor<i1>
    """
    + SAYS.format("%o3, %r#1", "a is {0}", "tensor<i1>, tensor<i32>"),
    "an assertion behind an op": NAMED
    + """%w = stablehlo.constant dense<1.0> : tensor<4xf32>
    %z = stablehlo.add %x, %w : (tensor<?xf32>, tensor<4xf32>) -> tensor<4xf32>
    %four = stablehlo.constant dense<4> : tensor<i32>
    %o3 = stablehlo.compare NE, %n, %four : (tensor<i32>, tensor<i32>) -> tensor<i1>
    """
    + SAYS.format("%o3, %n", "never {0}", "tensor<i1>, tensor<i32>"),
    "a call before an assertion and behind it": """%q0 = call @ratio(%n, %m) : (tensor<i32>, tensor<i32>) -> tensor<i32>
    """
    + NAMED
    + """%q = call @ratio(%n, %m) : (tensor<i32>, tensor<i32>) -> tensor<i32>
    %o3 = stablehlo.compare GE, %q, %one : (tensor<i32>, tensor<i32>) -> tensor<i1>
    """
    + SAYS.format("%o3, %q", "the quotient is {0}", "tensor<i1>, tensor<i32>"),
}


@pytest.mark.parametrize("body", BEHIND_THE_NAMES.values(), ids=BEHIND_THE_NAMES)
def test_what_follows_the_names_is_not_lost(body: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The report is that of a walk of all ops, in which each call is walked."""
    text = f"""module @m {{
      func.func public @main(%x: tensor<?xf32>, %y: tensor<?xf32>) -> tensor<?xf32> {{{ASSERTED}{body}
        return %x : tensor<?xf32>
      }}{HALVED}
    }}"""
    report = sizes_of(parse_stablehlo(text, "m.mlir")).report()
    monkeypatch.setattr("xla_emitters.dynamic.sizes.program.last_assertion", lambda entry: None)
    monkeypatch.setattr(Walk, "_call", Walk.run)
    assert sizes_of(parse_stablehlo(text, "m.mlir")).report() == report


def test_equal_calls_around_an_assertion_are_two() -> None:
    """What the assertion says of m holds for the second quotient alone."""
    body = BEHIND_THE_NAMES["a call before an assertion and behind it"]
    text = f"""module @m {{
      func.func public @main(%x: tensor<?xf32>, %y: tensor<?xf32>) -> tensor<?xf32> {{{ASSERTED}{body}
        return %x : tensor<?xf32>
      }}{HALVED}
    }}"""
    module = parse_stablehlo(text, "m.mlir")
    report = sizes_of(module).report()
    DiscSizeCsePass().apply(make_context(), module)
    assert sizes_of(module).report().splitlines()[:-1] == report.splitlines()[:-1]
