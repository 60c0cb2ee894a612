"""MHLO, xla_hlo and MLIR's std dialect as they were printed from 2020 to 2022; values are NumPy's."""

import re
from typing import Any

import numpy as np
import pytest

import xla_emitters as xe
from xla_emitters.errors import ParseError, Unsupported, VerifyError
from xla_emitters.graph.entry import entry_of
from xla_emitters.runtime.reference.reference import evaluate
from xla_emitters.text.stablehlo import is_stablehlo, parse_stablehlo

X = np.asarray([[1, -2, 3], [4, 0.5, -6]], np.float32)
Y = np.asarray([[2, -2, 1], [4, 1, -7]], np.float32)
W = np.asarray([[1, 2], [0, -1], [3, 1]], np.float32)
T = "tensor<2x3xf32>"


def run(text: str, *arrays: Any) -> list[Any]:
    assert is_stablehlo(text)
    return evaluate(entry_of(parse_stablehlo(text, "old.mlir")), list(arrays))


def of_op(op: str, result: str, *arrays: Any) -> Any:
    """The result of one op of `%x`, `%y`, `%w`, in a function as it was printed in 2021."""
    names = ("%x", "%y", "%w")[: len(arrays)]
    types = {"%x": T, "%y": T, "%w": "tensor<3x2xf32>"}
    listed = ", ".join(f"{name}: {types[name]}" for name in names)
    return run(f"func @main({listed}) -> {result} {{\n  {op}\n  return %r : {result}\n}}", *arrays)[0]


@pytest.mark.parametrize(
    "attributes",
    [
        'comparison_direction = "LE"',
        'comparison_direction = "LE", compare_type = "FLOAT"',
        'comparison_direction = #mhlo<"comparison_direction LE">',
        'comparison_direction = #mhlo<"comparison_direction LE">, compare_type = #mhlo<"comparison_type FLOAT">',
        "comparison_direction = #mhlo<comparison_direction LE>, compare_type = #mhlo<comparison_type FLOAT>",
    ],
)
@pytest.mark.parametrize("dialect", ["mhlo", "xla_hlo"])
def test_a_comparison(attributes: str, dialect: str) -> None:
    op = f'%r = "{dialect}.compare"(%x, %y) {{{attributes}}} : ({T}, {T}) -> tensor<2x3xi1>'
    np.testing.assert_array_equal(of_op(op, "tensor<2x3xi1>", X, Y), X <= Y)


DOT = (
    "{lhs_batching_dimensions = dense<> : tensor<0xi64>, lhs_contracting_dimensions = dense<1> : tensor<1xi64>,"
    " rhs_batching_dimensions = dense<> : tensor<0xi64>, rhs_contracting_dimensions = dense<0> : tensor<1xi64>}"
)


@pytest.mark.parametrize(
    "attributes",
    [
        f'dot_dimension_numbers = {DOT}, precision_config = ["DEFAULT", "DEFAULT"]',
        "dot_dimension_numbers = #mhlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>,"
        ' precision_config = [#mhlo<"precision DEFAULT">, #mhlo<"precision HIGHEST">]',
    ],
)
def test_a_product(attributes: str) -> None:
    op = f'%r = "mhlo.dot_general"(%x, %w) {{{attributes}}} : ({T}, tensor<3x2xf32>) -> tensor<2x2xf32>'
    text = f"func @main(%x: {T}, %w: tensor<3x2xf32>) -> tensor<2x2xf32> {{\n{op}\nreturn %r : tensor<2x2xf32>\n}}"
    np.testing.assert_array_equal(run(text, X, W)[0], X @ W)


def test_lists_are_literals() -> None:
    i64 = "tensor<2xi64>"
    cases = [
        (f'"mhlo.transpose"(%x) {{permutation = dense<[1, 0]> : {i64}}}', "tensor<3x2xf32>", X.T),
        (
            f'"mhlo.slice"(%x) {{start_indices = dense<[0, 1]> : {i64}, limit_indices = dense<[2, 3]> : {i64},'
            f" strides = dense<1> : {i64}}}",
            "tensor<2x2xf32>",
            X[:, 1:],
        ),
        ('"mhlo.reverse"(%x) {dimensions = dense<1> : tensor<1xi64>}', T, X[:, ::-1]),
        (
            f'"mhlo.broadcast_in_dim"(%x) {{broadcast_dimensions = dense<[1, 2]> : {i64}}}',
            "tensor<2x2x3xf32>",
            np.broadcast_to(X, (2, 2, 3)),
        ),
        ('"mhlo.copy"(%x)', T, X),
        ('"mhlo.domain"(%x) {kind = #mhlo<kind sharding>}', T, X),
        ('"mhlo.bitcast"(%x)', "tensor<6xf32>", X.reshape(6)),
        ('"xla_hlo.abs"(%x)', T, np.abs(X)),
        ("mhlo.abs %x", T, np.abs(X)),
        ("xla_hlo.negate(%x)", T, -X),
    ]
    for op, result, wanted in cases:
        types = "" if op.endswith("%x") else f"({T}) -> "
        np.testing.assert_array_equal(of_op(f"%r = {op} : {types}{result}", result, X), wanted, err_msg=op)


