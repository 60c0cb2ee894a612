"""Matrix products by cuBLASLt, with the epilogues of XLA's custom calls: nvmath-python's bindings, the extra [cublaslt].

    matmul(arguments)      one result per role in `outputs`; None where the bindings are missing, or cuBLASLt has no algorithm

    y = alpha * a_scale * b_scale * (A @ B) + beta * c + bias        aux = y;   d = d_scale * activation(y);   amax = max |activation(y)|

cuBLASLt is column major: the row-major result [rows, columns] = lhs @ rhs is its [columns, rows] = rhs^T @ lhs^T, so that A is rhs and B
lhs, and the bias has a number for each of its rows. A factor whose dimensions are in another order is transposed by cuBLASLt if it is a
transposed matrix in memory, else copied before. Factors of 8 bits are multiplied as A^T @ B only, as Hopper's tensor cores want them.

f32 is rounded to TF32 where XLA would (`cublas.rounds_to_tf32`). An algorithm is chosen once per shape, by cuBLASLt's heuristic, and
kept for a device and a thread. It has no SILU: `gemm` computes that one, after cuBLAS.
This file is not run without a GPU; tests call a stand-in, and look for its names in the bindings where they are installed.
Source: NVIDIA's cuBLAS documentation, "Using the cuBLASLt API"; nvmath-python 1.0, `nvmath.bindings.cublasLt`.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from xla_emitters.library.arguments import Array, LibraryArguments, arranged, pattern_type
from xla_emitters.library.cublas import rounds_to_tf32
from xla_emitters.library.kept_plans import Plans, kept_for
from xla_emitters.support.late_dataclass import dataclass

_TYPES = {"f16": 2, "bf16": 14, "f32": 0, "f64": 1, "c64": 4, "c128": 5, "f8e4m3fn": 28, "f8e5m2": 29}
"""HLO's element types -> cudaDataType."""
_SUMS_IN_F32, _TF32, _SUMS_IN_F64 = 68, 77, 70
"""cublasComputeType: CUBLAS_COMPUTE_32F, _32F_FAST_TF32, _64F."""
_EPILOGUES = {
    "DEFAULT": "DEFAULT",
    "BIAS": "BIAS",
    "RELU": "RELU",
    "BIAS_RELU": "RELU_BIAS",
    "GELU": "GELU",
    "BIAS_GELU": "GELU_BIAS",
    "GELU_AUX": "GELU_AUX",
    "BIAS_GELU_AUX": "GELU_AUX_BIAS",
}
"""XLA's names of epilogues -> cuBLASLt's."""
WORKSPACE_BYTES = 32 << 20
"""The most that an algorithm may use, as NVIDIA recommends for Hopper."""
_KEPT = threading.local()
"""`devices`: number of a device -> `_Kept`."""


@dataclass(frozen=True)
class Factor:
    """A factor as cuBLASLt takes it.

    array          contiguous
    is_transposed  whether its matrix in memory, column major, is the transposed one
    """

    array: Any
    is_transposed: bool


@dataclass(frozen=True)
class ProductPlan:
    """What is kept for a shape: descriptors of cuBLASLt, by their addresses, and the algorithm."""

    description: int
    layouts: Mapping[str, int]
    algorithm: Any
    workspace: int


def matmul(arguments: LibraryArguments) -> list[Array] | None:
    """See the file's head."""
    if not is_for_cublaslt(arguments):
        return None
    kept = kept_for(_KEPT, int(arguments.xp.cuda.Device().id), "nvmath.bindings.cublasLt", _Kept)
    return None if kept is None else kept.computed(arguments)


def is_for_cublaslt(arguments: LibraryArguments) -> bool:
    """Whether cuBLASLt may have the product."""
    config = arguments.config
    role = {name: arguments.types[place] for place, name in enumerate(config["operands"])}
    made = {name: arguments.results[place][0] for place, name in enumerate(config["outputs"]) if name != "workspace"}
    is_complex = role["lhs"][0] == "c"
    return (
        role["lhs"] in _TYPES
        and (role["lhs"] == role["rhs"] or {role["lhs"], role["rhs"]} <= {"f8e4m3fn", "f8e5m2"})
        and made["d"] in _TYPES
        and (made["d"] == role["lhs"] or (_is_narrow(role["lhs"]) and made["d"] not in ("f64", "c64", "c128")))
        and made.get("aux", made["d"]) == made["d"]
        and role.get("c", made["d"]) == made["d"]
        and {role.get(f"{name}_scale", "f32") for name in "lhs rhs d".split()} == {made.get("amax", "f32")} == {"f32"}
        and config["epilogue"] in _EPILOGUES
        and (not is_complex or config["epilogue"] == "DEFAULT")
        and config.get("rounds") is None
        and all(map(math.prod, (array.shape for array in arguments.operands)))
    )


