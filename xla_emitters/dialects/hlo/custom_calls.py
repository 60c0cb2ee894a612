"""Custom calls that XLA:GPU and JAX make: the library function behind a target, and the configuration that it was given as text.

    backend_config={"gemm_backend_config":{"alpha_real":1,"beta":1,"epilogue":"BIAS_RELU", ...}}      JSON, by XLA
    backend_config={lower = true, algorithm = 0 : ui8}                                                attributes of MLIR, by JAX

    __cublas$gemm, __cublas$lt$matmul   (lhs, rhs, [c], [bias])                             -> d | (d, [aux], workspace)
    __cublas$lt$matmul$f8               (lhs, rhs, [c], lhs_scale, rhs_scale, [bias], [d_scale])  -> (d, [amax], workspace)
    __cudnn$convForward                 (image, kernel)                                     -> (result, workspace)
    __cudnn$convBiasActivationForward   (image, kernel, bias, [side])                       -> (result, workspace)
    __cudnn$convBackwardInput           (result, kernel) -> (image, workspace)           labels are those of the forward convolution
    __cudnn$convBackwardFilter          (image, result)  -> (kernel, workspace)

A configuration that is broken, or has a value of a wrong type, is a VerifyError at the instruction; one that asks for more than is computed
here is Unsupported.
Source: what XLA:GPU of jaxlib 0.10.2 prints for such modules; NVIDIA's cuBLAS, cuDNN and cuSOLVER documentation; LAPACK's users' guide.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

from xdsl.dialects.builtin import StringAttr
from xdsl.utils.exceptions import VerifyException

from xla_emitters.dialects.hlo.base import HloOp, written_at
from xla_emitters.dialects.hlo.comparators import keys_of
from xla_emitters.dialects.hlo.computation import find_computation
from xla_emitters.dialects.hlo.contractions import DotDimensions
from xla_emitters.dialects.hlo.rule_ops import RuleOp
from xla_emitters.dialects.hlo.types import dims_of, element_of, is_array, leaf_types, same_dims, type_text
from xla_emitters.dialects.hlo.windows import Window, WindowAttr, WindowDim
from xla_emitters.dtypes import Kind
from xla_emitters.errors import VerifyError
from xla_emitters.library.gemm import EPILOGUES

Config: TypeAlias = dict[str, Any]

MARKERS = frozenset(
    (
        "Sharding",
        "SPMDFullToShardShape",
        "SPMDShardToFullShape",
        "annotate_device_placement",
        "MoveToHost",
        "MoveToDevice",
        "LayoutConstraint",
        "xla.sdy.FuncResultSharding",
        "xla.sdy.PropagationBarrier",
    )
)
"""Targets whose result is their operand: notes to XLA."""


def target_of(op: HloOp) -> str:
    """The target of a custom call, without its quotes."""
    found = op.properties.get("custom_call_target")
    return found.data.strip('"') if isinstance(found, StringAttr) else ""


def is_marker(op: HloOp) -> bool:
    """Whether `op` is a custom call whose result is its operand."""
    return op.opcode == "custom-call" and target_of(op) in MARKERS


def custom_call(op: RuleOp) -> tuple[str, Config]:
    """The library function of a custom call, and its configuration. raises as `library_call_of`."""
    target = target_of(op)
    if is_marker(op):
        return "pass_through", {}
    if (row := _TARGETS.get(target)) is not None:
        return row.function, row.configured(op)
    reason = next((reason for start, reason in _REFUSED if start in target), "the target is not known here")
    raise op.unsupported(
        f"no library function for custom call target '{target}': {reason}", help="list shows what a module calls"
    )


# ---------------------------------------------------------------------------------------------------------- configurations


@dataclass(frozen=True)
class Fields:
    """The fields of a configuration; each is asked for with its type.

    path  where these fields are in the whole
    """

    op: HloOp
    data: Mapping[str, Any]
    path: str = "backend_config"

    @staticmethod
    def of(op: HloOp) -> Fields:
        """raises VerifyError for a text that is neither JSON nor attributes of MLIR."""
        found = op.attributes.get("backend_config")
        text = found.data.strip() if isinstance(found, StringAttr) else ""
        if text.startswith('"') and text.endswith('"') and len(text) > 1:
            text = _unquoted(text)
        if not text:
            return Fields(op, {})
        try:
            data = json.loads(text)
        except (ValueError, RecursionError):
            data = _mlir_attributes(text)
        if not isinstance(data, dict):
            raise broken(op, "is neither a JSON object nor {name = value, ...}", f"it is {_short(text)}")
        return Fields(op, cast("dict[str, Any]", data))

    def inside(self, name: str) -> Fields:
        """The object in the field `name`; all of these fields where there is none of that name."""
        found = self.data.get(name, self.data)
        if not isinstance(found, dict):
            raise self._wrong(name, "an object")
        return Fields(
            self.op, cast("dict[str, Any]", found), self.path if found is self.data else f"{self.path}.{name}"
        )

    def number(self, name: str, default: float) -> float:
        found = self.data.get(name, default)
        if isinstance(found, bool) or not isinstance(found, int | float):
            raise self._wrong(name, "a number")
        return found

    def truth(self, name: str, default: bool) -> bool:
        found = self.data.get(name, default)
        if not isinstance(found, bool):
            raise self._wrong(name, "true or false")
        return found

    def word(self, name: str, default: str, allowed: Sequence[str] = ()) -> str:
        """A word; if `allowed` is given, one of those. raises Unsupported for another."""
        found = self.data.get(name, default)
        if not isinstance(found, str):
            raise self._wrong(name, "a word")
        if allowed and found not in allowed:
            raise self.op.unsupported(
                f"no library function with {self.path}.{name} '{found}'", help=f"supported: {', '.join(allowed)}"
            )
        return found

    def numbers(self, name: str) -> list[int]:
        """A list of whole numbers, which JSON has as text."""
        found = self.data.get(name, [])
        if not isinstance(found, list) or not all(
            (isinstance(n, int) and not isinstance(n, bool)) or (isinstance(n, str) and re.fullmatch(r"\d{1,9}", n))
            for n in cast("list[Any]", found)
        ):
            raise self._wrong(name, "a list of dimensions")
        return [int(n) for n in cast("list[Any]", found)]

    def _wrong(self, name: str, wanted: str) -> VerifyError:
        return broken(
            self.op,
            f"has no good '{name}'",
            f"{self.path}.{name} is {_short(self.data.get(name))}",
            f"it must be {wanted}",
        )


def broken(op: HloOp, message: str, *details: str) -> VerifyError:
    """The error for a custom call whose configuration does not fit it."""
    return VerifyError(
        f"backend_config of %{op.instruction_name.data}, a custom call of '{target_of(op)}', {message}",
        stage="hlo.verify",
        place=written_at(op),
        details=details,
    )


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


def _unquoted(text: str) -> str:
    """The text in quotes, as JSON or C escapes it."""
    try:
        found = json.loads(text)
    except ValueError:
        return text[1:-1].replace('\\"', '"').replace("\\'", "'").replace("\\\\", "\\")
    return found if isinstance(found, str) else text


_ATTRIBUTE = re.compile(r"""\s*([\w.$-]+)\s*=\s*(true|false|"[^"]*"|[-+.\w]+)(?:\s*:\s*\w+)?\s*(,|$)""")


