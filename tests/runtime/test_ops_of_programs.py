"""Single ops of StableHLO in programs with unknown sizes, at sizes and types that models seldom have: every stage, NumPy and LLVM.

Expected values come from NumPy.
"""

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from long_lists import every

from xla_emitters.errors import DataError, Unsupported, VerifyError
from xla_emitters.pipelines.programs import compile_program
from xla_emitters.program import Program
from xla_emitters.settings import CPU
from xla_emitters.text.stablehlo import parse_stablehlo

Array = np.ndarray[Any, Any]
STAGES = ("hlo", "graph", "lmhlo", "host", "llvm-dialect")


def program(arguments: str, body: str, results: str) -> Program:
    return compile_program(
        parse_stablehlo(f"func.func @main({arguments}) -> ({results}) {{\n{body} : {results}\n}}", "t")
    )


def has_values(
    found: Program, inputs: Sequence[Array], wanted: Sequence[Array], stages: Sequence[str] = STAGES
) -> None:
    """Each of these stages, and three calls (the third repeats a plan), give the wanted arrays."""
    for stage in (*stages, None, None, None):
        for got, want in zip(found.run(inputs, stage), wanted, strict=True):
            assert (got.shape, got.dtype) == (want.shape, want.dtype)
            np.testing.assert_allclose(got.astype(np.float64), want.astype(np.float64), rtol=2e-6, err_msg=str(stage))