def _is_narrow(name: str) -> bool:
    return name not in ("f32", "f64", "c64", "c128")


class _Kept:
    """cuBLASLt on one device, in one thread: its handle, and the plans."""

    def __init__(self, lt: Any) -> None:
        self.lt, self.handle = lt, lt.create()
        self._plans = Plans[ProductPlan](lt.cuBLASLtError)

    def computed(self, arguments: LibraryArguments) -> list[Array] | None:
        """The results; None where there is no algorithm."""
        config, xp = arguments.config, arguments.xp
        roles: list[str] = config["operands"]
        role: dict[str, Any] = {name: arguments.operands[place] for place, name in enumerate(roles)}
        narrow = role["lhs"].dtype.itemsize == 1
        lhs = factor(role["lhs"], config["lhs_batch"], config["lhs_contracting"], xp, terms_last=True, as_it_is=narrow)
        rhs = factor(role["rhs"], config["rhs_batch"], config["rhs_contracting"], xp, terms_last=False, as_it_is=False)
        if narrow and not rhs.is_transposed:
            rhs = Factor(xp.ascontiguousarray(rhs.array.transpose(0, 2, 1)), is_transposed=True)
        key = [config, lhs.array.shape, rhs.array.shape, lhs.is_transposed, rhs.is_transposed, arguments.results]
        plan = self._plans.plan(key, lambda: self._made(arguments, lhs, rhs))
        if plan is None:
            return None
        made: list[Any] = [_array(arguments, place) for place in range(len(arguments.results))]
        written = dict(zip(config["outputs"], made, strict=True))
        contiguous: dict[str, Any] = {
            name: xp.ascontiguousarray(array) for name, array in role.items() if name not in ("lhs", "rhs")
        }
        pointers = {
            "BIAS_POINTER": contiguous.get("bias"),
            "EPILOGUE_AUX_POINTER": written.get("aux"),
            "A_SCALE_POINTER": contiguous.get("rhs_scale"),
            "B_SCALE_POINTER": contiguous.get("lhs_scale"),
            "D_SCALE_POINTER": contiguous.get("d_scale"),
            "AMAX_D_POINTER": written.get("amax"),
        }
        for name, array in pointers.items():
            if array is not None:
                self._set(plan.description, name, array.data.ptr)
        result = written["d"]
        outputs: list[str] = config["outputs"]
        held = _scale_type(arguments.results[outputs.index("d")][0])
        alpha = np.array(complex(*config["alpha"]) if held.kind == "c" else config["alpha"][0], held)
        beta = np.array(config["beta"] if "c" in role else 0, held)
        workspace: Any = xp.empty(max(plan.workspace, 1), np.uint8)
        to_add: Any = contiguous.get("c", result)
        self.lt.matmul(
            *(self.handle, plan.description, alpha.ctypes.data),
            *(rhs.array.data.ptr, plan.layouts["a"], lhs.array.data.ptr, plan.layouts["b"], beta.ctypes.data),
            *(to_add.data.ptr, plan.layouts["d"], result.data.ptr, plan.layouts["d"]),
            *(plan.algorithm.ctypes.data, workspace.data.ptr, plan.workspace, xp.cuda.get_current_stream().ptr),
        )
        return made

    def _set(self, description: int, name: str, value: int) -> None:
        attribute = getattr(self.lt.MatmulDescAttribute, name)
        held = np.array(value, self.lt.get_matmul_desc_attribute_dtype(attribute))
        self.lt.matmul_desc_set_attribute(description, attribute, held.ctypes.data, held.nbytes)

    def _made(self, arguments: LibraryArguments, lhs: Factor, rhs: Factor) -> ProductPlan | None:
        """The plan for the shapes; None where the heuristic knows no algorithm. raises cuBLASLtError"""
        lt, config = self.lt, arguments.config
        roles: list[str] = config["operands"]
        outputs: list[str] = config["outputs"]
        role: dict[str, Any] = dict(zip(roles, arguments.operands, strict=True))
        result, shape = arguments.results[outputs.index("d")]
        batch, *sizes = lhs.array.shape
        rows = sizes[1] if lhs.is_transposed else sizes[0]
        columns = math.prod(shape) // max(1, batch * rows)
        double = result in ("f64", "c128")
        single = (
            _TF32
            if result in ("f32", "c64") and arguments.types[0] == result and rounds_to_tf32(config)
            else _SUMS_IN_F32
        )
        scale = _TYPES[{"f64": "f64", "c64": "c64", "c128": "c128"}.get(result, "f32")]
        description = lt.matmul_desc_create(_SUMS_IN_F64 if double else single, scale)
        self._set(description, "TRANSA", int(rhs.is_transposed))
        self._set(description, "TRANSB", int(lhs.is_transposed))
        self._set(description, "EPILOGUE", int(getattr(lt.Epilogue, _EPILOGUES[config["epilogue"]])))
        if "bias" in roles:
            self._set(description, "BIAS_DATA_TYPE", _TYPES[arguments.types[roles.index("bias")]])
            self._set(description, "BIAS_POINTER", role["bias"].data.ptr)
        if "aux" in outputs:
            self._set(description, "EPILOGUE_AUX_LD", columns)
            self._set(description, "EPILOGUE_AUX_BATCH_STRIDE", rows * columns)
        layouts = {
            "a": self._layout(arguments.types[roles.index("rhs")], rhs.array.shape),
            "b": self._layout(arguments.types[roles.index("lhs")], lhs.array.shape),
            "d": self._layout(result, (batch, rows, columns)),
        }
        preference = lt.matmul_preference_create()
        most = np.array(WORKSPACE_BYTES, np.uint64)
        attribute = lt.MatmulPreferenceAttribute.MAX_WORKSPACE_BYTES
        lt.matmul_preference_set_attribute(preference, attribute, most.ctypes.data, most.nbytes)
        found: Any = np.zeros(1, lt.matmul_heuristic_result_dtype)
        count = np.zeros(1, np.int32)
        lt.matmul_algo_get_heuristic(
            *(self.handle, description, layouts["a"], layouts["b"], layouts["d"], layouts["d"], preference),
            *(1, found.ctypes.data, count.ctypes.data),
        )
        lt.matmul_preference_destroy(preference)
        if not count[0]:
            return None
        return ProductPlan(description, layouts, found["algo"].copy(), int(found["workspace_size"][0]))

    def _layout(self, name: str, shape: Sequence[int]) -> int:
        """The layout of row-major matrices [batch, rows, columns]: column major, [columns, rows]."""
        batch, rows, columns = shape
        layout = self.lt.matrix_layout_create(_TYPES[name], columns, rows, columns)
        attributes = self.lt.MatrixLayoutAttribute
        for attribute, value in ((attributes.BATCH_COUNT, batch), (attributes.STRIDED_BATCH_OFFSET, rows * columns)):
            held = np.array(value, self.lt.get_matrix_layout_attribute_dtype(attribute))
            self.lt.matrix_layout_set_attribute(layout, attribute, held.ctypes.data, held.nbytes)
        return layout


