"""What other tools of MLIR write: aliases, resources, elided constants, declarations, files of several parts."""

import re

import ml_dtypes
import numpy as np
import pytest

import xla_emitters as xe
from xla_emitters.dialects.hlo.constant import ConstantOp
from xla_emitters.errors import ParseError, Unsupported, VerifyError
from xla_emitters.explore.check.verdict import reference_of
from xla_emitters.text.stablehlo import parse_stablehlo, print_stablehlo


def test_aliases_are_their_definitions() -> None:
    text = """
        #map = affine_map<(d0) -> (d0)>
        #cst = dense<[1.0, 2.0, 3.0]> : tensor<3xf32>
        #best = #stablehlo<precision HIGHEST>
        #dot = #stablehlo.dot<lhs_contracting_dimensions = [0], rhs_contracting_dimensions = [0]>
        #config = {scale = 2 : i32}
        !row = tensor<3xf32>
        !one = tensor<f32>
        !other = !foo.thing<i32>
        module attributes {a.map = #map, a.type = !other} {
          func.func @main(%a: !row {a.map = #map}) -> (!one, !row) {
            %0 = stablehlo.constant #cst
            %1 = stablehlo.add %a, %0 : !row loc(#loc1)
            %2 = "stablehlo.dot_general"(%1, %0) {dot_dimension_numbers = #dot, precision_config = [#best, #best]}
              : (!row, !row) -> !one
            %3 = stablehlo.custom_call @f(%1) {mhlo.frontend = #config} : (!row) -> !row
            return %2, %3 : !one, !row
          }
        }
        #loc = loc("a.py":1:2)
        #loc1 = loc("sum"(#loc))
    """
    printed = print_stablehlo(parse_stablehlo(text))
    (row,) = re.findall(r'(\S+) = "stablehlo.add"\(.*: \(tensor<3xf32>, tensor<3xf32>\) -> \(tensor<3xf32>\)', printed)
    assert f'"stablehlo.dot_general"({row}, ' in printed
    assert "HIGHEST" in printed
    assert "mhlo.frontend = {scale = 2 : i32}" in printed
    with pytest.raises(Unsupported, match="values of type !other are not taken"):
        parse_stablehlo(text.replace("-> (!one, !row)", "-> (!other, !row)"))


@pytest.mark.parametrize(
    ("element", "array"),
    [
        ("f32", np.asarray([1.5, -2, np.inf], np.float32)),
        ("i64", np.asarray([1, -2, 3], np.int64)),
        ("i1", np.asarray([True, False, True])),
        ("bf16", np.asarray([1.5, -2, 3], ml_dtypes.bfloat16)),
        ("i4", np.asarray([1, -2, 3], ml_dtypes.int4)),
    ],
)
@pytest.mark.parametrize("name", ["w", "torch_tensor_3.f-32"])
def test_a_resource_is_its_bytes_after_the_alignment(element: str, array: np.ndarray, name: str) -> None:
    quoted = f'"{name}"' if "-" in name else name
    text = f"""
        func.func @main() -> tensor<3x{element}> {{
          %0 = stablehlo.constant dense_resource<{quoted}> : tensor<3x{element}>
          return %0 : tensor<3x{element}>
        }}
        {{-#
          dialect_resources: {{
            builtin: {{
              v: "0x04000000AABBCCDD",
              {quoted}: "0x04000000{array.tobytes().hex().upper()}"
            }}
          }}
        #-}}
    """
    (constant,) = (op for op in parse_stablehlo(text).walk() if isinstance(op, ConstantOp))
    assert constant.array().tobytes() == array.tobytes()


@pytest.mark.parametrize(
    ("blob", "message"),
    [
        ("0x040000000000803F", "has 4 bytes of data, and its type takes 8"),
        ("0x04", "four bytes for its alignment"),
        ("0x04000000xyzw", "hexadecimal digits"),
    ],
)
def test_a_resource_that_does_not_fit_is_refused_where_it_is(blob: str, message: str) -> None:
    text = f"""func.func @main() -> tensor<2xf32> {{
        %0 = stablehlo.constant dense_resource<w> : tensor<2xf32>
        return %0 : tensor<2xf32>
    }}
{{-# dialect_resources: {{ builtin: {{ w: "{blob}" }} }} #-}}"""
    with pytest.raises(ParseError, match=message) as error:
        parse_stablehlo(text)
    assert error.value.place.line == 5