@pytest.fixture(params=["numpy", "llvm"])
def by(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "llvm":
        pytest.importorskip("llvmlite", reason="llvmlite is not installed")
    monkeypatch.setenv(CPU, request.param)
    return request.param


@pytest.mark.parametrize(
    ("element", "kind"),
    every(
        3,
        [
            ("i4", ml_dtypes.int4),
            ("ui4", ml_dtypes.uint4),
            ("i2", ml_dtypes.int2),
            ("f4E2M1FN", ml_dtypes.float4_e2m1fn),
        ],
    ),
)
@pytest.mark.usefixtures("by")
def test_elements_below_eight_bits_have_a_byte_each(element: str, kind: Any) -> None:
    """A kernel of a CPU reads and writes NumPy's arrays; the kernel of a GPU, at the last stage, reads packed ones."""
    t = f"tensor<?x{element}>"
    body = f"""%w = stablehlo.convert %x : ({t}) -> tensor<?xf32>
      %n = stablehlo.convert %y : (tensor<?xf32>) -> {t}
      return %w, %n, %x"""
    found = program(f"%x: {t}, %y: tensor<?xf32>", body, f"tensor<?xf32>, {t}, {t}")
    x = np.arange(13).astype(np.uint8).view(kind) if element[0] == "f" else (np.arange(13) - 6).astype(kind)
    y = np.array([0, 1, 1, 0, 1] * 3, np.float32)
    has_values(found, [x, y], [x.astype(np.float32), y.astype(kind), x])


@pytest.mark.parametrize("rows", [0, 3])
@pytest.mark.usefixtures("by")
def test_a_scatter_into_an_empty_array_writes_nothing(rows: int) -> None:
    """No index is inside of it. The indices are all that an access outside of the array would need."""
    body = f"""%0 = "stablehlo.scatter"(%x, %i, %u) <{{scatter_dimension_numbers = #stablehlo.scatter<
        update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}}> ({{
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        %s = stablehlo.add %a, %b : tensor<f32>
        stablehlo.return %s : tensor<f32>
      }}) : (tensor<{rows}x4xf32>, tensor<2x1xi32>, tensor<2x4xf32>) -> tensor<{rows}x4xf32>
      return %0"""
    t = f"tensor<{rows}x4xf32>"
    found = program(f"%x: {t}, %i: tensor<2x1xi32>, %u: tensor<2x4xf32>", body, t)
    # Far away, so that a write would end the process.
    indices, updates = np.array([[-1], [1 << 30]], np.int32), np.ones((2, 4), np.float32)
    x = np.arange(rows * 4, dtype=np.float32).reshape(rows, 4)
    has_values(found, [x, indices, updates], [x])


@pytest.mark.parametrize("batch", [0, 2])
def test_select_and_scatter_of_an_unknown_size(batch: int) -> None:
    body = """%z = stablehlo.constant dense<1.0> : tensor<f32>
      %0 = "stablehlo.select_and_scatter"(%x, %s, %z) <{
          window_dimensions = array<i64: 1, 2>, window_strides = array<i64: 1, 2>}> ({
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        %p = stablehlo.compare GE, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
        stablehlo.return %p : tensor<i1>
      }, {
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        %t = stablehlo.add %a, %b : tensor<f32>
        stablehlo.return %t : tensor<f32>
      }) : (tensor<?x6xf32>, tensor<?x3xf32>, tensor<f32>) -> tensor<?x6xf32>
      return %0"""
    found = program("%x: tensor<?x6xf32>, %s: tensor<?x3xf32>", body, "tensor<?x6xf32>")
    random = np.random.default_rng(0)
    x, s = (random.normal(size=(batch, size)).astype(np.float32) for size in (6, 3))
    pairs = x.reshape(batch, 3, 2)
    first = pairs[..., 0] >= pairs[..., 1]
    wanted = 1 + np.stack([np.where(first, s, 0), np.where(first, 0, s)], -1).reshape(batch, 6)
    has_values(found, [x, s], [wanted.astype(np.float32)], ("hlo", "graph", "lmhlo"))


@pytest.mark.parametrize("batch", [0, 2])
def test_fourier_transforms_of_an_unknown_size(batch: int) -> None:
    body = """%0 = stablehlo.fft %x, type = RFFT, length = [6] : (tensor<?x6xf64>) -> tensor<?x4xcomplex<f64>>
      %1 = stablehlo.fft %0, type = IRFFT, length = [6] : (tensor<?x4xcomplex<f64>>) -> tensor<?x6xf64>
      return %1"""
    found = program("%x: tensor<?x6xf64>", body, "tensor<?x6xf64>")
    x = np.random.default_rng(0).normal(size=(batch, 6))
    has_values(found, [x], [x], ("hlo", "graph", "lmhlo"))


@pytest.mark.usefixtures("by")
def test_batch_normalisation_of_an_unknown_size() -> None:
    """epsilon is an f32 whatever the type of the array."""
    xs, fs = "tensor<?x?xf64>", "tensor<?xf64>"
    attributes = "{epsilon = 1.0e-3 : f32, feature_index = 1 : i64}"
    body = f"""%0:3 = "stablehlo.batch_norm_training"(%x, %f, %f) <{attributes}> : ({xs}, {fs}, {fs}) -> ({xs}, {fs}, {fs})
      %1 = "stablehlo.batch_norm_inference"(%x, %f, %f, %0#1, %0#2) <{attributes}> : ({xs}, {fs}, {fs}, {fs}, {fs}) -> {xs}
      %2:3 = "stablehlo.batch_norm_grad"(%x, %f, %0#1, %0#2, %x) <{attributes}> :
        ({xs}, {fs}, {fs}, {fs}, {xs}) -> ({xs}, {fs}, {fs})
      return %0#0, %0#1, %0#2, %1, %2#2"""
    found = program(f"%x: {xs}, %f: {fs}", body, f"{xs}, {fs}, {fs}, {xs}, {fs}")
    random = np.random.default_rng(0)
    x, f = random.normal(size=(5, 3)), random.normal(size=3)
    normal = (x - x.mean(0)) / np.sqrt(x.var(0) + np.float64(np.float32(1e-3))) * f + f
    has_values(found, [x, f], [normal, x.mean(0), x.var(0), normal, x.sum(0)], ("hlo", "lmhlo"))


def test_tokens_pass_by_a_barrier() -> None:
    body = """%t = stablehlo.create_token : !stablehlo.token
      %0:2 = stablehlo.optimization_barrier %x, %t : tensor<?xf32>, !stablehlo.token
      return %0#0"""
    x = np.arange(3, dtype=np.float32)
    has_values(program("%x: tensor<?xf32>", body, "tensor<?xf32>"), [x], [x])


BROADCAST = """%n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?xf32>) -> tensor<i32>
  %s = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
  %0 = "stablehlo.dynamic_broadcast_in_dim"(%y, %s) <{broadcast_dimensions = array<i64: 0>ATTRIBUTES}>
    : (tensor<?xf32>, tensor<1xi32>) -> tensor<?xf32>
  return %0"""


@pytest.mark.usefixtures("by")
def test_an_axis_is_broadcast_from_one_element_or_from_as_many_as_the_result() -> None:
    found = program("%x: tensor<?xf32>, %y: tensor<?xf32>", BROADCAST.replace("ATTRIBUTES", ""), "tensor<?xf32>")
    for size, own in ((3, 1), (3, 3), (0, 1), (0, 0), (1, 1)):
        y = np.arange(own, dtype=np.float32) + 1
        has_values(found, [np.zeros(size, np.float32), y], [np.broadcast_to(y, size)], ())
    for size, own in ((3, 2), (3, 0), (1, 0), (1, 2)):
        with pytest.raises(
            DataError, match=rf"axis of size d1 is broadcast to d0: {own} to {size}: d0 is {size}, d1 is {own}"
        ):
            found(np.zeros(size, np.float32), np.ones(own, np.float32))


@pytest.mark.parametrize(("claim", "own"), [("known_expanding", 3), ("known_nonexpanding", 1)])
@pytest.mark.usefixtures("by")
def test_what_a_broadcast_says_of_its_operand_is_checked(claim: str, own: int) -> None:
    attributes = f", {claim}_dimensions = array<i64: 0>"
    found = program(
        "%x: tensor<?xf32>, %y: tensor<?xf32>", BROADCAST.replace("ATTRIBUTES", attributes), "tensor<?xf32>"
    )
    with pytest.raises(DataError, match="argument 1"):
        found(np.zeros(3, np.float32), np.ones(own, np.float32))


@pytest.mark.usefixtures("by")
def test_a_gather_has_as_many_batches_of_indices_as_of_arrays() -> None:
    body = """%0 = "stablehlo.gather"(%x, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], operand_batching_dims = [0],
        start_indices_batching_dims = [0], start_index_map = [1], index_vector_dim = 1>, slice_sizes = array<i64: 1, 2>}>
        : (tensor<?x4xf32>, tensor<?x1xi32>) -> tensor<?x2xf32>
      return %0"""
    found = program("%x: tensor<?x4xf32>, %i: tensor<?x1xi32>", body, "tensor<?x2xf32>")
    x, i = np.arange(8, dtype=np.float32).reshape(2, 4), np.array([[9], [1]], np.int32)
    has_values(found, [x, i], [np.array([[2, 3], [5, 6]], np.float32)])
    with pytest.raises(DataError, match="argument 1"):
        found(x, np.zeros((3, 1), np.int32))


@pytest.mark.usefixtures("by")
def test_a_scatter_has_arrays_of_one_shape_and_an_update_for_each_row_of_indices() -> None:
    body = """%0:2 = "stablehlo.scatter"(%x, %y, %i, %u, %v) <{scatter_dimension_numbers = #stablehlo.scatter<
        inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
      ^bb0(%a: tensor<f32>, %b: tensor<f32>, %c: tensor<f32>, %d: tensor<f32>):
        %s = stablehlo.add %a, %c : tensor<f32>
        stablehlo.return %s, %d : tensor<f32>, tensor<f32>
      }) : (tensor<?xf32>, tensor<?xf32>, tensor<?x1xi32>, tensor<?xf32>, tensor<?xf32>) -> (tensor<?xf32>, tensor<?xf32>)
      return %0#0, %0#1"""
    t = "tensor<?xf32>"
    found = program(f"%x: {t}, %y: {t}, %i: tensor<?x1xi32>, %u: {t}, %v: {t}", body, f"{t}, {t}")
    x, u = np.zeros(3, np.float32), np.array([4, 5], np.float32)
    has_values(found, [x, x, np.array([[2], [3]]).astype(np.int32), u, u], [np.array([0, 0, 4], np.float32)] * 2)
    for y, rows, v in ((x[:2], 2, u), (x, 3, u), (x, 2, u[:1])):
        with pytest.raises(DataError, match="argument"):
            found(x, y, np.zeros((rows, 1), np.int32), u, v)


def library_call(
    target: str, config: str, arguments: Sequence[str], results: Sequence[str], *, listed: str = ""
) -> Program:
    """A program that calls a library function as JAX writes it."""
    names = [f"%x{number}" for number in range(len(arguments))]
    given, found = ", ".join(arguments), ", ".join(results)
    operands, types, shapes = ", ".join(names), given, ""
    if listed:
        sizes = [f"%n{number}" for number in range(len(results))]
        operands, types = ", ".join((*names, *sizes)), ", ".join((given, *(f"tensor<{n}xi32>" for n in listed)))
        shapes = f"indices_of_shape_operands = dense<{list(range(len(names), len(names) + len(sizes)))}> : tensor<{len(sizes)}xi64>, "
    lists = {"1": "%b", "2": "%b, %k", "3": "%b, %k, %k"}
    code = """%d = stablehlo.get_dimension_size %x0, dim = 0 : (TYPE) -> tensor<i32>
      %b = stablehlo.reshape %d : (tensor<i32>) -> tensor<1xi32>
      %k = stablehlo.constant dense<3> : tensor<1xi32>\n""".replace("TYPE", arguments[0])
    for number, rank in enumerate(listed):
        parts = ", ".join(["tensor<1xi32>"] * int(rank))
        if rank == "0":
            code += f"%n{number} = stablehlo.constant dense<> : tensor<0xi32>\n"
            continue
        code += f"%n{number} = stablehlo.concatenate {lists[rank]}, dim = 0 : ({parts}) -> tensor<{rank}xi32>\n"
    count = len(results)
    defined, returned = ("%0", "%0") if count == 1 else (f"%0:{count}", ", ".join(f"%0#{n}" for n in range(count)))
    body = f"""{code}{defined} = stablehlo.custom_call @{target}({operands})
        {{{shapes}mhlo.backend_config = {{{config}}}}} : ({types}) -> ({found})
      return {returned}"""
    parameters = ", ".join(f"{name}: {ir_type}" for name, ir_type in zip(names, arguments, strict=True))
    return program(parameters, body, found)


@pytest.mark.parametrize("size", ["2", "?"])
@pytest.mark.parametrize(
    ("target", "config"),
    [
        ("cusolver_syevd_ffi", "algorithm = 0 : ui8, lower = {lower}"),
        ("lapack_ssyevd_ffi", "mode = 86 : ui8, uplo = {uplo} : ui8"),
    ],
)
def test_eigenvalues_are_of_the_triangle_that_the_call_names(target: str, config: str, size: str) -> None:
    random = np.random.default_rng(0)
    x = random.normal(size=(2, 3, 3)).astype(np.float32)
    types = [f"tensor<{size}x3x3xf32>", f"tensor<{size}x3xf32>", f"tensor<{size}xi32>"]
    for letter in "LU":
        said = config.format(lower="true" if letter == "L" else "false", uplo=ord(letter))
        found = library_call(target, said, types[:1], types, listed="321" if size == "?" else "")
        for stage in ("hlo", "lmhlo", None, None, None):
            vectors, values, info = found.run([x], stage)
            wanted = np.linalg.eigvalsh(x.astype(np.float64), UPLO=letter)
            np.testing.assert_allclose(values, wanted, atol=1e-5, err_msg=str(stage))
            np.testing.assert_allclose(np.abs(vectors), np.abs(np.linalg.eigh(x, UPLO=letter)[1]), atol=1e-4)
            assert not info.any()


@pytest.mark.parametrize("size", ["2", "?"])
@pytest.mark.parametrize(
    ("target", "config", "rank"),
    [
        ("cusolver_gesvd_ffi", "compute_uv = false, full_matrices = false, transposed = false", 0),
        ("cusolver_gesvdj_ffi", "compute_uv = false, full_matrices = true", 3),
        ("lapack_sgesdd_ffi", "mode = 78 : ui8", 3),
    ],
)
def test_singular_values_without_vectors(target: str, config: str, rank: int, size: str) -> None:
    """JAX's `svd(x, compute_uv=False)`: gesvd's results for vectors are scalars, and it is for unknown sizes and for those above 1024."""
    x = np.random.default_rng(0).normal(size=(2, 3, 3)).astype(np.float32)
    matrices, info = f"tensor<{size}x3x3xf32>", f"tensor<{size}xi32>"
    vectors = matrices if rank else "tensor<f32>"
    results, ranks = [matrices, f"tensor<{size}x3xf32>", vectors, vectors, info], f"32{rank}{rank}1"
    found = library_call(target, config, [matrices], results, listed=ranks if size == "?" else "")
    for stage in ("hlo", "lmhlo", None):
        values = found.run([x], stage)[1]
        np.testing.assert_allclose(values, np.linalg.svd(x, compute_uv=False), atol=1e-5, err_msg=str(stage))


def test_functions_of_lapack_are_those_that_jax_calls_on_a_cpu() -> None:
    """What `jax.export` writes for a CPU: letters are numbers, results are LAPACK's."""
    random = np.random.default_rng(0)
    x = random.normal(size=(2, 3, 3))
    t, rows, info = "tensor<2x3x3xf64>", "tensor<2x3xf64>", "tensor<2xi32>"
    positive = x @ x.swapaxes(1, 2)
    factor = library_call("lapack_dpotrf_ffi", "uplo = 76 : ui8", [t], [t, info])(positive)[0]
    np.testing.assert_allclose(np.tril(factor), np.linalg.cholesky(positive))
    _, values, left, right, _ = library_call("lapack_dgesdd_ffi", "mode = 83 : ui8", [t], [t, rows, t, t, info])(x)
    np.testing.assert_allclose(left * values[:, None] @ right, x, atol=1e-12)
    factors, scales = library_call("lapack_dgeqrf_ffi", "", [t], [t, rows])(x)
    q = library_call("lapack_dorgqr_ffi", "", [t, rows], [t])(factors, scales)
    np.testing.assert_allclose(q @ np.triu(factors), x, atol=1e-12)
    _, pivots, _ = library_call("lapack_dgetrf_ffi", "", [t], [t, "tensor<2x3xi32>", info])(x)
    np.testing.assert_array_equal(pivots[:, 0], np.abs(x[:, :, 0]).argmax(1) + 1)


@pytest.mark.parametrize("side", "LR")
@pytest.mark.parametrize("uplo", "LU")
@pytest.mark.parametrize("transposed", "NT")
def test_triangular_systems_of_lapack(side: str, uplo: str, transposed: str) -> None:
    random = np.random.default_rng(0)
    a, right = random.normal(size=(2, 3, 3)), random.normal(size=(2, 3, 3))
    for diagonal in "NU":
        letters = {"diag": diagonal, "side": side, "trans_x": transposed, "uplo": uplo}
        config = ", ".join(f"{name} = {ord(letter)} : ui8" for name, letter in letters.items())
        t = "tensor<2x3x3xf64>"
        found = library_call("lapack_dtrsm_ffi", config, [t, t], [t])(a, right)
        used = np.tril(a) if uplo == "L" else np.triu(a)
        if diagonal == "U":
            used = used - used * np.eye(3) + np.eye(3)
        used = used.swapaxes(1, 2) if transposed == "T" else used
        np.testing.assert_allclose(used @ found if side == "L" else found @ used, right, atol=1e-10)


def test_a_letter_that_no_function_of_lapack_knows_is_refused() -> None:
    t = "tensor<2x3x3xf64>"
    found = library_call("lapack_dpotrf_ffi", "uplo = 88 : ui8", [t], [t, "tensor<2xi32>"])
    with pytest.raises(Unsupported, match=r"uplo 88"):
        found(np.ones((2, 3, 3)))


def test_a_broadcast_without_sizes_as_a_value_has_a_result_of_known_sizes() -> None:
    body = """%0 = stablehlo.broadcast_in_dim %x, dims = [1] : (tensor<?xf32>) -> tensor<2x?xf32>
      return %0"""
    with pytest.raises(VerifyError, match=r"'stablehlo\.broadcast_in_dim' has a result of known sizes") as caught:
        program("%x: tensor<?xf32>", body, "tensor<2x?xf32>")
    assert caught.value.place.line == 2


def test_a_constant_of_chlo() -> None:
    body = """%0 = "chlo.constant"() <{value = dense<[1.0, 2.0]> : tensor<2xf32>}> : () -> tensor<2xf32>
      return %0"""
    has_values(program("", body, "tensor<2xf32>"), [], [np.array([1, 2], np.float32)])
