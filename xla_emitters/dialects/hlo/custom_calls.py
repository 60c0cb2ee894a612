"""Custom calls of XLA:GPU and JAX: the library function for each target, and its configuration, read from the call's text.

    __cublas$gemm, __cublas$lt$matmul   (lhs, rhs, [c], [bias])                             -> d | (d, [aux], workspace)
    __cublas$lt$matmul$f8               (lhs, rhs, [c], lhs_scale, rhs_scale, [bias], [d_scale])  -> (d, [amax], workspace)
    __cudnn$convForward                 (image, kernel)                                     -> (result, workspace)
    __cudnn$convBiasActivationForward   (image, kernel, bias, [side])                       -> (result, workspace)
    __cudnn$convBackwardInput           (result, kernel) -> (image, workspace)           labels are those of the forward convolution
    __cudnn$convBackwardFilter          (image, result)  -> (kernel, workspace)

A broken configuration, or a value of a wrong type in it, is a VerifyError at the instruction; a request for features that are
not implemented is Unsupported.
Source: what XLA:GPU of jaxlib 0.10.2 prints for such modules; NVIDIA's cuBLAS, cuDNN and cuSOLVER documentation; LAPACK's users' guide.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from math import prod
from typing import Any, TypeAlias, cast

from xdsl.ir import Attribute
from xdsl.utils.exceptions import VerifyException

from xla_emitters.dialects.hlo.backend_configs import MARKERS, Fields, broken, is_marker, target_of
from xla_emitters.dialects.hlo.base import HloOp
from xla_emitters.dialects.hlo.comparators import keys_of
from xla_emitters.dialects.hlo.computation import ParameterOp, find_computation
from xla_emitters.dialects.hlo.contractions import ALGORITHMS, ConvolutionOp, DotDimensions
from xla_emitters.dialects.hlo.rule_ops import RuleOp
from xla_emitters.dialects.hlo.shape_rule import TypeSizing, spelled
from xla_emitters.dialects.hlo.types import array_type, dims_of, element_of, is_array, leaf_types, same_dims, type_text
from xla_emitters.dialects.hlo.windows import Window, WindowAttr, WindowDim
from xla_emitters.dtypes import Kind
from xla_emitters.errors import UsageError
from xla_emitters.library.arguments import Array, LibraryArguments, top_key, unlike
from xla_emitters.plugins import blamed, fault, load, note, refuse_double
from xla_emitters.support.late_dataclass import dataclass

Config: TypeAlias = dict[str, Any]

TAKE_THE_REST = "list shows what a module calls; compile, check and bundle take the rest of it with --keep-going"
"""The help text where an op has no library function."""


def custom_call(op: RuleOp) -> tuple[str, Config]:
    """The library function of a custom call, and its configuration. raises as `library_call_of`."""
    target = target_of(op)
    if is_marker(op):
        return "pass_through", {}
    load()
    if (row := _TARGETS.get(target)) is not None:
        with blamed(row.configured, f"library call '{target}'"):
            try:
                return row.function, row.configured(op)
            except VerifyException as error:
                raise broken(op, "does not fit its operands", str(error)) from None
    reason = next((reason for start, reason in _REFUSED if start in target), "the target is not known here")
    raise op.unsupported(f"no library function for custom call target '{target}': {reason}", help=TAKE_THE_REST)


# ------------------------------------------------------------------------------------------------------ operands, results


def _roles(op: RuleOp, names: Sequence[str], what: str) -> list[str]:
    """`names`, if their number is that of the `what`. raises VerifyError otherwise."""
    values = [operand.type for operand in op.operands] if what == "operands" else leaf_types(op.result.type)
    if len(values) != len(names):
        raise broken(
            op,
            f"does not fit its {what}",
            f"they would be {', '.join(names)}",
            f"there are {len(values)}: {', '.join(map(type_text, values))}",
        )
    return list(names)


def _outputs(op: RuleOp, *names: str) -> list[str]:
    """The roles of the results: `names`, then workspace if there is one more result."""
    leaves = leaf_types(op.result.type)
    return _roles(op, [*names, *(["workspace"] if len(leaves) == len(names) + 1 else [])], "results")


def _expect_dims(op: RuleOp, number: int, wanted: Sequence[int], why: str) -> None:
    found = dims_of(leaf_types(op.result.type)[number])
    if not same_dims(found, wanted):
        raise broken(
            op,
            "does not fit the result",
            f"result {number} is [{','.join(map(str, found))}]",
            f"{why} [{','.join(map(str, wanted))}]",
        )


# ---------------------------------------------------------------------------------------------------------------- products

_TENSOR_SCALES = (0, 1)
"""scale_mode: none, or one number for a whole operand. (2 is a number per block of elements.)"""


def _gemm(op: RuleOp) -> Config:
    from xla_emitters.library.gemm import EPILOGUES

    fields = Fields.of(op).inside("gemm_backend_config")
    epilogue, beta = fields.word("epilogue", "DEFAULT", EPILOGUES), fields.number("beta", 0)
    is_scaled = target_of(op).endswith("$f8")
    if (mode := fields.number("scale_mode", int(is_scaled))) not in _TENSOR_SCALES:
        raise op.unsupported(f"no library function with {fields.path}.scale_mode {mode}: scales of blocks")
    names = ["lhs", "rhs", *(["c"] if beta else []), *(["lhs_scale", "rhs_scale"] if is_scaled else [])]
    rest = op.types[len(names) :]
    wanted = (["bias"] if "BIAS" in epilogue else []) + (["d_scale"] if is_scaled else [])
    # XLA appends both, in the order in which its passes match them; a bias is never a scalar.
    found = ["d_scale" if is_scaled and is_array(t) and not dims_of(t) else "bias" for t in rest]
    if not set(found) <= set(wanted) or len(set(found)) != len(found) or ("bias" in wanted) != ("bias" in found):
        found = wanted
    operands = _roles(op, [*names, *found], "operands")
    aux = ["aux"] if epilogue.endswith("_AUX") else []
    amax = ["amax"] if fields.truth("damax_output", False) else []
    outputs = _outputs(op, "d", *aux, *amax)
    pairing = fields.inside("dot_dimension_numbers")
    sides = [f"{side}_{what}_dimensions" for what in ("batch", "contracting") for side in ("lhs", "rhs")]
    lhs_batch, rhs_batch, lhs_contracting, rhs_contracting = (tuple(pairing.numbers(side)) for side in sides)
    dimensions = DotDimensions(lhs_batch, rhs_batch, lhs_contracting, rhs_contracting)
    try:
        dimensions.verify(op)
        dims = spelled(dimensions.shape(op, TypeSizing(op.operands)))
    except VerifyException as error:
        raise broken(op, "does not fit the operands", str(error)) from None
    for number, name in enumerate(outputs):
        if name != "workspace":
            _expect_dims(op, number, () if name == "amax" else dims, "the dot gives")
    columns = prod(dims[len(dims) - _free_dims(op, dimensions) :])
    for number, name in enumerate(operands[2:], 2):
        size = {"c": prod(dims), "bias": columns}.get(name, 1)
        if prod(dims_of(op.array(number))) != size:
            raise broken(op, f"does not fit its {name}", f"it is {type_text(op.type_of(number))}, not {size} elements")
    algorithms = {f"ALG_{name.upper()}": rounded for name, rounded in ALGORITHMS.items()}
    algorithm = fields.inside("precision_config").word("algorithm", "ALG_UNSET", tuple(algorithms))
    return {
        "operands": operands,
        "outputs": outputs,
        **dot_config(dimensions),
        "alpha": [fields.number("alpha_real", 1), fields.number("alpha_imag", 0)],
        "beta": beta,
        "epilogue": epilogue,
        "rounds": algorithms[algorithm],
        "precision": precision_asked(
            str(fields.inside("precision_config").data.get("operand_precision", "")), algorithm.removeprefix("ALG_")
        ),
    }


def _free_dims(op: RuleOp, pairing: DotDimensions) -> int:
    """The number of the result's dimensions that come from rhs alone."""
    return len(dims_of(op.array(1))) - len(pairing.rhs_batch) - len(pairing.rhs_contracting)


