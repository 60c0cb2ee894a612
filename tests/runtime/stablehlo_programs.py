"""The programs of tests/corpus/stablehlo: JAX functions, exported as StableHLO text, with JAX's results on the CPU.

    python tests/runtime/stablehlo_programs.py            in an environment with jax 0.10.2: writes NAME.mlir and NAME.npz of all
    python tests/runtime/stablehlo_programs.py layer ...  of these
    python tests/runtime/stablehlo_programs.py --run DIR  runs DIR/NAME.mlir, which we printed, in JAX, and compares with NAME.npz

NAME.npz holds the results `k/r0` ... for choice k of the sizes; the inputs are drawn again by `inputs_of`, which needs only NumPy.
The functions are ours.
"""

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
    tolerance relative to the largest expected magnitude: JAX adds sums in another order
    donated   numbers of the arguments whose memory JAX may take
    """

    inputs: tuple[str, ...]
    sizes: tuple[Mapping[str, int], ...] = ({},)
    tolerance: float = 2e-5
    is_evaluated: bool = True
    form: str = "pretty"
    donated: tuple[int, ...] = ()


BS = ({"b": 1, "s": 1}, {"b": 2, "s": 5}, {"b": 3, "s": 8})
IMAGES = ({"b": 1, "s": 2}, {"b": 2, "s": 7})
CASES: dict[str, Case] = {
    "layer": Case(("f32[b,s,32]", "f32[32,32]", "f32[32,64]", "f32[32]", "f32[32]"), BS),
    "layer_static": Case(("f32[2,5,32]", "f32[32,32]", "f32[32,64]", "f32[32]", "f32[32]"), form="located"),
    "layer_generic": Case(("f32[2,5,32]", "f32[32,32]", "f32[32,64]", "f32[32]", "f32[32]"), form="generic"),
    "masked_softmax": Case(("f32[b,s,s]", "s32[b]<9"), BS),
    "embedding": Case(("f32[12,6]", "s32[b,s]<12"), BS),
    "gradient": Case(("f32[b,s]", "f32[s,4]", "f32[4]"), BS),
    "cumulative": Case(("f32[b,s]",), BS),
    "halves": Case(("f32[2*b,s+1]",), BS),
    "padded": Case(("f32[b,s]",), BS),
    "reversed": Case(("f32[b,s]", "f32[s,s]"), BS),
    "strided": Case(("f32[b,s]",), BS),
    "positions": Case(("s32[b,s]<50",), BS),
    "outer": Case(("f32[b]", "f32[s]"), BS),
    "windows": Case(("f32[b,s+2,s+2,3]",), IMAGES),
    "convolution": Case(("f32[b,3,s+3,s+3]", "f32[4,3,3,3]"), IMAGES),
    "convolution_static": Case(("f32[2,8,9,4]", "f32[3,3,2,6]"), form="located"),
    "kernel_of_unknown_size": Case(("f32[1,2,8*b]", "f32[3,2,b]"), ({"b": 1}, {"b": 3})),
    "scatter_add": Case(("f32[b+1,s]", "s32[s]<9", "f32[s,s]"), BS),
    "gather_rows": Case(("f32[b+1,s]", "s32[s]<9"), BS),
    "update_slice": Case(("f32[b+2,s+2]", "f32[b,s]", "s32[]<3"), BS),
    "integers": Case(("s8[b,s]<100", "u32[b,s]<1000"), BS, tolerance=0.0),
    "booleans": Case(("pred[b,s]", "f32[b,s]"), BS, tolerance=0.0),
    "narrow": Case(("bf16[b,s]", "bf16[s,8]", "f16[b,8]"), BS, tolerance=1e-2),
    "special_functions": Case(("f32[5,8]",)),
    "composites": Case(("f32[b,s]",), BS),
    "double": Case(("f64[5,8]",), tolerance=1e-13),
    "complex": Case(("f32[4,6]", "f32[4,6]"), form="generic"),
    "literals": Case(("f32[3]",), tolerance=0.0),
    "loop": Case(("f32[b,s]",), BS),
    "scan": Case(("f32[b,s]", "f32[s]"), BS),
    "branches": Case(("f32[b,s]", "s32[]<3"), BS),
    "sorted": Case(("f32[b,s+2]",), BS),
    "random": Case(("u32[2]<9", "f32[b,s]"), BS),
    "routines": Case(("f32[4,8]", "f32[3,3]"), form="located", is_evaluated=False),
    "pooling_gradient": Case(("f32[1,8,8,2]",), form="generic", is_evaluated=False),
}


def specs(case: Case, sizes: Mapping[str, int]) -> list[tuple[str, tuple[int, ...], int | None]]:
    """For each input: the NumPy type, the shape, and the limit of its values."""
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
    "u8": "uint8",
}


def simplified(name: str) -> Any:
    """The module, with products in place of its divisions by constants.

    `disc-algebraic-simplifier` alone changes bits of a program, within the units that its own test holds; what all other passes must keep
    are the bits of what it made.
    """
    from xla_emitters.dialects.context import make_context
    from xla_emitters.dynamic.passes.disc_algebraic_simplifier import DiscAlgebraicSimplifierPass
    from xla_emitters.text.stablehlo import parse_stablehlo

    module = parse_stablehlo((CORPUS / f"{name}.mlir").read_text(), f"{name}.mlir")
    DiscAlgebraicSimplifierPass().apply(make_context(), module)
    return module


def inputs_of(name: str, sizes: Mapping[str, int], case: Case | None = None) -> list[Any]:
    """The arrays on which a program is evaluated, drawn by NumPy from a seed made of the name's letters.

    case  of the program; None: that of CASES
    """
    import ml_dtypes

    narrow = {"bf16": ml_dtypes.bfloat16, "f16": np.float16}
    random = np.random.default_rng([*name.encode(), *sizes.values()])
    found = list[Any]()
    for element, shape, limit in specs(case or CASES[name], sizes):
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
    from jax import lax

    def layer(x: Any, w1: Any, w2: Any, scale: Any, bias: Any) -> Any:
        b, s, d = x.shape
        q = (x @ w1).reshape(b, s, 4, d // 4).transpose(0, 2, 1, 3)
        weights = jax.nn.softmax(jnp.einsum("bhsd,bhtd->bhst", q, q) / jnp.sqrt(d / 4), axis=-1)
        x = x + jnp.einsum("bhst,bhtd->bhsd", weights, q).transpose(0, 2, 1, 3).reshape(b, s, d)
        centered = x - x.mean(-1, keepdims=True)
        x = centered * jax.lax.rsqrt(x.var(-1, keepdims=True) + 1e-5) * scale + bias
        return jax.nn.gelu(x @ w2)

    def masked_softmax(x: Any, lengths: Any) -> Any:
        mask = jnp.arange(x.shape[-1])[None, None, :] < lengths[:, None, None]
        return jax.nn.softmax(jnp.where(mask, x, -1e9), axis=-1)

    def embedding(table: Any, tokens: Any) -> Any:
        return table[tokens].mean(1)

    def gradient(x: Any, w: Any, bias: Any) -> Any:
        return jax.grad(lambda w, bias: (jax.nn.silu(x @ w + bias) ** 2).sum(), argnums=(0, 1))(w, bias)

    def cumulative(x: Any) -> Any:
        return jnp.cumsum(x, 0), lax.cummax(x, axis=1)

    def halves(x: Any) -> Any:
        half = x.shape[0] // 2
        return x[:half] + x[half:], x[:, 1:] * (x.shape[1] % 3)

    def padded(x: Any) -> Any:
        return jnp.pad(x, ((1, x.shape[0]), (0, 2)), constant_values=3.0), lax.pad(x, 1.0, ((0, -1, 0), (2, 0, 1)))

    def reversed_(x: Any, y: Any) -> Any:
        return jnp.concatenate([x[::-1], y, jnp.zeros((2, x.shape[1]))], 0)

    def strided(x: Any) -> Any:
        return x[::2, ::3], x[::-2]

    def positions(x: Any) -> Any:
        b, s = x.shape
        return x + jnp.arange(b * s).reshape(b, s), jnp.argmax(x, 1), jnp.full((s, b), b + 2 * s)

    def outer(x: Any, y: Any) -> Any:
        return x[:, None] * y[None, :], (x[:, None] > x[None, :]).sum()

    def windows(x: Any) -> Any:
        sizes = (1, 2, 2, 1)
        total = lax.reduce_window(x, 0.0, lax.add, sizes, sizes, "SAME")
        return total, lax.reduce_window(x, -jnp.inf, lax.max, sizes, (1, 1, 1, 1), "VALID")

    def convolution(x: Any, kernel: Any) -> Any:
        one = lax.conv_general_dilated(x, kernel, (2, 2), "SAME")
        return one, lax.conv_general_dilated(x, kernel, (1, 1), "VALID")

    def convolution_static(x: Any, kernel: Any) -> Any:
        return lax.conv_general_dilated(
            x, kernel, (2, 1), ((1, 0), (2, 1)), (1, 2), (2, 1), ("NHWC", "HWIO", "NHWC"), feature_group_count=2
        )

    def kernel_of_unknown_size(x: Any, kernel: Any) -> Any:
        return lax.conv_general_dilated(x, kernel, (1,), "VALID")

    def scatter_add(x: Any, rows: Any, updates: Any) -> Any:
        return x.at[rows].add(updates), x.at[rows].max(updates)

    def gather_rows(x: Any, rows: Any) -> Any:
        return jnp.take(x, rows, axis=0), x[jnp.arange(x.shape[0] - 1) + 1]

    def update_slice(x: Any, y: Any, start: Any) -> Any:
        return lax.dynamic_update_slice(x, y, (start, 1)), lax.dynamic_slice(x, (start, 0), (x.shape[0] - 2, 2))

    def integers(x: Any, y: Any) -> Any:
        mixed = (y >> 3) ^ (y << 5) | lax.population_count(y)
        return x // 3 + x % 5, x.sum(0), mixed, lax.clz(y), x.astype(jnp.int32) ** 2

    def booleans(x: Any, y: Any) -> Any:
        return x & (y > 0), jnp.any(x, 1), jnp.all(x, 0), jnp.where(x, y, 0.0), ~x

    def narrow(x: Any, w: Any, y: Any) -> Any:
        return jax.nn.silu(x @ w), jnp.tanh(y) + x.sum().astype(jnp.float16), (x @ w).astype(jnp.float32)

    def special_functions(x: Any) -> Any:
        unit = x * 0.49
        return [
            *(
                f(x)
                for f in (lax.erf, lax.erfc, lax.lgamma, lax.digamma, lax.bessel_i1e, lax.asinh, lax.atan, lax.square)
            ),
            *(f(unit) for f in (lax.erf_inv, lax.asin, lax.acos, lax.atanh, lax.tan, lax.sinh, lax.cosh)),
            lax.acosh(jnp.abs(x) + 1),
            lax.nextafter(x, unit),
            lax.zeta(jnp.abs(x) + 1.5, jnp.abs(unit) + 0.5),
        ]

    def composites(x: Any) -> Any:
        return lax.asinh(x), lax.erf_inv(x * 0.49), lax.acosh(jnp.abs(x) + 1)

    def double(x: Any) -> Any:
        return lax.erf_inv(x * 0.45) + lax.lgamma(x + 3), lax.erfc(x), lax.bessel_i1e(x * 5), lax.digamma(x)

    def complex_(x: Any, y: Any) -> Any:
        z = lax.complex(x, y)
        product = z * jnp.conj(z) + jnp.exp(z)
        return product.real, product.imag, jnp.abs(z)

    def literals(x: Any) -> Any:
        table = np.arange(150, dtype=np.float32).reshape(3, 50) / 7
        special = np.asarray([np.nan, -np.inf, np.float32(1e-45)], np.float32)
        flags = np.arange(150).reshape(3, 50) % 3 == 0
        return x[:, None] * table, special, flags, np.asarray([[1, -2], [3, 4]], np.int8), np.zeros((0, 3), np.float32)

    def loop(x: Any) -> Any:
        return lax.fori_loop(0, x.shape[0], lambda i, total: total + x[i], jnp.zeros(x.shape[1]))

    def scan(x: Any, start: Any) -> Any:
        return lax.scan(lambda total, row: (total + row, total * row), start, x)

    def branches(x: Any, which: Any) -> Any:
        chosen = lax.switch(which, [lambda: x + 1, lambda: x * x, lambda: -x])
        return chosen, lax.cond(x.sum() > 0, lambda y: y + x, lambda y: y - x, chosen)

    def sorted_(x: Any) -> Any:
        return jnp.sort(x, 0), lax.sort((x, -x), num_keys=1), lax.top_k(x, 2)

    def random(key: Any, x: Any) -> Any:
        return jax.random.normal(key, x.shape), jax.random.bits(key, (x.shape[0],))

    def routines(x: Any, y: Any) -> Any:
        bits = lax.rng_bit_generator(jnp.ones(4, jnp.uint32), (3,))
        square = y @ y.T + jnp.eye(3)
        return jnp.fft.rfft(x), jnp.linalg.cholesky(square), bits, jax.scipy.linalg.solve_triangular(square, y)

    def pooling_gradient(x: Any) -> Any:
        sizes = (1, 2, 2, 1)
        return jax.grad(lambda x: (lax.reduce_window(x, -jnp.inf, lax.max, sizes, sizes, "SAME") ** 2).sum())(x)

    own = dict(locals())
    return {name: own.get(name) or own[f"{name}_"] for name in CASES if not name.startswith("layer_")} | {
        "layer_static": layer,
        "layer_generic": layer,
    }


def arguments_of(case: Case) -> list[Any]:
    """The shapes on which JAX traces a program; all its symbols are of one scope."""
    import jax
    import jax.numpy as jnp
    from jax import export

    jax_names = {**NUMPY, "bf16": "bfloat16", "f16": "float16"}
    names = sorted(case.sizes[0])
    symbols = export.symbolic_shape(",".join(names)) if names else ()
    known = dict(zip(names, symbols, strict=True))
    return [
        jax.ShapeDtypeStruct(tuple(shape), jnp.dtype(jax_names[element])) for element, shape, _ in specs(case, known)
    ]


def text_of(function: Callable[..., Any], case: Case) -> str:
    """The program as JAX prints it: an exported one with symbols, a lowered one without."""
    import jax
    from jax import export

    shapes = arguments_of(case)
    if case.sizes[0]:
        return export.export(jax.jit(function, donate_argnums=case.donated))(*shapes).mlir_module()
    lowered = jax.jit(function).lower(*shapes)
    if case.form == "generic":
        return lowered.compiler_ir("stablehlo").operation.get_asm(print_generic_op_form=True)
    return lowered.as_text(debug_info=case.form == "located")


def write(name: str) -> None:
    write_case(CORPUS, name, CASES[name], functions()[name])


def write_case(folder: Path, name: str, case: Case, function: Callable[..., Any]) -> None:
    """Writes the program's text, and JAX's results at all its sizes."""
    import re

    import jax

    jax.config.update("jax_enable_x64", "f64" in str(case.inputs))
    # Paths of the machine that wrote the text are removed.
    text = re.sub(r'loc\("(?:/[^"]*/)?([\w.]+\.py)"', r'loc("\1"', text_of(function, case))
    (folder / f"{name}.mlir").write_text(text)
    found = dict[str, Any]()
    for number, sizes in enumerate(case.sizes):
        results = jax.tree.leaves(jax.jit(function)(*inputs_of(name, sizes, case)))
        for i, result in enumerate(results):
            array = np.asarray(result)
            found[f"{number}/r{i}"] = array if array.dtype.kind in "biufc" else array.astype(np.float32)
    np.savez_compressed(folder / f"{name}.npz", **found)


def run(name: str, text: str) -> float:
    """The largest difference from the expected results, in units of the tolerance, of a text that JAX reads, refines and runs."""
    import dataclasses

    import jax
    from jax import export
    from jax._src.export import _export
    from jax._src.interpreters import mlir
    from jax._src.lib.mlir import ir

    case = CASES[name]
    jax.config.update("jax_enable_x64", "f64" in str(case.inputs))
    exported = export.export(jax.jit(functions()[name]))(*arguments_of(case))
    with mlir.make_ir_context():
        module = ir.Module.parse(text)
        module.operation.verify()
        serialized = _export._module_to_bytecode(module)
    exported = dataclasses.replace(exported, mlir_module_serialized=serialized)
    expected, worst = np.load(CORPUS / f"{name}.npz"), 0.0
    for number, sizes in enumerate(case.sizes):
        for i, result in enumerate(jax.tree.leaves(exported.call(*inputs_of(name, sizes)))):
            wanted = expected[f"{number}/r{i}"]
            got = np.asarray(result).astype(wanted.dtype)
            assert got.shape == wanted.shape, (name, sizes, got.shape, wanted.shape)
            assert np.array_equal(np.isfinite(got), np.isfinite(wanted)), (name, sizes)
            finite = np.isfinite(wanted)
            difference = np.abs(got.astype(np.complex128) - wanted)[finite].max(initial=0)
            worst = max(worst, difference / max(1.0, np.abs(wanted)[finite].max(initial=0)))
    return worst / max(case.tolerance, 1e-7)


def main(arguments: Sequence[str]) -> None:
    if arguments[:1] == ["--run"]:
        for path in sorted(Path(arguments[1]).glob("*.mlir")):
            print(f"{path.stem:24} {run(path.stem, path.read_text()):8.3f} of the tolerance")
        return
    for name in arguments or CASES:
        write(name)


if __name__ == "__main__":
    main(sys.argv[1:])
