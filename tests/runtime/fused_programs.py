"""The programs of tests/corpus/fusions: JAX functions with symbolic sizes, for which the right number of kernels is known.

    python tests/runtime/fused_programs.py            in an environment with jax 0.10.2: writes NAME.mlir of all

`Counts`: kernels without stitching and with it, and library calls. `bert_layer` is a layer of BERT: eight products, two layer norms,
softmax over heads, GELU, residuals. The functions are ours.
"""

import sys
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from runtime.stablehlo_programs import Case, text_of
from xdsl.dialects.builtin import ModuleOp

from xla_emitters.dialects.context import make_context
from xla_emitters.dynamic.buffers.disc_fuse_on_buffer import DiscFuseOnBufferPass
from xla_emitters.pipelines.options import CompileOptions
from xla_emitters.pipelines.program_passes import PROGRAM
from xla_emitters.rewrite.kernel_pass import run_pass
from xla_emitters.text.stablehlo import parse_stablehlo

CORPUS = Path(__file__).parents[1] / "corpus" / "fusions"
BS: tuple[Mapping[str, int], ...] = tuple({"b": b, "s": s} for b, s in ((1, 1), (2, 5), (3, 8)))


class Counts(NamedTuple):
    """kernels: without stitching and with it, at most; calls: products."""

    base: int
    stitched: int
    calls: int = 0


WEIGHTS = (*("{0}[32,32]",) * 4, "{0}[32,128]", "{0}[128,32]", *("{0}[32]",) * 4, "{0}[128]", "{0}[32]")
CASES: dict[str, tuple[Case, Counts]] = {
    "softmax": (Case(("f32[b,s]",), BS), Counts(3, 1)),
    "softmax_gradient": (Case(("f32[b,s]", "f32[b,s]"), BS), Counts(5, 1)),
    "log_softmax": (Case(("f32[b,s]",), BS), Counts(3, 1)),
    "layer_norm": (Case(("f32[b,s,32]", "f32[32]", "f32[32]"), BS), Counts(4, 1)),
    "layer_norm_gradient": (Case(("f32[b,s,32]", "f32[32]", "f32[32]", "f32[b,s,32]"), BS), Counts(8, 3)),
    "rms_norm": (Case(("f32[b,s,32]", "f32[32]"), BS), Counts(2, 1)),
    "rms_norm_gradient": (Case(("f32[b,s,32]", "f32[32]", "f32[b,s,32]"), BS), Counts(4, 3)),
    "gelu": (Case(("f32[b,s]",), BS), Counts(1, 1)),
    "gelu_gradient": (Case(("f32[b,s]", "f32[b,s]"), BS), Counts(1, 1)),
    "bert_layer": (Case(("f32[b,s,32]", *(w.format("f32") for w in WEIGHTS)), BS), Counts(16, 8, 8)),
    "bert_layer_bf16": (Case(("bf16[b,s,32]", *(w.format("bf16") for w in WEIGHTS)), BS), Counts(16, 8, 8)),
}


def functions() -> dict[str, Callable[..., Any]]:
    """The programs; needs JAX."""
    import jax
    import jax.numpy as jnp
    import numpy as np

    def softmax(x: Any) -> Any:
        return jax.nn.softmax(x, -1)

    def log_softmax(x: Any) -> Any:
        return jax.nn.log_softmax(x, -1)

    def layer_norm(x: Any, scale: Any, bias: Any) -> Any:
        mean = x.mean(-1, keepdims=True)
        variance = jnp.square(x - mean).mean(-1, keepdims=True)
        return (x - mean) * jax.lax.rsqrt(variance + np.float32(1e-5).astype(x.dtype)) * scale + bias

    def rms_norm(x: Any, scale: Any) -> Any:
        return x * jax.lax.rsqrt(jnp.square(x).mean(-1, keepdims=True) + 1e-6) * scale

    def gelu(x: Any) -> Any:
        return jax.nn.gelu(x)

    def gradient(function: Callable[..., Any]) -> Callable[..., Any]:
        def of(*arguments: Any) -> Any:
            return jax.vjp(function, *arguments[:-1])[1](arguments[-1])

        return of

    def bert_layer(x: Any, wq: Any, wk: Any, wv: Any, wo: Any, w1: Any, w2: Any, *others: Any) -> Any:
        scale1, bias1, scale2, bias2, up, down = others
        b, s, d = x.shape
        q, k, v = (jnp.transpose((x @ w).reshape(b, s, 4, d // 4), (0, 2, 1, 3)) for w in (wq, wk, wv))
        scores = jnp.einsum("bhsd,bhtd->bhst", q, k) / np.sqrt(np.float32(d // 4)).astype(x.dtype)
        mixed = jnp.einsum("bhst,bhtd->bhsd", jax.nn.softmax(scores, -1), v)
        x = layer_norm(x + jnp.transpose(mixed, (0, 2, 1, 3)).reshape(b, s, d) @ wo, scale1, bias1)
        return layer_norm(x + jax.nn.gelu(x @ w1 + up) @ w2 + down, scale2, bias2)

    return {
        "softmax": softmax,
        "softmax_gradient": gradient(softmax),
        "log_softmax": log_softmax,
        "layer_norm": layer_norm,
        "layer_norm_gradient": gradient(layer_norm),
        "rms_norm": rms_norm,
        "rms_norm_gradient": gradient(rms_norm),
        "gelu": gelu,
        "gelu_gradient": gradient(gelu),
        "bert_layer": bert_layer,
        "bert_layer_bf16": bert_layer,
    }


def fused(name: str, fuse: DiscFuseOnBufferPass) -> ModuleOp:
    """The program at stage "fused", with its fusions made by `fuse`."""
    module = on_buffers(name).clone()
    stages = [row.stage for row in PROGRAM]
    for row in PROGRAM[stages.index("lmhlo") + 1 : stages.index("fused") + 1]:
        made = row.make(CompileOptions())
        run_pass(fuse if made.name == fuse.name else made, make_context(), module, verify=True)
    return module


@cache
def on_buffers(name: str) -> ModuleOp:
    """The program at stage "lmhlo"."""
    module = parse_stablehlo((CORPUS / f"{name}.mlir").read_text(), f"{name}.mlir")
    for row in PROGRAM[: [row.stage for row in PROGRAM].index("lmhlo") + 1]:
        run_pass(row.make(CompileOptions()), make_context(), module)
    return module


def main(names: list[str]) -> None:
    import re

    for name, function in functions().items():
        if not names or name in names:
            text = text_of(function, CASES[name][0])
            (CORPUS / f"{name}.mlir").write_text(re.sub(r'loc\("(?:/[^"]*/)?([\w.]+\.py)"', r'loc("\1"', text))


if __name__ == "__main__":
    main(sys.argv[1:])