def dot_config(pairing: DotDimensions) -> Config:
    """The dimensions of a dot, as `library` takes them."""
    return {
        "lhs_batch": list(pairing.lhs_batch),
        "rhs_batch": list(pairing.rhs_batch),
        "lhs_contracting": list(pairing.lhs_contracting),
        "rhs_contracting": list(pairing.rhs_contracting),
    }


def precision_asked(operands: str, algorithm: str = "unset") -> str:
    """How a module asks for f32 factors to be multiplied: the algorithm's name, or the highest precision of an operand.

    >>> precision_asked("{default,highest}"), precision_asked("", "dot_tf32_tf32_f32"), precision_asked("")
    ('highest', 'dot_tf32_tf32_f32', 'default')
    """
    if algorithm.lower() != "unset":
        return algorithm.lower()
    return next((word for word in ("highest", "high") if word in operands.lower()), "default")


# ------------------------------------------------------------------------------------------------------------ convolutions

_ACTIVATIONS = {"kNone": "none", "kRelu": "relu", "kRelu6": "relu6", "kElu": "elu", "kLeakyRelu": "leaky_relu"}
_CONVOLVED = {
    "__cudnn$convForward": ("forward", ("image", "kernel"), "result"),
    "__cudnn$convBiasActivationForward": ("forward", ("image", "kernel", "bias", "side"), "result"),
    "__cudnn$convBackwardInput": ("backward_input", ("result", "kernel"), "image"),
    "__cudnn$convBackwardFilter": ("backward_filter", ("image", "result"), "kernel"),
}


