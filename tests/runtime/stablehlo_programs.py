"""The programs of tests/corpus/stablehlo: JAX functions, exported as StableHLO text, with JAX's results on the CPU.

    python tests/runtime/stablehlo_programs.py            in an environment with jax 0.10.2: writes NAME.mlir and NAME.npz of all
    python tests/runtime/stablehlo_programs.py layer ...  of these

NAME.npz holds the results `k/r0` ... for choice k of the sizes; the inputs are drawn again by `inputs_of`, which needs only NumPy. The functions are ours.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

CORPUS = Path(__file__).parents[1] / "corpus" / "stablehlo"


@dataclass(frozen=True)
class Case:
    """A program and where it is evaluated.

    function  named by the attribute of `Functions`
    inputs    a spec for each: "f32[b,s,32]"; "s32[b]<7" is drawn from 0 to 6
    sizes     the choices of symbols; a static program has one, {}
    tolerance relative to the largest expected magnitude: JAX's order of sums is another
    """

    inputs: tuple[str, ...]
    sizes: tuple[Mapping[str, int], ...] = ({},)
    tolerance: float = 2e-5
    is_evaluated: bool = True
    form: str = "pretty"
    constraints: tuple[str, ...] = ()


BS = ({"b": 1, "s": 1}, {"b": 2, "s": 5}, {"b": 3, "s": 8})
CASES: dict[str, Case] = {
    "layer": Case(("f32[b,s,32]", "f32[32,32]", "f32[32,64]", "f32[32]", "f32[32]"), BS),
}


def specs(case: Case, sizes: Mapping[str, int]) -> list[tuple[str, tuple[int, ...], int | None]]:
    """Of each input: the NumPy type, the shape, and the limit of what is drawn."""
    found = list[tuple[str, tuple[int, ...], int | None]]()
    for text in case.inputs:
        text, _, limit = text.partition("<")
        element, _, dims = text.rstrip("]").partition("[")
        shape = tuple(eval(dim, {}, dict(sizes)) for dim in dims.split(",") if dim)
        found.append((element, shape, int(limit) if limit else None))
    return found


NUMPY = {
    "f32": "float32",
    "f64": "float64",
    "s32": "int32",
    "s64": "int64",
    "u32": "uint32",
    "pred": "bool",
    "s8": "int8",
}


def inputs_of(name: str, sizes: Mapping[str, int]) -> list[Any]:
    """The arrays on which a program is evaluated, drawn by NumPy from a seed made of the name's letters."""
    import ml_dtypes

    narrow = {"bf16": ml_dtypes.bfloat16, "f16": np.float16}
    random = np.random.default_rng([*name.encode(), *sizes.values()])
    found = list[Any]()
    for element, shape, limit in specs(CASES[name], sizes):
        kind = narrow.get(element) or np.dtype(NUMPY[element])
        if element == "pred":
            found.append(random.integers(0, 2, shape).astype(kind))
        elif limit is not None or np.dtype(kind).kind in "iu":
            found.append(random.integers(0, limit or 100, shape).astype(kind))
        else:
            found.append(random.uniform(-2, 2, shape).astype(kind))
    return found


def functions() -> dict[str, Callable[..., Any]]:
    """The programs; needs JAX."""
    import jax
    import jax.numpy as jnp

    def layer(x: Any, w1: Any, w2: Any, scale: Any, bias: Any) -> Any:
        b, s, d = x.shape
        q = (x @ w1).reshape(b, s, 4, d // 4).transpose(0, 2, 1, 3)
        weights = jax.nn.softmax(jnp.einsum("bhsd,bhtd->bhst", q, q) / jnp.sqrt(d / 4), axis=-1)
        x = x + jnp.einsum("bhst,bhtd->bhsd", weights, q).transpose(0, 2, 1, 3).reshape(b, s, d)
        centered = x - x.mean(-1, keepdims=True)
        x = centered * jax.lax.rsqrt(x.var(-1, keepdims=True) + 1e-5) * scale + bias
        return jax.nn.gelu(x @ w2)

    return dict(locals())


def text_of(function: Callable[..., Any], case: Case) -> str:
    """The program as JAX prints it: an exported one with symbols, a lowered one without."""
    import jax
    import jax.numpy as jnp
    from jax import export

    jax_names = {"f32": "float32", "bf16": "bfloat16", "f16": "float16", **NUMPY}
    names = sorted({name for sizes in case.sizes for name in sizes})
    symbols = (
        dict(zip(names, export.symbolic_shape(",".join(names), constraints=case.constraints), strict=True))
        if names
        else {}
    )
    shapes = [
        jax.ShapeDtypeStruct(tuple(shape), jnp.dtype(jax_names[element])) for element, shape, _ in specs(case, symbols)
    ]
    if names:
        return export.export(jax.jit(function))(*shapes).mlir_module()
    lowered = jax.jit(function).lower(*shapes)
    if case.form == "generic":
        return lowered.compiler_ir("stablehlo").operation.get_asm(print_generic_op_form=True)
    return lowered.as_text(debug_info=case.form == "located")


def write(name: str) -> None:
    import re

    import jax

    case, function = CASES[name], functions()[name]
    # Paths of the machine that made the text say nothing about the program.
    text = re.sub(r'loc\("(?:/[^"]*/)?([\w.]+\.py)"', r'loc("\1"', text_of(function, case))
    (CORPUS / f"{name}.mlir").write_text(text)
    found = dict[str, Any]()
    for number, sizes in enumerate(case.sizes):
        results = jax.tree.leaves(jax.jit(function)(*inputs_of(name, sizes)))
        for i, result in enumerate(results):
            array = np.asarray(result)
            found[f"{number}/r{i}"] = array if array.dtype.kind in "biufc" else array.astype(np.float32)
    np.savez_compressed(CORPUS / f"{name}.npz", **found)


def main(names: Sequence[str]) -> None:
    for name in names or CASES:
        write(name)


if __name__ == "__main__":
    main(sys.argv[1:])