@pytest.mark.parametrize("name", ["dynamic-slice", "dynamic_slice"])
def test_a_slice_that_begins_where_data_says(name: str) -> None:
    text = f"""func @main(%x: {T}, %i: tensor<i32>, %j: tensor<i32>) -> tensor<1x2xf32> {{
      %r = "mhlo.{name}"(%x, %i, %j) {{slice_sizes = dense<[1, 2]> : tensor<2xi64>}}
        : ({T}, tensor<i32>, tensor<i32>) -> tensor<1x2xf32>
      return %r : tensor<1x2xf32>
    }}"""
    np.testing.assert_array_equal(run(text, X, np.int32(1), np.int32(1))[0], X[1:, 1:])


def test_the_largest_elements_are_mhlos_topk() -> None:
    text = f"""func.func @main(%x: {T}) -> (tensor<2x2xf32>, tensor<2x2xi32>) {{
      %r:2 = "mhlo.topk"(%x) {{k = 2 : i64, largest = true}} : ({T}) -> (tensor<2x2xf32>, tensor<2x2xi32>)
      return %r#0, %r#1 : tensor<2x2xf32>, tensor<2x2xi32>
    }}"""
    values, places = run(text, X)
    np.testing.assert_array_equal(values, [[3, 1], [4, 0.5]])
    np.testing.assert_array_equal(places, [[2, 0], [0, 1]])


CONVOLVED = (
    "{input_batch_dimension = 0 : i64, input_feature_dimension = 2 : i64, input_spatial_dimensions = dense<1> : tensor<1xi64>,"
    " kernel_input_feature_dimension = 1 : i64, kernel_output_feature_dimension = 2 : i64,"
    " kernel_spatial_dimensions = dense<0> : tensor<1xi64>, output_batch_dimension = 0 : i64,"
    " output_feature_dimension = 2 : i64, output_spatial_dimensions = dense<1> : tensor<1xi64>}"
)
NUMBERED = re.sub(r"dense<(.)> : tensor<1xi64>", r"[\1]", CONVOLVED[1:-1]).replace(" : i64", "")


@pytest.mark.parametrize(
    "labels",
    [
        CONVOLVED,
        f"#mhlo.conv.raw<{NUMBERED}>",
        f"#stablehlo.conv<raw {NUMBERED}>",
        "#mhlo.conv<[b, 0, f]x[0, i, o]->[b, 0, f]>",
    ],
)
def test_a_convolution_of_numbered_dimensions(labels: str) -> None:
    draws = np.random.default_rng(0)
    image = draws.integers(-3, 4, (1, 5, 2)).astype(np.float32)
    kernel = draws.integers(-3, 4, (2, 2, 3)).astype(np.float32)
    types = ("tensor<1x5x2xf32>", "tensor<2x2x3xf32>", "tensor<1x4x3xf32>")
    text = f"""func @main(%x: {types[0]}, %k: {types[1]}) -> {types[2]} {{
      %r = "mhlo.convolution"(%x, %k) {{batch_group_count = 1 : i64, dimension_numbers = {labels},
        feature_group_count = 1 : i64, padding = dense<0> : tensor<1x2xi64>, rhs_dilation = dense<1> : tensor<1xi64>,
        window_strides = dense<1> : tensor<1xi64>}} : ({types[0]}, {types[1]}) -> {types[2]}
      return %r : {types[2]}
    }}"""
    windows = np.stack([image[:, i : i + 2] for i in range(4)], 1)
    np.testing.assert_array_equal(run(text, image, kernel)[0], np.einsum("bowi,wif->bof", windows, kernel))


