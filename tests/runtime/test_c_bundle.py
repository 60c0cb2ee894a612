"""Programs with unknown sizes called from C: the calls and numbers of the host program, and the refusals of a run from Python."""

import re
import subprocess
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from long_lists import but_long
from runtime.c_programs import COMPILER, FLAGS, Array, built, called, compared
from runtime.cpu_ways import compiled
from runtime.programs_table import programs

from xla_emitters.errors import DataError, Unsupported
from xla_emitters.pipelines import c_bundle as c_bundle_module
from xla_emitters.pipelines.c_bundle import c_bundle, c_name
from xla_emitters.pipelines.program_inputs import drawn_inputs
from xla_emitters.program import Program

needs_compiler = pytest.mark.skipif(not COMPILER, reason="there is no C compiler")


@pytest.fixture(scope="module")
def attention(tmp_path_factory: pytest.TempPathFactory) -> tuple[Program, Path]:
    program = programs()["causal_attention"].compiled()
    return program, built(program, "attention", tmp_path_factory.mktemp("c"))


# Donation, a loop that data end; narrow convolutions are long. All others: `make c-programs`.
@needs_compiler
@pytest.mark.parametrize(
    "name", but_long(("donated_step", "ends_early", "half_channels_last"), ("half_channels_last",))
)
def test_a_program_in_c_does_what_its_host_program_does(name: str, tmp_path: Path) -> None:
    """The same calls, and the same bits; products and convolutions, which C adds in another order, are within the ops' bounds."""
    known = programs()[name]
    found = compared(known, known.compiled(), tmp_path)
    assert not found.wrong
    assert found.calls > 2 * len(known.case.sizes)


PRODUCT = """module @m {{ func.func public @main(%x: tensor<?x5x{lhs}>, %y: tensor<5x?x{rhs}>) -> tensor<?x?x{out}> {{
  %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : (tensor<?x5x{lhs}>, tensor<5x?x{rhs}>) -> tensor<?x?x{out}>
  return %0 : tensor<?x?x{out}> }} }}"""