def _convolution(op: RuleOp) -> Config:
    fields = Fields.of(op).inside("cudnn_conv_backend_config")
    kind, names, output = _CONVOLVED[target_of(op)]
    side = fields.number("side_input_scale", 0)
    if "side" in names and not side:
        names = names[:3]
    operands = _roles(op, names, "operands")
    outputs = _outputs(op, output)
    labels = op.word("dim_labels").replace("->", "_").split("_")
    types = dict(zip((*names, output), (*op.types, leaf_types(op.result.type)[0]), strict=True))
    if "?" in op.word("dim_labels"):
        raise op.unsupported(f"no library function for a convolution with dim_labels={op.word('dim_labels')}")
    _verify_convolution(op, [types[name] for name in ("image", "kernel", "result")])
    features = dims_of(types["result"])[labels[2].index("f")]
    for name, dims in (("bias", (features,)), ("side", dims_of(types["result"]))):
        if name in types and dims_of(types[name]) != dims:
            raise broken(op, f"does not fit its {name}", f"it is {type_text(types[name])}")
    if "bias" in names and element_of(types[output]).kind is not Kind.FLOAT:
        raise op.unsupported("no library function for a biased convolution whose result is an integer")
    return {
        "operands": operands,
        "outputs": outputs,
        "kind": kind,
        "labels": labels,
        "window": window_config(op),
        "feature_groups": op.number("feature_group_count", 1),
        "batch_groups": op.number("batch_group_count", 1),
        "scale": fields.number("conv_result_scale", 1),
        "side_scale": side,
        "activation": _ACTIVATIONS[fields.word("activation_mode", "kNone", tuple(_ACTIVATIONS))],
        "slope": fields.number("leakyrelu_alpha", 0),
        "precision": precision_asked(op.word("operand_precision")),
    }