@pytest.mark.parametrize("which", [False, True])
def test_a_branch_gets_its_operand(which: bool) -> None:
    text = f"""func @main(%p: tensor<i1>, %x: {T}, %y: {T}) -> {T} {{
      %r = "mhlo.if"(%p, %x, %y) ( {{
      ^bb0(%a: {T}):  // no predecessors
        %0 = "mhlo.negate"(%a) : ({T}) -> {T}
        "mhlo.return"(%0) : ({T}) -> ()
      }},  {{
      ^bb0(%b: {T}):  // no predecessors
        %0 = mhlo.add %b, %x : {T}
        "mhlo.return"(%0) : ({T}) -> ()
      }}) : (tensor<i1>, {T}, {T}) -> {T}
      return %r : {T}
    }}"""
    np.testing.assert_array_equal(run(text, np.asarray(which), X, Y)[0], -X if which else X + Y)


def test_a_loop_over_one_tuple() -> None:
    text = """func @main(%n: tensor<i32>) -> tensor<i32> {
      %zero = mhlo.constant dense<0> : tensor<i32>
      %first = "mhlo.tuple"(%zero, %n) : (tensor<i32>, tensor<i32>) -> tuple<tensor<i32>, tensor<i32>>
      %last = "mhlo.while"(%first) ( {
      ^bb0(%s: tuple<tensor<i32>, tensor<i32>>):
        %i = "mhlo.get_tuple_element"(%s) {index = 1 : i32} : (tuple<tensor<i32>, tensor<i32>>) -> tensor<i32>
        %c = mhlo.constant dense<0> : tensor<i32>
        %more = "mhlo.compare"(%i, %c) {comparison_direction = "GT"} : (tensor<i32>, tensor<i32>) -> tensor<i1>
        "mhlo.return"(%more) : (tensor<i1>) -> ()
      },  {
      ^bb0(%s: tuple<tensor<i32>, tensor<i32>>):
        %sum = "mhlo.get_tuple_element"(%s) {index = 0 : i32} : (tuple<tensor<i32>, tensor<i32>>) -> tensor<i32>
        %i = "mhlo.get_tuple_element"(%s) {index = 1 : i32} : (tuple<tensor<i32>, tensor<i32>>) -> tensor<i32>
        %one = mhlo.constant dense<1> : tensor<i32>
        %more = mhlo.add %sum, %i : tensor<i32>
        %less = mhlo.subtract %i, %one : tensor<i32>
        %next = "mhlo.tuple"(%more, %less) : (tensor<i32>, tensor<i32>) -> tuple<tensor<i32>, tensor<i32>>
        "mhlo.return"(%next) : (tuple<tensor<i32>, tensor<i32>>) -> ()
      }) : (tuple<tensor<i32>, tensor<i32>>) -> tuple<tensor<i32>, tensor<i32>>
      %r = "mhlo.get_tuple_element"(%last) {index = 0 : i32} : (tuple<tensor<i32>, tensor<i32>>) -> tensor<i32>
      return %r : tensor<i32>
    }"""
    assert run(text, np.int32(5))[0] == 15
    assert xe.compile(text)(np.int32(5)) == 15


def test_a_fusion_is_its_ops() -> None:
    text = f"""module {{
      func.func @main(%x: {T}, %y: {T}) -> {T} {{
        %r = "mhlo.fusion"(%x, %y) ({{
        ^bb0(%a: {T}, %b: {T}):
          %0 = mhlo.add %a, %b : {T}
          mhlo.return %0 : {T}
        }}) {{fusion_kind = #mhlo<fusion_kind kLoop>}} : ({T}, {T}) -> {T}
        return %r : {T}
      }}
    }}"""
    np.testing.assert_array_equal(run(text, X, Y)[0], X + Y)


@pytest.mark.parametrize("kind", ["uniform", "normal"])
def test_random_numbers_of_2021_run(kind: str) -> None:
    text = f"""func @main() -> tensor<2x3xf32> {{
      %a = mhlo.constant dense<1.0> : tensor<f32>
      %b = mhlo.constant dense<2.0> : tensor<f32>
      %s = constant dense<[2, 3]> : tensor<2xi64>
      %r = "mhlo.rng_{kind}"(%a, %b, %s) : (tensor<f32>, tensor<f32>, tensor<2xi64>) -> {T}
      return %r : {T}
    }}"""
    assert f'distribution = "rng_{kind}"' in str(parse_stablehlo(text))


