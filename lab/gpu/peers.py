"""The functions of cases.py in PyTorch, under torch.compile (Triton): what a user would take instead. Used by work.py, kind `peer`."""

import time
from typing import Any

N, S, T = 1 << 26, 1 << 13, 1 << 14


def cases() -> dict[str, tuple[Any, list[tuple[tuple[int, ...], str]]]]:
    import torch
    import torch.nn.functional as F

    def adam(p, g, m, v):
        m = 0.9 * m + 0.1 * g
        v = 0.999 * v + 0.001 * g * g
        return p - 1e-3 * m / (torch.sqrt(v) + 1e-8), m, v

    def layer_norm(x, g, b):
        return F.layer_norm(x.float(), (x.shape[-1],), g, b, 1e-5).to(x.dtype)

    return {
        "gelu_f32": (lambda x: F.gelu(x, approximate="tanh"), [((N,), "float32")]),
        "gelu_bf16": (lambda x: F.gelu(x, approximate="tanh"), [((N,), "bfloat16")]),
        "bias_silu_residual": (
            lambda x, b, r: F.silu(x + b) + r,
            [((S, S), "bfloat16"), ((S,), "bfloat16"), ((S, S), "bfloat16")],
        ),
        "adam": (adam, [((N // 2,), "float32")] * 4),
        "softmax_8k": (lambda x: torch.softmax(x, -1), [((S, S), "float32")]),
        "softmax_1k_bf16": (lambda x: torch.softmax(x, -1), [((S * 8, S // 8), "bfloat16")]),
        "layer_norm_bf16": (layer_norm, [((T, S // 2), "bfloat16"), ((S // 2,), "float32"), ((S // 2,), "float32")]),
        "sum_rows": (lambda x: x.sum(-1), [((S, S), "float32")]),
        "sum_columns": (lambda x: x.sum(0), [((S, S), "float32")]),
        "sum_all": (lambda x: x.sum(), [((N,), "float32")]),
        "argmax_rows": (lambda x: x.argmax(-1), [((S, S), "float32")]),
        "transpose_f32": (lambda x: (x.t() + 0).contiguous(), [((S, S), "float32")]),
        "transpose_bf16_gelu": (lambda x: F.gelu(x.t(), approximate="tanh").contiguous(), [((S, S), "bfloat16")]),
        "concat_minor": (lambda *x: torch.cat(x, -1), [((S, S // 4), "float32")] * 4),
        "gather_rows": (lambda w, i: w[i], [((50000, 1024), "float32"), ((T * 2,), "index")]),
        "cumsum": (lambda x: torch.cumsum(x, -1), [((S, S // 2), "float32")]),
        "stencil": (
            lambda x: x[1:-1, 1:-1] * -4 + x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:],
            [((S, S), "float32")],
        ),
    }


def measure(name: str, row: dict[str, Any], gpu_to_itself: Any) -> None:
    import torch

    function, specs = cases()[name]
    compiled = torch.compile(function)
    inputs = [
        torch.randint(0, 500, shape, device="cuda")
        if kind == "index"
        else torch.randn(shape, device="cuda", dtype=torch.float32).to(getattr(torch, kind))
        for shape, kind in specs
    ]
    begun = time.time()
    with torch.no_grad():
        compiled(*inputs)
        torch.cuda.synchronize()
        row["compile_s"] = time.time() - begun
        with gpu_to_itself():
            found = []
            for _ in range(5):
                start, stop = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
                start.record()
                for _ in range(20):
                    compiled(*inputs)
                stop.record()
                torch.cuda.synchronize()
                found.append(1e3 * start.elapsed_time(stop) / 20)
    row["torch_us"], row["ok"], row["says"] = min(found), True, ""