def _mlir_attributes(text: str) -> dict[str, Any] | None:
    """`{lower = true, algorithm = 0 : ui8}` as plain data; None for anything else."""
    if not (text.startswith("{") and text.endswith("}")):
        return None
    inside, found = text[1:-1].strip(), dict[str, Any]()
    while inside:
        matched = _ATTRIBUTE.match(inside)
        if matched is None:
            return None
        name, value, _ = matched.groups()
        try:
            found[name] = json.loads(value)
        except ValueError:
            return None
        inside = inside[matched.end() :].strip()
    return found


# ------------------------------------------------------------------------------------------------------ operands, results


def _roles(op: RuleOp, names: Sequence[str], what: str) -> list[str]:
    """`names`, if there are so many `what`. raises VerifyError otherwise."""
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
    """The roles of the results: `names`, then workspace if there is one result more."""
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

_ALGORITHMS: Mapping[str, str | None] = {
    "ALG_UNSET": None,
    "ALG_DOT_F16_F16_F16": "f16",
    "ALG_DOT_F16_F16_F32": "f16",
    "ALG_DOT_BF16_BF16_BF16": "bf16",
    "ALG_DOT_BF16_BF16_F32": "bf16",
    "ALG_DOT_BF16_BF16_F32_X3": None,
    "ALG_DOT_BF16_BF16_F32_X6": None,
    "ALG_DOT_BF16_BF16_F32_X9": None,
    "ALG_DOT_TF32_TF32_F32": None,
    "ALG_DOT_TF32_TF32_F32_X3": None,
    "ALG_DOT_F32_F32_F32": None,
    "ALG_DOT_F64_F64_F64": None,
    "ALG_DOT_ANY_F8_ANY_F8_F32": None,
    "ALG_DOT_ANY_F8_ANY_F8_F32_FAST_ACCUM": None,
}
"""A dot's algorithm, and the type that factors are rounded to first; those that imitate f32 are computed in it."""