def _verify_convolution(op: RuleOp, types: Sequence[Attribute]) -> None:
    """raises VerifyError unless HLO's convolution of an image and a kernel of these types, with the op's labels and window, is the
    result."""
    values = [ParameterOp(number, ir_type, "value").result for number, ir_type in enumerate(types[:2])]
    known = ConvolutionOp.get_irdl_definition().properties
    trial = ConvolutionOp.create(
        operands=values,
        result_types=[types[2]],
        properties={key: value for key, value in op.properties.items() if key in known},
    )
    if "dim_labels" not in op.properties:
        raise broken(op, "is of a convolution without dim_labels=")
    try:
        trial.verify_rule()
    except VerifyException as error:
        raise broken(op, "is of no convolution", str(error)) from None


def window_config(op: HloOp) -> list[Config]:
    """The window's dimensions, in order: spatial dimension 0, 1 ..."""
    found = op.properties.get("window")
    window = found.data if isinstance(found, WindowAttr) else Window()
    return [_along(dim) for dim in window.dims]


def _along(dim: WindowDim) -> Config:
    return {
        "size": dim.size,
        "stride": dim.stride,
        "pad": [dim.low, dim.high],
        "base_dilation": dim.base_dilation,
        "window_dilation": dim.window_dilation,
        "reversed": dim.reversed,
    }


# ------------------------------------------------------------------------------------------------------- sorts, linear algebra


def _top_k(op: RuleOp) -> Config:
    _roles(op, ["operand"], "operands")
    _roles(op, ["values", "positions"], "results")
    dims, values = dims_of(op.array(0)), dims_of(leaf_types(op.result.type)[0])
    if not dims or len(values) != len(dims) or values[-1] > dims[-1]:
        raise broken(op, "does not fit its operand", f"the result is {type_text(op.result.type)}")
    for number in range(2):
        _expect_dims(op, number, (*dims[:-1], values[-1]), "the operand gives")
    symbols = op.symbols("called_computations") or op.symbols("to_apply")
    if not symbols:
        return {"keys": [top_key(largest=True)]}
    keys = keys_of(find_computation(op, symbols[0]))
    if keys is None or [key["operand"] for key in keys] != [0]:
        raise op.unsupported("no library function for the first k by this comparator")
    return {"keys": keys}


def _radix_sort(op: RuleOp) -> Config:
    fields = Fields.of(op)
    count = len(op.operands)
    _roles(op, ["keys", "values"][: max(1, count)], "operands")
    outputs = _outputs(op, *(["keys", "values"][: max(1, count)]))
    dims = dims_of(op.array(0))
    for number in range(count):
        op.expect_operand(number, array_type(op.array(number).element_type, dims))
        _expect_dims(op, number, dims, "the keys have")
    key = {"operand": 0, "part": None, "order": "radix", "descending": fields.truth("descending", False)}
    return {"dimension": len(dims) - 1, "keys": [key], "comparator": None, "outputs": outputs}


def _factored(*outputs: str, **defaults: bool) -> Callable[[RuleOp], Config]:
    """A factorization: flags of its configuration with their defaults, and its results, the last of which may be a workspace."""

    def configured(op: RuleOp) -> Config:
        fields = Fields.of(op)
        options = {name: fields.truth(name, default) for name, default in defaults.items()}
        return {"outputs": _of_matrices(op, *outputs), **options}

    return configured


_MATRIX_DIMS: Mapping[str, Callable[[int, int], tuple[int, ...]]] = {
    "info": lambda m, n: (),
    **dict.fromkeys(("pivots", "scales", "values"), lambda m, n: (min(m, n),)),
    **dict.fromkeys(("factor", "factors", "vectors", "overwritten", "product"), lambda m, n: (m, n)),
}
"""The sizes of results of one m by n matrix."""


def _of_matrices(op: RuleOp, *names: str) -> list[str]:
    """The roles of the results of a factorization of operand 0, identified by their sizes."""
    outputs = _outputs(op, *names)
    dims = dims_of(op.array(0)) if op.operands else ()
    if "permutation" in outputs:
        return outputs
    if len(dims) < 2:
        raise broken(op, "is of matrices", f"operand 0 is {type_text(op.type_of(0)) if op.operands else 'missing'}")
    *batch, rows, columns = dims
    for number, name in enumerate(outputs):
        if name in _MATRIX_DIMS:
            _expect_dims(op, number, (*batch, *_MATRIX_DIMS[name](rows, columns)), "the matrices give")
    return outputs