def factor(
    array: Any, batch: Sequence[int], terms: Sequence[int], xp: Any, *, terms_last: bool, as_it_is: bool
) -> Factor:
    """A factor as [batch, free, terms], or [batch, terms, free] unless `terms_last`; transposed if memory has it so.

    as_it_is  it is never transposed, but copied
    """
    free = [dim for dim in range(array.ndim) if dim not in (*batch, *terms)]
    order, other = [*batch, *free, *terms], [*batch, *terms, *free]
    if not terms_last:
        order, other = other, order
    is_transposed = not as_it_is and order != list(range(array.ndim)) and other == list(range(array.ndim))
    matrices = arranged(array, batch, contracting=terms, contracting_last=terms_last != is_transposed)
    return Factor(xp.ascontiguousarray(matrices), is_transposed)


def _scale_type(result: str) -> np.dtype[Any]:
    """The type of alpha and beta for a type of the result."""
    return np.dtype({"f64": "f8", "c64": "c8", "c128": "c16"}.get(result, "f4"))


def _array(arguments: LibraryArguments, place: int) -> Array:
    """The array that a result is written to; a workspace, which no one reads, is zeros."""
    name, shape = arguments.results[place]
    if arguments.config["outputs"][place] in ("workspace", "amax"):
        return arguments.zeros(place)
    return arguments.into[place] if arguments.into is not None else arguments.xp.empty(shape, pattern_type(name))