_TENSOR_SCALES = (0, 1)
"""scale_mode: none, or a number for a whole operand. (2 is a number for a block of elements.)"""


def _gemm(op: RuleOp) -> Config:
    fields = Fields.of(op).inside("gemm_backend_config")
    epilogue, beta = fields.word("epilogue", "DEFAULT", EPILOGUES), fields.number("beta", 0)
    is_scaled = target_of(op).endswith("$f8")
    if (mode := fields.number("scale_mode", int(is_scaled))) not in _TENSOR_SCALES:
        raise op.unsupported(f"no library function with {fields.path}.scale_mode {mode}: scales of blocks")
    names = ["lhs", "rhs", *(["c"] if beta else []), *(["lhs_scale", "rhs_scale"] if is_scaled else [])]
    rest = op.types[len(names) :]
    wanted = (["bias"] if "BIAS" in epilogue else []) + (["d_scale"] if is_scaled else [])
    # XLA appends both, in the order in which its passes find them; a bias is never a scalar.
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
        dims = dimensions.result_dims(op)
    except VerifyException as error:
        raise broken(op, "does not fit the operands", str(error)) from None
    for number, name in enumerate(outputs):
        if name in ("d", "aux"):
            _expect_dims(op, number, dims, "the dot gives")
    algorithm = fields.inside("precision_config").word("algorithm", "ALG_UNSET", tuple(_ALGORITHMS))
    return {
        "operands": operands,
        "outputs": outputs,
        **dot_config(dimensions),
        "alpha": [fields.number("alpha_real", 1), fields.number("alpha_imag", 0)],
        "beta": beta,
        "epilogue": epilogue,
        "rounds": _ALGORITHMS[algorithm],
    }


def dot_config(pairing: DotDimensions) -> Config:
    """The dimensions of a dot, as `library` takes them."""
    return {
        "lhs_batch": list(pairing.lhs_batch),
        "rhs_batch": list(pairing.rhs_batch),
        "lhs_contracting": list(pairing.lhs_contracting),
        "rhs_contracting": list(pairing.rhs_contracting),
    }


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
    types = {
        name: ir_type
        for name, ir_type in zip((*names, output), (*op.types, leaf_types(op.result.type)[0]), strict=True)
    }
    for label, name in zip(labels, ("image", "kernel", "result"), strict=False):
        if "?" in label or len(label) != len(dims_of(types[name])):
            raise op.unsupported(f"no library function for a convolution with dim_labels={op.word('dim_labels')}")
    if len(labels) != 3 or sorted(labels[0]) != sorted(labels[2]):
        raise broken(op, "is of a convolution without dim_labels", f"dim_labels={op.word('dim_labels')}")
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
    }


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
    symbols = op.symbols("called_computations") or op.symbols("to_apply")
    if not symbols:
        return {"keys": [top_key(largest=True)]}
    keys = keys_of(find_computation(op, symbols[0]))
    if keys is None or [key["operand"] for key in keys] != [0]:
        raise op.unsupported("no library function for the first k by this comparator")
    return {"keys": keys}