@pytest.mark.parametrize("literal", ["dense<...>", "dense_resource<__elided__>"])
def test_an_elided_constant_compiles_and_does_not_run(literal: str) -> None:
    text = f"""func.func @main(%x: tensor<?x3xf32>) -> tensor<?x3xf32> {{
        %w = stablehlo.constant {literal} : tensor<3x3xf32>
        %y = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<?x3xf32>, tensor<3x3xf32>) -> tensor<?x3xf32>
        return %y : tensor<?x3xf32>
    }}"""
    module = parse_stablehlo(text)
    assert "dense_resource<__elided__> : tensor<3x3xf32>" in print_stablehlo(module)
    program = xe.compile(text)
    assert program.left_out == ("%w",)
    with pytest.raises(Unsupported, match="leaves out the data of %w"):
        program(np.ones((2, 3), np.float32))
    with pytest.raises(Unsupported, match="leaves out the data of %w"):
        program.on("gpu")
    with pytest.raises(Unsupported, match="leaves out the data of %w"):
        reference_of(program, [np.ones((2, 3), np.float32)])


DECLARED = """module {
  func.func private @pretty(tensor<3xf32> {a.b = 1 : i32}, tensor<i32>) -> tensor<3xf32> attributes {a = 1 : i32}
  func.func private @named(%x: tensor<3xf32>) -> (tensor<3xf32> {c.d})
  "func.func"() <{sym_name = "generic", function_type = (tensor<3xf32>) -> tensor<3xf32>}> ({}) : () -> ()
  func.func @main(%a: tensor<3xf32>) -> tensor<3xf32> {
    %0 = BODY
    return %0 : tensor<3xf32>
  }
}"""


def test_a_function_without_a_body_may_be_declared_and_not_called() -> None:
    module = parse_stablehlo(DECLARED.replace("BODY", "stablehlo.negate %a : tensor<3xf32>"))
    assert len(list(module.ops)) == 1
    for name in ("named", "generic"):
        call = f"call @{name}(%a) : (tensor<3xf32>) -> tensor<3xf32>"
        with pytest.raises(VerifyError, match=f"@{name} has no body to call") as error:
            parse_stablehlo(DECLARED.replace("BODY", call))
        assert error.value.place.line == 6
    with pytest.raises(ParseError, match="no function in this text"):
        parse_stablehlo("func.func private @f(tensor<f32>)")


def test_a_file_of_several_parts_is_refused_at_the_line_between() -> None:
    part = "func.func @f(%a: tensor<3xf32>) -> tensor<3xf32> {\n  return %a : tensor<3xf32>\n}\n"
    parse_stablehlo(f"// -----\n{part}// -----\n")
    for second in (part, f"module {{\n{part}}}\n"):
        with pytest.raises(Unsupported, match="a second module after '// -----'") as error:
            parse_stablehlo(f"{part}\n// -----\n{second}")
        assert error.value.place.line == 5


@pytest.mark.parametrize(
    "op",
    [
        "stablehlo.slice %x [1:3, 0:4:2] : (tensor<?x4xf32>) -> tensor<?x?xf32>",
        '"stablehlo.dynamic_slice"(%x, %i, %i) {slice_sizes = array<i64: 2, 2>} : '
        "(tensor<?x4xf32>, tensor<i32>, tensor<i32>) -> tensor<?x2xf32>",
    ],
)
def test_sizes_that_the_attributes_give_need_not_be_written(op: str) -> None:
    of = op.rpartition("-> ")[2]
    program = xe.compile(
        f"func.func @main(%x: tensor<?x4xf32>, %i: tensor<i32>) -> {of} {{\n%r = {op}\nreturn %r : {of} }}"
    )
    x = np.arange(20, dtype=np.float32).reshape(5, 4)
    wanted = x[1:3, 0:4:2] if "[" in op else x[1:3, 1:3]
    np.testing.assert_array_equal(program(x, np.int32(1)), wanted)


@pytest.mark.parametrize(
    ("op", "of", "help"),
    [
        ("stablehlo.iota dim = 0 : tensor<?xf32>", "tensor<?xf32>", "dynamic_iota takes sizes as a value"),
        (
            "stablehlo.reshape %x : (tensor<?x4xf32>) -> tensor<?x?xf32>",
            "tensor<?x?xf32>",
            "dynamic_reshape takes the sizes as a value",
        ),
    ],
)
def test_an_unknown_size_without_a_value_names_the_op_that_takes_one(op: str, of: str, help: str) -> None:
    with pytest.raises((Unsupported, VerifyError), match=help):
        xe.compile(f"func.func @main(%x: tensor<?x4xf32>) -> {of} {{\n%r = {op}\nreturn %r : {of} }}")
