"""Shapes that do not fit a program: each gives a message that names the argument, the symbol or the op, and nothing is computed."""

import itertools
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from long_lists import but_long
from runtime.stablehlo_programs import CASES, CORPUS, inputs_of, specs

from xla_emitters.dtypes import Array
from xla_emitters.dynamic.sizes import specialize
from xla_emitters.errors import DataError, VerifyError
from xla_emitters.pipelines.options import CompileOptions
from xla_emitters.pipelines.program_inputs import drawn_inputs
from xla_emitters.pipelines.programs import compile_program
from xla_emitters.program import Program
from xla_emitters.runtime.arrays import same_bits
from xla_emitters.text.stablehlo import parse_stablehlo
from xla_emitters.tools.main import main

TEXTS = {
    "add": """
module @add {
  func.func public @main(%a: tensor<?x4xf32> {jax.arg_name="x"}, %b: tensor<?x4xf32>) -> tensor<?x4xf32> {
    %0 = stablehlo.add %a, %b : tensor<?x4xf32>
    return %0 : tensor<?x4xf32>
  }
}
""",
    "reshape": """
module @r {
  func.func public @main(%a: tensor<?x?xf32>) -> tensor<?x3xf32> {
    %c3 = stablehlo.constant dense<3> : tensor<1xi32>
    %n = stablehlo.get_dimension_size %a, dim = 0 : (tensor<?x?xf32>) -> tensor<i32>
    %n1 = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
    %s = stablehlo.concatenate %n1, %c3, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %0 = stablehlo.dynamic_reshape %a, %s : (tensor<?x?xf32>, tensor<2xi32>) -> tensor<?x3xf32>
    return %0 : tensor<?x3xf32>
  }
}
""",
    "negative": """
module @n {
  func.func public @main(%a: tensor<?xf32>) -> tensor<?xf32> {
    %c = stablehlo.constant dense<3> : tensor<i32>
    %f = stablehlo.constant dense<1.0> : tensor<f32>
    %n = stablehlo.get_dimension_size %a, dim = 0 : (tensor<?xf32>) -> tensor<i32>
    %m = stablehlo.subtract %n, %c : tensor<i32>
    %n1 = stablehlo.reshape %m : (tensor<i32>) -> tensor<1xi32>
    %0 = stablehlo.dynamic_broadcast_in_dim %f, %n1, dims = [] : (tensor<f32>, tensor<1xi32>) -> tensor<?xf32>
    return %0 : tensor<?xf32>
  }
}
""",
    "slice": """
module @s {
  func.func public @main(%a: tensor<?xf32>) -> tensor<2xf32> {
    %s = stablehlo.constant dense<1> : tensor<1xi32>
    %l = stablehlo.constant dense<3> : tensor<1xi32>
    %o = stablehlo.constant dense<1> : tensor<1xi32>
    %0 = stablehlo.real_dynamic_slice %a, %s, %l, %o : (tensor<?xf32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<2xf32>
    return %0 : tensor<2xf32>
  }
}
""",
    "gather": """
module @g {
  func.func public @main(%a: tensor<?xf32>) -> tensor<2xf32> {
    %i = stablehlo.constant dense<[[0], [1]]> : tensor<2x1xi32>
    %0 = "stablehlo.gather"(%a, %i) <{slice_sizes = array<i64: 1>, dimension_numbers =
      #stablehlo.gather<collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>}>
      : (tensor<?xf32>, tensor<2x1xi32>) -> tensor<2xf32>
    return %0 : tensor<2xf32>
  }
}
""",
    "scatter": """
module @s {
  func.func public @main(%a: tensor<?xf32>) -> tensor<?xf32> {
    %i = stablehlo.constant dense<[[0], [1]]> : tensor<2x1xi32>
    %u = stablehlo.constant dense<2.0> : tensor<2xf32>
    %0 = "stablehlo.scatter"(%a, %i, %u) <{scatter_dimension_numbers =
      #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
      ^bb0(%x: tensor<f32>, %y: tensor<f32>):
        stablehlo.return %y : tensor<f32>
    }) : (tensor<?xf32>, tensor<2x1xi32>, tensor<2xf32>) -> tensor<?xf32>
    return %0 : tensor<?xf32>
  }
}
""",
    "concat": """
module @c {
  func.func public @main(%a: tensor<?x?xf32>, %b: tensor<?x?xf32>) -> tensor<?x?xf32> {
    %0 = stablehlo.concatenate %a, %b, dim = 0 : (tensor<?x?xf32>, tensor<?x?xf32>) -> tensor<?x?xf32>
    return %0 : tensor<?x?xf32>
  }
}
""",
    "dot": """
module @d {
  func.func public @main(%a: tensor<?x?xf32>, %b: tensor<?x8xf32>) -> tensor<?x8xf32> {
    %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<?x?xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
    return %0 : tensor<?x8xf32>
  }
}
""",
    "big": """
module @b {
  func.func public @main(%a: tensor<?xf32>, %b: tensor<?xf32>) -> tensor<?x?xf32> {
    %n = stablehlo.get_dimension_size %a, dim = 0 : (tensor<?xf32>) -> tensor<i32>
    %m = stablehlo.get_dimension_size %b, dim = 0 : (tensor<?xf32>) -> tensor<i32>
    %n1 = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
    %m1 = stablehlo.reshape %m : (tensor<i32>) -> tensor<1xi32>
    %s = stablehlo.concatenate %n1, %m1, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %0 = stablehlo.dynamic_broadcast_in_dim %a, %s, dims = [0] : (tensor<?xf32>, tensor<2xi32>) -> tensor<?x?xf32>
    return %0 : tensor<?x?xf32>
  }
}
""",
    "conflict": """
module @k {
  func.func public @main(%a: tensor<?x3xf32>, %b: tensor<?x4xf32>) -> tensor<?x3xf32> {
    %0 = "stablehlo.add"(%a, %b) : (tensor<?x3xf32>, tensor<?x4xf32>) -> tensor<?x3xf32>
    return %0 : tensor<?x3xf32>
  }
}
""",
}
# program, shapes of the arguments, what the message says
WRONG: list[tuple[str, tuple[tuple[int, ...], ...], str]] = [
    ("add", ((1, 4), (3, 4)), "argument 1 (p1): axis 0 is 3, but d0 is 1"),
    ("add", ((3, 4), (1, 4)), "argument 1 (p1): axis 0 is 1, but d0 is 3"),
    ("add", ((3, 5), (3, 4)), "argument 0 (p0) 'x': axis 1 is 5, expected 4"),
    ("add", ((3,), (3, 4)), "argument 0 (p0) 'x': rank 1, expected 2"),
    ("add", ((3, 4),), "1 arguments; the program takes 2"),
    ("reshape", ((2, 4),), "d0 is 2 and d1 is 4; d0*d1 == 3*d0 is expected, as %dynamic_reshape.0"),
    ("negative", ((2,),), "the size d0 - 3 is -1, which is negative: d0 is 2"),
    ("slice", ((2,),), "the range from 1 to 3 is not inside an axis of size 2: d0 is 2"),
    ("gather", ((0,),), "the range from 0 to 1 is not inside an axis of size 0: d0 is 0"),
    ("concat", ((2, 3), (2, 4)), "argument 1 (p1): axis 1 is 4, but d1 is 3"),
    ("concat", ((2, 1), (2, 4)), "argument 1 (p1): axis 1 is 4, but d1 is 1"),
    ("dot", ((2, 1), (4, 8)), "argument 1 (p1): axis 0 is 4, but d1 is 1"),
    (
        "big",
        ((1 << 22,), (1 << 22,)),
        "is f32[4194304,4194304], 70368744177664 bytes; a run may take",
    ),
]
RIGHT: list[tuple[str, tuple[tuple[int, ...], ...], tuple[int, ...]]] = [
    ("add", ((0, 4), (0, 4)), (0, 4)),
    ("reshape", ((0, 4),), (0, 3)),
    ("reshape", ((5, 3),), (5, 3)),
    ("negative", ((3,),), (0,)),
    ("slice", ((3,),), (2,)),
    ("gather", ((1,),), (2,)),
    ("scatter", ((0,),), (0,)),
    ("scatter", ((1,),), (1,)),
    ("concat", ((2, 3), (0, 3)), (2, 3)),
    ("dot", ((2, 0), (0, 8)), (2, 8)),
    ("big", ((2,), (4,)), (2, 4)),
]