def test_sizes_in_the_std_dialect() -> None:
    text = """func @main(%x: tensor<?x3xf32>) -> tensor<?xf32> {
      %c0 = constant 0 : index
      %c3 = constant 3 : index
      %n = dim %x, %c0 : tensor<?x3xf32>
      %p = muli %n, %c3 : index
      %less = cmpi "slt", %p, %c0 : index
      %size = select %less, %c0, %p : index
      %i = index_cast %size : index to i32
      %s = tensor_from_elements %i : tensor<1xi32>
      %r = "mhlo.dynamic_reshape"(%x, %s) : (tensor<?x3xf32>, tensor<1xi32>) -> tensor<?xf32>
      return %r : tensor<?xf32>
    }"""
    np.testing.assert_array_equal(xe.compile(text)(X), X.reshape(-1))


BROADCAST = [
    (((2, 3), (3,)), [1], (2, 3)),
    (((2, 3), (2,)), [0], (2, 3)),
    (((2,), (2, 3)), [0], (2, 3)),
    (((2, 3), ()), None, (2, 3)),
    (((2, 1), (2, 3)), None, (2, 3)),
    (((1, 2, 5), (7, 2, 5)), None, (7, 2, 5)),
]
"""Shapes of two arrays, the dimensions of the smaller one in the larger, the result's shape."""


@pytest.mark.parametrize(("cases", "unknown"), [(BROADCAST, False), *(([case], True) for case in BROADCAST)])
def test_ops_of_xla_hlo_broadcast_by_themselves(cases: list[Any], unknown: bool) -> None:
    """All cases are results of one program; with unknown sizes, which may all differ, it would take seconds to compile."""

    def type_of(shape: tuple[int, ...], element: str = "f32") -> str:
        sizes = ("?" if unknown and size > 1 else str(size) for size in shape)
        return f"tensor<{''.join(f'{size}x' for size in sizes)}{element}>"

    draws, arrays = np.random.default_rng(3), list[np.ndarray]()
    given, lines, results, wanted = list[str](), list[str](), list[str](), list[np.ndarray]()
    for number, (shapes, dimensions, result) in enumerate(cases):
        one, other = (draws.integers(-5, 6, shape).astype(np.float32) for shape in shapes)
        arrays += [one, other]
        listed = (
            f" {{broadcast_dimensions = dense<{dimensions}> : tensor<{len(dimensions)}xi64>}}" if dimensions else ""
        )
        types = [type_of(shape) for shape in shapes]
        given += [f"%a{number}: {types[0]}", f"%b{number}: {types[1]}"]
        lines.append(
            f'%r{number} = "xla_hlo.subtract"(%a{number}, %b{number}){listed} : ({", ".join(types)}) -> {type_of(result)}'
        )
        results.append(type_of(result))
        wide = [
            array.reshape([*array.shape, *[1] * (len(result) - array.ndim)])
            if dimensions == [0] and array.ndim < len(result)
            else array
            for array in (one, other)
        ]
        wanted.append(wide[0] - wide[1])
    body, types = "\n".join(lines), ", ".join(results)
    names = ", ".join(f"%r{number}" for number in range(len(results)))
    text = f"func @main({', '.join(given)}) -> ({types}) {{\n{body}\nreturn {names} : {types}\n}}"
    for found, right in zip(xe.compile(text, record="none").run(arrays), wanted, strict=True):
        np.testing.assert_array_equal(found, right)


@pytest.mark.parametrize(
    "name", ["stochastic_convert", "sparse_dot", "trace", "async_start", "xla.rng_get_and_update_state"]
)
def test_an_op_that_stablehlo_lacks_is_refused_by_its_name(name: str) -> None:
    with pytest.raises(Unsupported, match=f"'mhlo.{name}' is not taken: StableHLO has no such op") as found:
        of_op(f'%r = "mhlo.{name}"(%x) : ({T}) -> {T}', T, X)
    assert found.value.place.line == 2


def test_a_misspelled_op_is_named_as_it_is_written() -> None:
    with pytest.raises(ParseError, match=r"no op 'mhlo\.subtrac'; did you mean 'mhlo\.subtract'"):
        of_op(f"%r = mhlo.subtrac %x, %y : {T}", T, X, Y)