def _old_cholesky(op: RuleOp) -> Config:
    lower = Fields.of(op).truth("lower", False)
    return {"outputs": _roles(op, ["factor", "workspace", "info"], "results"), "lower": lower}


def _triangular_solve(op: RuleOp) -> Config:
    fields = Fields.of(op)
    outputs = _outputs(op, "solution")
    _roles(op, ["matrices", "right-hand sides"], "operands")
    _expect_dims(op, 0, dims_of(op.array(1)), "the right-hand sides are")
    left, matrices, right = fields.truth("left_side", False), dims_of(op.array(0)), dims_of(op.array(1))
    if len(matrices) != len(right) or len(right) < 2 or matrices[-2:] != (right[-2 if left else -1],) * 2:
        raise broken(
            op,
            "does not fit the operands",
            f"the matrices are [{','.join(map(str, matrices))}]",
            f"{'rows' if left else 'columns'} of [{','.join(map(str, right))}] are solved for",
        )
    return {
        "outputs": outputs,
        "left_side": left,
        "lower": fields.truth("lower", False),
        "unit_diagonal": fields.truth("unit_diagonal", False),
        "transpose_a": fields.word("transpose_a", "NO_TRANSPOSE", ("NO_TRANSPOSE", "TRANSPOSE", "ADJOINT")),
    }


_NO_VECTORS = ("workspace", "workspace")
"""Results of a decomposition into singular values alone: vectors that are not computed, whatever size they have."""


def _jacobi(op: RuleOp) -> Config:
    fields = Fields.of(op)
    vectors = ("left", "right") if fields.truth("compute_uv", True) else _NO_VECTORS
    outputs = _of_matrices(op, "overwritten", "values", *vectors, "info")
    return {"outputs": outputs, "full_matrices": fields.truth("full_matrices", True), "adjoint": False}


def _svd(op: RuleOp) -> Config:
    fields = Fields.of(op)
    vectors = ("right", "left") if fields.truth("transposed", False) else ("left", "right")
    vectors = vectors if fields.truth("compute_uv", True) else _NO_VECTORS
    return {
        "outputs": _of_matrices(op, "overwritten", "values", *vectors, "info"),
        "full_matrices": fields.truth("full_matrices", True),
        "adjoint": True,
    }


def _lapack_cholesky(op: RuleOp) -> Config:
    return {"outputs": _of_matrices(op, "factor", "info"), "lower": Fields.of(op).letter("uplo", "LU") == "L"}


def _lapack_eigh(op: RuleOp) -> Config:
    outputs = _of_matrices(op, "vectors", "values", "info")
    return {"outputs": outputs, "lower": Fields.of(op).letter("uplo", "LU") == "L"}


def _lapack_svd(op: RuleOp) -> Config:
    """Mode S: the first min(m, n) vectors; A: all; N: none."""
    mode = Fields.of(op).letter("mode", "ASN")
    vectors = _NO_VECTORS if mode == "N" else ("left", "right")
    outputs = _of_matrices(op, "overwritten", "values", *vectors, "info")
    return {"outputs": outputs, "full_matrices": mode != "S", "adjoint": True}


def _tridiagonal_solve(op: RuleOp) -> Config:
    """The solution, written over the right-hand sides; LAPACK's call also overwrites the diagonals."""
    _roles(op, ["lower diagonal", "diagonal", "upper diagonal", "right-hand sides"], "operands")
    overwritten = len(leaf_types(op.result.type)) > 2
    outputs = _outputs(op, *(["workspace"] * 3 if overwritten else []), "solution", *(["info"] if overwritten else []))
    dims = dims_of(op.array(3))
    for number in range(3):
        op.expect_operand(number, array_type(op.array(3).element_type, dims[:-1]))
    _expect_dims(op, outputs.index("solution"), dims, "the right-hand sides are")
    return {"outputs": outputs}