@cache
def compiled(name: str) -> Program:
    return compile_program(parse_stablehlo(TEXTS[name].lstrip()), CompileOptions(record="none"))


def ones(shapes: tuple[tuple[int, ...], ...]) -> list[Array]:
    return [np.ones(shape, np.float32) for shape in shapes]


@pytest.mark.parametrize(("name", "shapes", "message"), WRONG)
def test_a_shape_that_does_not_fit_is_named(name: str, shapes: tuple[tuple[int, ...], ...], message: str) -> None:
    program = compiled(name)
    with pytest.raises(DataError) as caught:
        program(*ones(shapes))
    assert message in str(caught.value)
    assert caught.value.exit_code == 1


@pytest.mark.parametrize(("name", "shapes", "wanted"), RIGHT)
def test_its_neighbours_fit(name: str, shapes: tuple[tuple[int, ...], ...], wanted: tuple[int, ...]) -> None:
    assert compiled(name)(*ones(shapes)).shape == wanted


def test_sizes_that_can_never_be_equal_are_an_error_at_the_op() -> None:
    with pytest.raises(VerifyError) as caught:
        compiled("conflict")
    assert caught.value.place.line == 3


def test_types_are_named() -> None:
    with pytest.raises(DataError, match=r"argument 1 \(p1\): type f64, expected f32"):
        compiled("add")(np.ones((2, 4), np.float32), np.ones((2, 4)))
    with pytest.raises(DataError, match=r"argument 0 \(p0\) 'x': type str"):
        compiled("add")(np.array([["text"] * 4]), np.ones((1, 4), np.float32))