def top_key(*, largest: bool) -> Config:
    """The key of the largest, or smallest, of one operand: NaN is larger than every number."""
    return {"operand": 0, "part": None, "order": "total", "descending": largest}


def _radix_sort(op: RuleOp) -> Config:
    fields = Fields.of(op)
    count = len(op.operands)
    _roles(op, ["keys", "values"][: max(1, count)], "operands")
    outputs = _outputs(op, *(["keys", "values"][: max(1, count)]))
    rank = len(dims_of(op.array(0)))
    key = {"operand": 0, "part": None, "order": "radix", "descending": fields.truth("descending", False)}
    return {"dimension": rank - 1, "keys": [key], "comparator": None, "outputs": outputs}


def _factored(*outputs: str, **defaults: bool) -> Callable[[RuleOp], Config]:
    """A factorization: truth values of its configuration with their defaults, and its results, of which the last may be a workspace."""

    def configured(op: RuleOp) -> Config:
        fields = Fields.of(op)
        options = {name: fields.truth(name, default) for name, default in defaults.items()}
        return {"outputs": _outputs(op, *outputs), **options}

    return configured


def _old_cholesky(op: RuleOp) -> Config:
    return {
        "outputs": _roles(op, ["factor", "workspace", "info"], "results"),
        "lower": Fields.of(op).truth("lower", False),
    }


def _triangular_solve(op: RuleOp) -> Config:
    fields = Fields.of(op)
    return {
        "outputs": _outputs(op, "solution"),
        "left_side": fields.truth("left_side", False),
        "lower": fields.truth("lower", False),
        "unit_diagonal": fields.truth("unit_diagonal", False),
        "transpose_a": fields.word("transpose_a", "NO_TRANSPOSE", ("NO_TRANSPOSE", "TRANSPOSE", "ADJOINT")),
    }


def _jacobi(op: RuleOp) -> Config:
    fields = Fields.of(op)
    outputs = _outputs(op, "overwritten", "values", "left", "right", "info")
    return {"outputs": outputs, "full_matrices": fields.truth("full_matrices", True), "adjoint": False}


def _svd(op: RuleOp) -> Config:
    fields = Fields.of(op)
    if not fields.truth("compute_uv", True):
        raise op.unsupported("no library function for singular values alone")
    swapped = fields.truth("transposed", False)
    outputs = ["overwritten", "values", *(("right", "left") if swapped else ("left", "right")), "info"]
    return {"outputs": _outputs(op, *outputs), "full_matrices": fields.truth("full_matrices", True), "adjoint": True}


@dataclass(frozen=True)
class _Target:
    function: str
    configured: Callable[[RuleOp], Config]


_TARGETS: Mapping[str, _Target] = {
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
    "cusolver_syevd_ffi": _Target("eigh", _factored("vectors", "values", "info", lower=True)),
    "cusolver_gesvdj_ffi": _Target("svd", _jacobi),
    "cusolver_gesvd_ffi": _Target("svd", _svd),
    "cu_lu_pivots_to_permutation": _Target("permutation_of_pivots", _factored("permutation")),
    "AllocateBuffer": _Target("allocate", lambda op: {}),
}

_REFUSED: Sequence[tuple[str, str]] = (
    ("python", "it calls Python on the host"),
    ("callback", "it calls Python on the host"),
    ("__cudnn$", "CuPy has no cuDNN, and what the graph computes is not in the text"),
    ("lapack_", "a target of XLA:CPU; optimize the module for a GPU"),
    ("nccl", "several devices take part"),
    ("nvshmem", "several devices take part"),
)
"""Part of a target, and why it is refused."""