def test_branches_need_an_operand_each() -> None:
    text = f"""func @main(%p: tensor<i1>, %x: {T}) -> {T} {{
      %r = "mhlo.if"(%p, %x, %x) ( {{
      ^bb0(%a: {T}):
        "mhlo.return"(%a) : ({T}) -> ()
      }},  {{
        "mhlo.return"(%x) : ({T}) -> ()
      }}) : (tensor<i1>, {T}, {T}) -> {T}
      return %r : {T}
    }}"""
    with pytest.raises(
        VerifyError, match=r"the operands of 'stablehlo.if' are what it chooses by, and one for each argument"
    ):
        run(text, np.asarray(True), X)


def test_the_seeds_reduction_runs() -> None:
    """The listing of DhloCanonicalizeReductionPass, with its `...` filled in."""
    text = """func @test(%arg0: tensor<?x?x?xf32>, %shape: tensor<2xi64>, %back: tensor<2xi64>) -> tensor<?x?xf32> {
      %zero = xla_hlo.constant dense<0.0> : tensor<f32>
      %1 = xla_hlo.d_reshape(%arg0, %shape) : (tensor<?x?x?xf32>, tensor<2xi64>) -> tensor<?x?xf32>
      %2 = "xla_hlo.reduce"(%1, %zero) ( {
        ^bb0(%a: tensor<f32>, %b: tensor<f32>):
          %c = xla_hlo.add(%a, %b) : (tensor<f32>, tensor<f32>) -> tensor<f32>
          "xla_hlo.return"(%c) : (tensor<f32>) -> ()
        })
        {dimensions = dense<[0]> : tensor<1xi64>} :
        (tensor<?x?xf32>, tensor<f32>) -> tensor<?xf32>
      %3 = "xla_hlo.d_reshape"(%2, %back) : (tensor<?xf32>, tensor<2xi64>) -> tensor<?x?xf32>
      return %3 : tensor<?x?xf32>
    }
    """
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    found = xe.compile(text)(x, np.asarray([2, 12], np.int64), np.asarray([3, 4], np.int64))
    np.testing.assert_array_equal(found, x.sum(0))


@pytest.mark.parametrize("padding", ["tensor<4xi32>", "tensor<2x2xi32>"])
@pytest.mark.parametrize("batch", [0, 1, 3])
def test_the_padding_of_a_convolution_is_a_list_or_rows(padding: str, batch: int) -> None:
    """MHLO's `dynamic_conv`: low and high of each spatial dimension; sums of patches, by NumPy."""
    text = f"""func @main(%x: tensor<?x4x6x3xf32>, %w: tensor<3x3x3x2xf32>, %p: {padding}) -> tensor<?x?x?x2xf32> {{
      %0 = "mhlo.dynamic_conv"(%x, %w, %p) {{batch_group_count = 1 : i64, feature_group_count = 1 : i64,
        dimension_numbers = #mhlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, rhs_dilation = dense<1> : tensor<2xi64>,
        window_strides = dense<2> : tensor<2xi64>}} : (tensor<?x4x6x3xf32>, tensor<3x3x3x2xf32>, {padding}) -> tensor<?x?x?x2xf32>
      return %0 : tensor<?x?x?x2xf32>
    }}"""
    random = np.random.default_rng(1)
    x, w = (random.normal(size=size).astype(np.float32) for size in ((batch, 4, 6, 3), (3, 3, 3, 2)))
    pads = np.asarray([1, 0, 2, 1], np.int32)
    wide = np.pad(x, ((0, 0), (1, 0), (2, 1), (0, 0)))
    wanted = np.zeros((batch, 2, 4, 2), np.float32)
    for row, column in np.ndindex(2, 4):
        patch = wide[:, 2 * row : 2 * row + 3, 2 * column : 2 * column + 3]
        wanted[:, row, column] = np.einsum("bhwi,hwio->bo", patch, w)
    program = xe.compile(text)
    np.testing.assert_allclose(
        program(x, w, pads if padding == "tensor<4xi32>" else pads.reshape(2, 2)), wanted, rtol=1e-5, atol=1e-5
    )


@pytest.mark.parametrize("op", ["dim", "memref.dim", "tensor.dim"])
def test_the_size_of_a_tensor_by_its_names_of_2020_and_2021(op: str) -> None:
    text = f"""func @main(%x: tensor<?x3xf32>) -> tensor<2xindex> {{
      %c = constant 0 : index
      %n = {op} %x, %c : tensor<?x3xf32>
      %m = addi %n, %n : index
      %r = tensor_from_elements %n, %m : tensor<2xindex>
      return %r : tensor<2xindex>
    }}"""
    np.testing.assert_array_equal(run(text, X)[0], [2, 4])