TYPES: dict[str, Any] = {
    **{"i1": np.bool_, "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64},
    **{"ui8": np.uint8, "ui16": np.uint16, "ui32": np.uint32, "ui64": np.uint64},
    **{"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64},
    **{"complex<f32>": np.complex64, "complex<f64>": np.complex128},
}


PRODUCTS = [
    "i8 i8 i32",
    "i1 i1 i1",
    "ui64 ui64 ui64",
    "bf16 bf16 f32",
    "complex<f32> complex<f32> complex<f32>",
    *(f"{name} {name} {name}" for name in ("i8", "i16", "i64", "ui8", "ui16", "ui32", "f64", "complex<f64>")),
    *("f16 f16 f32", "ui8 ui8 ui32", "f32 f32 f64"),
]


@needs_compiler
@pytest.mark.parametrize("types", but_long(PRODUCTS, PRODUCTS[5:]))
def test_products_of_integers_narrow_floats_and_complex_numbers_in_c(types: str, tmp_path: Path) -> None:
    """Floats are small integers, so that every sum is exact; integers are any, and wrap around in the result's type."""
    lhs, rhs, out = types.split()
    text = PRODUCT.format(lhs=lhs, rhs=rhs, out=out)
    program = compiled(text)
    rng, runs = np.random.default_rng(0), list[list[Array]]()
    for rows, columns in ((1, 1), (3, 4), (0, 2)):
        drawn = list[Array]()
        for name, shape in ((lhs, (rows, 5)), (rhs, (5, columns))):
            kind = np.dtype(TYPES[name])
            bits = rng.integers(0, 256, (*shape, kind.itemsize)).astype(np.uint8)
            if name == "i1":
                drawn.append(rng.integers(0, 2, shape).astype(np.bool_))
            elif kind.kind in "iu":
                drawn.append(bits.view(kind)[..., 0])
            else:
                parts = rng.integers(-4, 5, (2, *shape))
                drawn.append((parts[0] + 1j * parts[1] if kind.kind == "c" else parts[0]).astype(kind))
        runs.append(drawn)
    found, _ = called(built(program, "product", tmp_path), program, runs)
    for (x, y), result in zip(runs, found, strict=True):
        kind = np.dtype(TYPES[out])
        held = np.int64 if kind.kind in "iu" else kind
        np.testing.assert_array_equal(result[0], (x.astype(held) @ y.astype(held)).astype(kind))


DILATED = """module @m {{ func.func public @main(%x: tensor<?x{spatial}x2xf32>, %w: tensor<{kernel}x2x3xf32>) -> tensor<?x{result}x3xf32> {{
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, {dims}, f]x[{dims}, i, o]->[b, {dims}, f],
    window = {{pad = [{pad}], lhs_dilate = [{spread}]}} {{batch_group_count = 1 : i64, feature_group_count = 1 : i64}}
    : (tensor<?x{spatial}x2xf32>, tensor<{kernel}x2x3xf32>) -> tensor<?x{result}x3xf32>
  return %0 : tensor<?x{result}x3xf32> }} }}"""


@needs_compiler
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_a_convolution_of_a_dilated_image(rank: int, tmp_path: Path) -> None:
    """Against sums over the kernel's points of shifted images; whole numbers."""
    spread, size, points = (2, 3, 1)[:rank], (4, 3, 2)[:rank], (3, 2, 2)[:rank]
    padded = [(count - 1) * step + 1 + 1 for count, step in zip(size, spread, strict=True)]  # one element before
    result = [count - point + 1 for count, point in zip(padded, points, strict=True)]
    text = DILATED.format(
        spatial="x".join(map(str, size)), kernel="x".join(map(str, points)), result="x".join(map(str, result)),
        dims=", ".join(map(str, range(rank))), pad=", ".join(["[1, 0]"] * rank), spread=", ".join(map(str, spread)),
    )  # fmt: skip
    draw = np.random.default_rng(0)
    x = draw.integers(-4, 5, (2, *size, 2)).astype(np.float32)
    w = draw.integers(-4, 5, (*points, 2, 3)).astype(np.float32)
    image = np.zeros((2, *padded, 2), np.float32)
    image[:, *(slice(1, None, step) for step in spread)] = x
    wanted = np.zeros((2, *result, 3), np.float32)
    for point in np.ndindex(*points):
        here = tuple(slice(k, k + count) for k, count in zip(point, result, strict=True))
        wanted += image[:, *here] @ w[point]
    program = compiled(text)
    found, _ = called(built(program, "dilated", tmp_path), program, [[x, w]])
    np.testing.assert_array_equal(found[0][0], wanted)
    np.testing.assert_array_equal(program.run([x, w])[0], wanted)


EIGHT_BITS = """module @m { func.func public @main(%x: tensor<?xf8E5M2>, %y: tensor<?xf8E4M3FN>) -> (tensor<?xf8E5M2>, tensor<?xf32>) {
  %0 = stablehlo.negate %x : tensor<?xf8E5M2>
  %1 = stablehlo.convert %y : (tensor<?xf8E4M3FN>) -> tensor<?xf32>
  return %0, %1 : tensor<?xf8E5M2>, tensor<?xf32> } }"""


@needs_compiler
def test_floats_of_eight_bits_go_in_and_out(tmp_path: Path) -> None:
    """By both hosts in machine code: in this process, and in C."""
    program = compiled(EIGHT_BITS)
    x, y = np.array([1.5, -2, 0], ml_dtypes.float8_e5m2), np.array([0.25, 448], ml_dtypes.float8_e4m3fn)
    found, _ = called(built(program, "eight", tmp_path), program, [[x, y], [x[:0], y]])
    for results, given in ((found[0], x), (found[1], x[:0]), (program.run([x, y]), x)):
        np.testing.assert_array_equal(results[0].view(np.uint8), given.view(np.uint8) ^ 0x80)
        assert results[1].tolist() == [0.25, 448]


HALVES = """#include "ral.c"
int main(void) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    float value = from_f16((uint16_t)bits);
    fwrite(&value, 4, 1, stdout);
  }
  float value;
  while (fread(&value, 4, 1, stdin) == 1) {
    uint16_t bits = to_f16(value);
    fwrite(&bits, 2, 1, stdout);
  }
}
"""


@needs_compiler
def test_half_floats_in_c_are_those_of_numpy(tmp_path: Path) -> None:
    """All halves to float; to halves the middles between neighbours, what is beside them, and what is too large or small."""
    (tmp_path / "halves.c").write_text(HALVES)
    runtime = Path(c_bundle_module.__file__).parent.parent / "runtime" / "ral" / "c"
    command = [COMPILER, "-std=c11", f"-I{runtime}", str(tmp_path / "halves.c"), "-o", str(tmp_path / "halves"), "-lm"]
    subprocess.run(command, check=True, timeout=60)
    halves = np.arange(65536, dtype=np.uint16).view(np.float16).astype(np.float32)
    known = halves[np.isfinite(halves)]
    middles = (np.sort(known)[1:] / 2 + np.sort(known)[:-1] / 2).astype(np.float32)
    around = [np.nextafter(middles, np.float32(way)) for way in (-np.inf, np.inf)]
    far = np.array([65504, 65519, 65520, 1e30, np.inf, np.nan, 2**-25, 2**-24, 1e-40, 0], np.float32)
    given = np.concatenate([middles, *around, far, -far])
    answer = subprocess.run(
        [tmp_path / "halves"], input=given.tobytes(), capture_output=True, check=True, timeout=60
    ).stdout
    np.testing.assert_array_equal(np.frombuffer(answer[: 4 * 65536], np.float32), halves)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(np.frombuffer(answer[4 * 65536 :], np.float16), given.astype(np.float16))


@needs_compiler
def test_a_limit_on_memory_is_checked_before_an_allocation(attention: tuple[Program, Path]) -> None:
    program, executable = attention
    inputs = drawn_inputs(program, dict.fromkeys(program.symbols, 3), 0)
    peak = program.memory(inputs).peak
    (found,), _ = called(executable, program, [inputs], str(4 * peak))
    assert found is not None
    (none,), said = called(executable, program, [inputs], "100")
    assert none is None
    assert re.fullmatch(r"%[\w.]+ is f32\[[\d,]+\]: out of memory\n", said)


@needs_compiler
def test_arguments_that_do_not_fit_are_refused_with_a_message(attention: tuple[Program, Path]) -> None:
    """In JAX's words where JAX asserted it; the program goes on to be usable."""
    program, executable = attention
    x, w = np.ones((2, 3, 8), np.float32), np.ones((8, 8), np.float32)
    found, said = called(executable, program, [[x, w], [x[:0], w], [x, w[:7]], [x[:, :, :5].copy(), w], [x, w]])
    assert [result is not None for result in found] == [True, False, False, False, True]
    empty, seven, five = said.splitlines()
    with pytest.raises(DataError) as caught:
        program(x[:0], w)
    assert caught.value.message == empty
    assert seven == "argument 1 (p1): axis 0 is 7, expected 8"
    assert five == "argument 0 (p0): axis 2 is 5, expected 8"


NO_DATA = r"""
#include "attention.h"
#include <stdio.h>
int main(void) {
  static float w[64];
  ral_array inputs[2] = {{NULL, {2, 3, 8}}, {w, {8, 8}}}, outputs[1];
  char message[100] = "";
  ral_program *program = attention_open("attention.bin", message, sizeof message);
  int failed = attention_run(program, inputs, outputs, message, sizeof message);
  printf("%d %s\n", failed, message);
  inputs[0] = (ral_array){w, {1LL << 39, 1LL << 39, 8}};
  failed = attention_run(program, inputs, outputs, message, sizeof message);
  printf("%d %s\n", failed, message);
  ral_close(program);
  return 0;
}
"""


@needs_compiler
def test_an_argument_without_data_or_larger_than_memory_is_refused(attention: tuple[Program, Path]) -> None:
    directory = attention[1].parent
    (directory / "main.c").write_text(NO_DATA)
    command = [COMPILER, *FLAGS, "main.c", "attention.c", "ral.o", "attention.o", "-o", "no_data", "-lm"]
    subprocess.run(command, cwd=directory, check=True, timeout=60)
    answer = subprocess.run(["./no_data"], cwd=directory, capture_output=True, text=True, timeout=60, check=True)
    assert answer.stdout.splitlines() == [
        "1 argument 0 (p0): data is NULL",
        "1 argument 0 (p0): its sizes are larger than memory",
    ]


DIVIDED = """module @m { func.func public @main(%x: tensor<?xf32>, %y: tensor<?xf32>) -> tensor<?xf32> {
  %e = stablehlo.constant dense<1.0> : tensor<1xf32>
  %c = stablehlo.concatenate %y, %e, dim = 0 : (tensor<?xf32>, tensor<1xf32>) -> tensor<?xf32>
  %r = stablehlo.add %x, %c : tensor<?xf32>
  %n = stablehlo.get_dimension_size %y, dim = 0 : (tensor<?xf32>) -> tensor<i32>
  %m = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?xf32>) -> tensor<i32>
  %q = stablehlo.remainder %n, %m : tensor<i32>
  %k = stablehlo.constant dense<3> : tensor<i32>
  %p = stablehlo.compare LE, %q, %k, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
  stablehlo.custom_call @shape_assertion(%p, %q) {has_side_effect = true, error_message = "the rest is {0}"}
      : (tensor<i1>, tensor<i32>) -> ()
  return %r : tensor<?xf32> } }"""


@needs_compiler
def test_a_size_that_divides_by_zero_ends_the_run_with_the_message_of_python(tmp_path: Path) -> None:
    """The sum needs one x more than y, so the program divides by the number of x; the assertion is checked before that."""
    program = compiled(DIVIDED)
    x = np.ones(6, np.float32)
    runs = [[x[:4], x[:3]], [x[:0], x[:3]], [x, x[:5]]]
    found, said = called(built(program, "divided", tmp_path), program, runs)
    assert [None if result is None else result[0].tolist() for result in found] == [[2, 2, 2, 2], None, None]
    divided, rest = said.splitlines()
    for run, message in ((runs[1], divided), (runs[2], rest)):
        with pytest.raises(DataError) as caught:
            program(*run)
        assert caught.value.message == message
    assert (divided, rest) == ("division by zero in mod(p0_0 - 1, p0_0)", "the rest is 5")


@needs_compiler
@pytest.mark.parametrize(("damage", "why"), [(b"\7", "a constant has other data"), (b"", "a constant is missing")])
def test_a_damaged_file_of_constants_is_refused(
    damage: bytes, why: str, attention: tuple[Program, Path], tmp_path: Path
) -> None:
    _, executable = attention
    constants = tmp_path / "attention.bin"
    constants.write_bytes(damage + executable.with_suffix(".bin").read_bytes()[1:] if damage else b"")
    answer = subprocess.run([executable, "-", "-", constants], capture_output=True, text=True, timeout=60, check=False)
    assert answer.returncode == 1
    assert answer.stderr == f"attention: {constants}: {why}\n"


def test_what_the_runtime_in_c_has_not_is_refused_by_name() -> None:
    wanted = r"needs what the runtime in C has not: lmhlo.fft \(fft.0\), 'lapack_spotrf_ffi' \(custom_call"
    with pytest.raises(Unsupported, match=wanted) as caught:
        c_bundle(programs()["routines"].compiled(), "routines")
    text = programs()["routines"].text().splitlines()
    assert "stablehlo.fft" in text[caught.value.place.line - 1]


@pytest.mark.parametrize(
    ("argument", "result", "why"),
    [
        ("?xi4", "?xi4", r"argument 0 \(p0\) is of s4, for which"),
        ("?xi8", "?xi4", "result 0 is of s4, for which"),
        ("1x" * 16 + "?xi8", "1x" * 16 + "?xi8", r"argument 0 \(p0\) has 17 dimensions: C programs take 16 at most"),
    ],
)
def test_types_that_c_does_not_have_are_named(argument: str, result: str, why: str) -> None:
    body = "negate %x" if argument == result else "convert %x"
    types = f"tensor<{argument}>" if argument == result else f"(tensor<{argument}>) -> tensor<{result}>"
    text = f"""func.func @main(%x: tensor<{argument}>) -> tensor<{result}> {{
      %y = stablehlo.{body} : {types}
      return %y : tensor<{result}> }}"""
    with pytest.raises(Unsupported, match=why):
        c_bundle(compiled(text), "narrow")


def test_names_in_c() -> None:
    """Files of the runtime, ral.c and ral.h, are in the same directory."""
    assert [c_name(text) for text in ("gelu", "my-layer.v2", "3d", "_x_")] == ["gelu", "my_layer_v2", "p_3d", "x"]
    assert [c_name(text) for text in ("ral", "_RAL_", "ral2", "coral")] == ["p_ral", "p_RAL", "ral2", "coral"]
    with pytest.raises(DataError, match="has no letter"):
        c_name("--")