def _eig(op: RuleOp) -> Config:
    """Of JAX's call for GPUs, which says `left` and `right`, or LAPACK's, which has letters; real matrices have the parts of the values."""
    fields = Fields.of(op)
    left, right = fields.truth("left", False), fields.truth("right", True)
    if "lapack" in target_of(op):
        left, right = fields.letter("compute_left", "NV") == "V", fields.letter("compute_right", "NV") == "V"
    if left:
        raise op.unsupported("no library function for left eigenvectors")
    values = ["values"] if len(leaf_types(op.result.type)) == 4 else ["real", "imaginary"]
    outputs = _outputs(op, *values, "workspace", "vectors" if right else "workspace", "info")
    *batch, rows, columns = dims_of(op.array(0)) if op.operands and len(dims_of(op.array(0))) > 1 else (0, 1)
    if rows != columns:
        raise broken(
            op, "is of square matrices", f"operand 0 is {type_text(op.type_of(0)) if op.operands else 'missing'}"
        )
    for number, name in enumerate(outputs):
        _expect_dims(
            op,
            number,
            (*batch, *(() if name == "info" else (rows,) if name in values else (rows, rows))),
            "the matrices give",
        )
    return {"outputs": outputs}


def _lapack_triangular_solve(op: RuleOp) -> Config:
    fields = Fields.of(op)
    outputs = _outputs(op, "solution")
    if len(op.operands) < 2:
        raise broken(op, "does not fit its operands", "they would be matrices, right-hand sides")
    _expect_dims(op, 0, dims_of(op.array(1)), "the right-hand sides are")
    transposes = {"N": "NO_TRANSPOSE", "T": "TRANSPOSE", "C": "ADJOINT"}
    return {
        "outputs": outputs,
        "left_side": fields.letter("side", "LR") == "L",
        "lower": fields.letter("uplo", "LU") == "L",
        "unit_diagonal": fields.letter("diag", "NU") == "U",
        "transpose_a": transposes[fields.letter("trans_x", "NTC")],
    }


def _expect(op: RuleOp) -> Config:
    """Comparison of two arrays; `values` are their names in the text."""
    fields, target = Fields.of(op), target_of(op)
    _roles(op, ["found", "wanted"], "operands")
    _roles(op, [], "results")
    if op.array(0).element_type != op.array(1).element_type:
        raise broken(op, "compares arrays of one type", f"they are {', '.join(map(type_text, op.types))}")
    return {
        "check": target,
        "values": [fields.word(name, default) for name, default in (("found", "operand 0"), ("wanted", "operand 1"))],
        "kind": target.removeprefix("check.expect_"),
        "tolerance": fields.number("tolerance", 1e-4),
        "least_ulps": fields.number("min_ulp_difference", 0),
        "most_ulps": fields.number("max_ulp_difference", 3),
    }


@dataclass(frozen=True)
class _Target:
    function: str
    configured: Callable[[RuleOp], Config]


def _of_lapack() -> dict[str, _Target]:
    """The functions of LAPACK that JAX calls on a CPU: a name for each element type."""
    found = dict[str, _Target]()
    for letter in "sdcz":
        product, eigh = ("orgqr", "syevd") if letter in "sd" else ("ungqr", "heevd")
        rows = {
            "potrf": _Target("cholesky", _lapack_cholesky),
            "getrf": _Target("lu", _factored("factors", "pivots", "info")),
            "geqrf": _Target("qr", _factored("factors", "scales")),
            product: _Target("householder_product", _factored("product")),
            eigh: _Target("eigh", _lapack_eigh),
            "gesdd": _Target("svd", _lapack_svd),
            "gtsv": _Target("tridiagonal_solve", _tridiagonal_solve),
            "geev": _Target("eig", _eig),
            "trsm": _Target("triangular_solve", _lapack_triangular_solve),
        }
        found |= {f"lapack_{letter}{name}_ffi": target for name, target in rows.items()}
    return found