def test_strided_and_big_endian_arrays_are_copied() -> None:
    wide = np.arange(24, dtype=np.float32).reshape(3, 8)
    found = compiled("add")(wide[:, ::2], wide[:, ::2].astype(">f4"))
    np.testing.assert_array_equal(found, 2 * wide[:, ::2])


def test_the_command_line_says_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "add.mlir").write_text(TEXTS["add"].lstrip())
    np.savez(tmp_path / "in.npz", p0=np.ones((1, 4), np.float32), p1=np.ones((3, 4), np.float32))
    assert main(["run", str(tmp_path / "add.mlir"), "--inputs", str(tmp_path / "in.npz")]) == 1
    assert "argument 1 (p1): axis 0 is 3, but d0 is 1" in capsys.readouterr().err


SEEDED = [
    "layer",
    "masked_softmax",
    "gradient",
    "scatter_add",
    "update_slice",
    "halves",
    "integers",
    "narrow",
    "reversed",
]


@cache
def of_corpus(name: str) -> Program:
    return compile_program(parse_stablehlo((CORPUS / f"{name}.mlir").read_text()), CompileOptions(record="none"))


@pytest.mark.parametrize("name", but_long(SEEDED, [*SEEDED[:4], "halves", "narrow"]))
def test_no_violated_size_is_computed_with(name: str) -> None:
    """100 drawn shapes per program: a call succeeds exactly if the sizes fit some values of the symbols; its results have JAX's ranks."""
    program, random = of_corpus(name), np.random.default_rng([*name.encode()])
    before, fitting = program.compilation.loaded.runs, 0
    legal = {
        tuple(shape for _, shape, _ in specs(CASES[name], {"b": b, "s": s}))
        for b, s in itertools.product(range(1, 20), repeat=2)
    }
    arrays = inputs_of(name, {"b": 2, "s": 3})
    for _ in range(100):
        b, s = (int(size) for size in random.integers(1, 4, 2))
        shapes = [list(shape) for _, shape, _ in specs(CASES[name], {"b": b, "s": s})]
        for _ in range(int(random.integers(0, 3))):  # changes up to two sizes
            shape = shapes[int(random.integers(len(shapes)))]
            if shape:
                shape[int(random.integers(len(shape)))] = int(random.integers(0, 6))
        given = [np.zeros(shape, array.dtype) for shape, array in zip(shapes, arrays, strict=True)]
        if tuple(map(tuple, shapes)) in legal:
            program.run(given)
            fitting += 1
            before = program.compilation.loaded.runs
            continue
        with pytest.raises(DataError):
            program.run(given)
        assert program.compilation.loaded.runs == before
    assert 0 < fitting < 100


STATIC = ["layer", "halves", "windows", "loop", "gather_rows", "scan", "strided", "kernel_of_unknown_size"]


@pytest.mark.parametrize(
    "name", but_long(STATIC, ("layer", "halves", "windows", "strided", "loop", "kernel_of_unknown_size"))
)
def test_a_program_with_its_sizes_made_static_gives_the_same_bits(name: str) -> None:
    program = of_corpus(name)
    values = {symbol: 2 + number for number, symbol in enumerate(program.symbols)}
    static = compile_program(specialize(program.compilation.source, values, program.compilation.sizes))
    assert not static.symbols
    inputs = drawn_inputs(program, values, 1)
    found, wanted = static.run(inputs), program.run(inputs)
    assert [array.shape for array in found] == [array.shape for array in wanted]
    assert all(same_bits(one, other) for one, other in zip(found, wanted, strict=True))