_TARGETS: dict[str, _Target] = {
    **_of_lapack(),
    "__cublas$gemm": _Target("gemm", _gemm),
    "__cublas$lt$matmul": _Target("gemm", _gemm),
    "__cublas$lt$matmul$f8": _Target("gemm", _gemm),
    **{target: _Target("convolution", _convolution) for target in _CONVOLVED},
    "__gpu$TopK": _Target("top_k", _top_k),
    "TopK": _Target("top_k", _top_k),
    "__cub$DeviceRadixSort": _Target("sort", _radix_sort),
    "__cub$DeviceRadixSortUnassignedScratchSize": _Target("sort", _radix_sort),
    "__cublas$triangularSolve": _Target("triangular_solve", _triangular_solve),
    "__cusolver$cholesky": _Target("cholesky", _old_cholesky),
    "cusolver_potrf_ffi": _Target("cholesky", _factored("factor", "info", lower=True)),
    "cusolver_getrf_ffi": _Target("lu", _factored("factors", "pivots", "info")),
    "cusolver_geqrf_ffi": _Target("qr", _factored("factors", "scales")),
    "cusolver_orgqr_ffi": _Target("householder_product", _factored("product")),
    "cusparse_gtsv2_ffi": _Target("tridiagonal_solve", _tridiagonal_solve),
    **{f"cuhybrid_eig_{kind}": _Target("eig", _eig) for kind in ("real", "comp")},
    "cusolver_syevd_ffi": _Target("eigh", _factored("vectors", "values", "info", lower=True)),
    "cusolver_gesvdj_ffi": _Target("svd", _jacobi),
    "cusolver_gesvd_ffi": _Target("svd", _svd),
    "cu_lu_pivots_to_permutation": _Target("permutation_of_pivots", _factored("permutation")),
    "AllocateBuffer": _Target("allocate", lambda op: {}),
    **{f"check.expect_{kind}": _Target("expect", _expect) for kind in ("eq", "almost_eq", "close")},
}


def register_library_call(
    target: str,
    compute: Callable[[LibraryArguments], list[Array]],
    configured: Callable[[RuleOp], Config] | None = None,
    *,
    lacks: str = "",
) -> None:
    """Registers a custom call's target and the library function of that name, from outside the package.

    compute     computes its value, by `LibraryArguments.xp`, which is NumPy or CuPy
    configured  its configuration, plain data, from the instruction; by default none
    lacks       why it is not available on a GPU through CuPy; "" if it is
    raises      UsageError for a target, or a library function, that exists
    """
    from xla_emitters.library.function_table import FUNCTIONS, LibraryFunction

    if not callable(compute):
        raise UsageError(f"library call '{target}': {compute!r} is not a function", stage="plugins")
    refuse_double("target", target, (*_TARGETS, *MARKERS, *FUNCTIONS))

    @wraps(compute)
    def run(arguments: LibraryArguments) -> list[Array]:
        what = f"library call '{target}'"
        with blamed(compute, what):
            found: Any = compute(arguments)
        if not isinstance(found, list | tuple):
            raise fault(compute, what, f"returned {type(found).__name__}, not a list of arrays")
        arrays = cast("Sequence[Array]", found)
        if said := unlike(arrays, arguments):
            raise fault(compute, what, said)
        return list(arrays)

    FUNCTIONS[target] = LibraryFunction(target, run, "a plugin", lacks, is_own=False)
    _TARGETS[target] = _Target(target, configured or (lambda op: {}))
    note("library call", target, compute)


_REFUSED: Sequence[tuple[str, str]] = (
    ("python", "it calls Python on the host"),
    ("callback", "it calls Python on the host"),
    ("__cudnn$", "what the graph computes is not in the text"),
    ("lapack_", "a function of XLA:CPU that no library here has; compile for a GPU instead"),
    ("nccl", "several devices take part"),
    ("nvshmem", "several devices take part"),
)
"""Part of a target -> why it is refused."""
