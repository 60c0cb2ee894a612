"""Twelve PyTorch models with unknown sizes: compiled once each by `from_torch`, run at four shapes, beside eager PyTorch.

    make torch                                       the table, and the tests that need PyTorch
    make lab NAME="torch_models lstm unet"           these, where the extra [torch] is installed

A result is right where it differs from eager PyTorch in float64 by no more than `depth` x u x the result's largest magnitude: `depth` is
the number of roundings on the longest chain from an argument to a result, which is the sum of the lengths of all sums on it plus ten for
each layer, and u is 2**-24. Integers and numbers of eight bits are equal.
"""

import argparse
import copy
import math
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.export import Dim

import xla_emitters as xe

Sizes = tuple[int, ...]


# ---------------------------------------------------------------------------------------------------------------- modules


class Mlp(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(64, 256), nn.GELU(), nn.LayerNorm(256), nn.Linear(256, 10))

    def forward(self, x: Tensor) -> Tensor:
        return self.layers(x)


class Encoder(nn.Module):
    """BERT in small: tokens, positions, two layers of attention with a mask of padding, after which they are normalised, and a pooler."""

    def __init__(self, width: int = 64, heads: int = 4, layers: int = 2) -> None:
        super().__init__()
        self.tokens, self.positions = nn.Embedding(100, width), nn.Embedding(128, width)
        self.norm = nn.LayerNorm(width)
        layer = nn.TransformerEncoderLayer(width, heads, 4 * width, 0.1, "gelu", batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.pooler = nn.Linear(width, width)

    def forward(self, tokens: Tensor, is_padding: Tensor) -> tuple[Tensor, Tensor]:
        places = torch.arange(tokens.shape[1], device=tokens.device)
        x = self.norm(self.tokens(tokens) + self.positions(places))
        x = self.encoder(x, src_key_padding_mask=is_padding)
        return x, torch.tanh(self.pooler(x[:, 0]))


class DecoderLayer(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm_1, self.norm_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(approximate="tanh"), nn.Linear(4 * width, width))

    def forward(self, x: Tensor, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        batch, new, width = x.shape
        q, k, v = (
            part.view(batch, new, self.heads, width // self.heads).transpose(1, 2)
            for part in self.qkv(self.norm_1(x)).chunk(3, dim=-1)
        )
        keys, values = torch.cat([keys, k], dim=2), torch.cat([values, v], dim=2)
        old = keys.shape[2] - new
        allowed = torch.arange(keys.shape[2])[None, :] <= torch.arange(new)[:, None] + old
        y = F.scaled_dot_product_attention(q, keys, values, attn_mask=allowed)
        x = x + self.out(y.transpose(1, 2).reshape(batch, new, width))
        return x + self.mlp(self.norm_2(x)), keys, values


class Decoder(nn.Module):
    """GPT in small: new tokens, and for each layer the keys and values of earlier ones, which grow by the new ones."""

    def __init__(self, width: int = 64, heads: int = 4, layers: int = 2) -> None:
        super().__init__()
        self.tokens, self.positions = nn.Embedding(100, width), nn.Embedding(128, width)
        self.layers = nn.ModuleList(DecoderLayer(width, heads) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 100, bias=False)

    def forward(self, tokens: Tensor, cache: list[tuple[Tensor, Tensor]]) -> tuple[Tensor, list[tuple[Tensor, Tensor]]]:
        places = torch.arange(tokens.shape[1]) + cache[0][0].shape[2]
        x, after = self.tokens(tokens) + self.positions(places), list[tuple[Tensor, Tensor]]()
        for layer, (keys, values) in zip(self.layers, cache, strict=True):
            x, keys, values = layer(x, keys, values)
            after.append((keys, values))
        return self.head(self.norm(x)), after


class Block(nn.Module):
    def __init__(self, channels: int, out: int, stride: int) -> None:
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(channels, out, 3, stride, 1, bias=False), nn.BatchNorm2d(out)
        self.conv2, self.bn2 = nn.Conv2d(out, out, 3, 1, 1, bias=False), nn.BatchNorm2d(out)
        self.down = (
            nn.Sequential(nn.Conv2d(channels, out, 1, stride, bias=False), nn.BatchNorm2d(out))
            if stride != 1 or channels != out
            else nn.Identity()
        )

    def forward(self, x: Tensor) -> Tensor:
        y = F.relu(self.bn1(self.conv1(x)))
        return F.relu(self.bn2(self.conv2(y)) + self.down(x))


class ResNet18(nn.Module):
    """ResNet-18 (He et al., 2015), of the published widths."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1)
        )
        blocks, channels = list[nn.Module](), 64
        for out, stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
            blocks += [Block(channels, out, stride), Block(out, out, 1)]
            channels = out
        self.blocks, self.head = nn.Sequential(*blocks), nn.Linear(512, 100)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(F.adaptive_avg_pool2d(self.blocks(self.stem(x)), 1).flatten(1))


class UnetLevel(nn.Module):
    """One level of a U-Net: down by two, up again by a transposed convolution, and what was before beside it."""

    def __init__(self, wide: int = 16) -> None:
        super().__init__()
        self.enter = nn.Sequential(nn.Conv2d(3, wide, 3, padding=1), nn.GroupNorm(4, wide), nn.SiLU())
        self.below = nn.Sequential(nn.MaxPool2d(2), nn.Conv2d(wide, 2 * wide, 3, padding=1), nn.ReLU())
        self.up = nn.ConvTranspose2d(2 * wide, wide, 2, stride=2)
        self.leave = nn.Conv2d(2 * wide, 3, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        beside = self.enter(x)
        return self.leave(torch.cat([beside, self.up(self.below(beside))], dim=1))


class Lstm(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstm, self.head = nn.LSTM(16, 32, num_layers=2, batch_first=True), nn.Linear(32, 8)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        y, (_, cell) = self.lstm(x)
        return self.head(y), cell


class Mixture(nn.Module):
    """Four experts, of which each token takes the best two, by weights of their scores."""

    def __init__(self, width: int = 32, experts: int = 4) -> None:
        super().__init__()
        self.gate = nn.Linear(width, experts)
        self.up = nn.Parameter(torch.randn(experts, width, 2 * width) / math.sqrt(width))
        self.down = nn.Parameter(torch.randn(experts, 2 * width, width) / math.sqrt(2 * width))

    def forward(self, x: Tensor) -> Tensor:
        scores, chosen = torch.topk(self.gate(x), 2, dim=-1)
        weights = torch.zeros(x.shape[0], self.up.shape[0], dtype=x.dtype).scatter(1, chosen, scores.softmax(-1))
        each = torch.einsum("teh,ehd->ted", F.silu(torch.einsum("td,edh->teh", x, self.up)), self.down)
        return torch.einsum("te,ted->td", weights, each)


class DeformableGather(nn.Module):
    """Each place reads four others, at offsets that the input says, between pixels."""

    def __init__(self, channels: int = 8, points: int = 4) -> None:
        super().__init__()
        self.points = points
        self.offsets = nn.Conv2d(channels, 2 * points, 3, padding=1)
        self.mix = nn.Conv2d(channels * points, channels, 1)

    def forward(self, x: Tensor) -> Tensor:
        batch, channels, height, width = x.shape
        offsets = self.offsets(x).view(batch, self.points, 2, height, width)
        y = torch.arange(height).view(-1, 1) + offsets[:, :, 0]
        x_ = torch.arange(width).view(1, -1) + offsets[:, :, 1]
        grid = torch.stack([2 * x_ / (width - 1) - 1, 2 * y / (height - 1) - 1], dim=-1)
        read = F.grid_sample(x, grid.flatten(1, 2), align_corners=True, padding_mode="border")
        return self.mix(read.view(batch, channels * self.points, height, width))


class Casts(nn.Module):
    """A product in bf16, of numbers that were rounded to eight bits, with a scale for each row."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter((torch.randn(64, 32) / 8).to(torch.bfloat16))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        scale = x.abs().amax(-1, keepdim=True).clamp(min=1e-6) / 448
        small = (x / scale).to(torch.float8_e4m3fn)
        wide = small.to(torch.bfloat16)
        return small, x.to(torch.float8_e5m2), (wide @ self.weight).float() * scale


class Bag(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.bag, self.head = nn.EmbeddingBag(50, 16, mode="mean"), nn.Linear(16, 4)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.head(self.bag(tokens))


class Attention(nn.Module):
    """`scaled_dot_product_attention` three times: causal, with a mask of pred, with one that is added."""

    def forward(self, q: Tensor, k: Tensor, v: Tensor, allowed: Tensor, bias: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return (
            F.scaled_dot_product_attention(q, k, v, is_causal=True),
            F.scaled_dot_product_attention(q, k, v, attn_mask=allowed),
            F.scaled_dot_product_attention(q, k, v, attn_mask=bias, scale=0.25),
        )


class Loss(nn.Module):
    """The loss of a small classifier and its gradient with respect to the parameters, by `torch.func.grad_and_value`."""

    def __init__(self) -> None:
        super().__init__()
        self.model = nn.Sequential(nn.Linear(20, 32), nn.Tanh(), nn.Linear(32, 5))

    def forward(self, x: Tensor, labels: Tensor) -> tuple[dict[str, Tensor], Tensor]:
        def loss(parameters: dict[str, Tensor]) -> Tensor:
            return F.cross_entropy(torch.func.functional_call(self.model, parameters, (x,)), labels)

        return torch.func.grad_and_value(loss)(dict(self.model.named_parameters()))


# ------------------------------------------------------------------------------------------------------------------ table


@dataclass(frozen=True)
class Model:
    """make  the module;  arguments  at sizes, random;  dynamic  which axes are unknown, as torch.export takes them;  sizes  four choices

    depth  of the longest chain at sizes, in roundings: see above
    """

    make: Callable[[], nn.Module]
    arguments: Callable[..., tuple[Any, ...]]
    dynamic: tuple[Any, ...]
    sizes: Sequence[Sizes]
    depth: Callable[..., int]


B, S, T, H, W = Dim("b"), Dim("s"), Dim("t"), Dim("h"), Dim("w")
TALL, WIDE = Dim("h", min=33), Dim("w", min=33)  # a ResNet halves an image five times
_PAIRS = ((2, 5), (3, 16), (1, 9), (7, 31))


def _tokens(batch: int, length: int, limit: int = 100) -> Tensor:
    return torch.randint(limit, (batch, length))


def _padding(batch: int, length: int) -> Tensor:
    """The last tokens of each row are padding; the first never is."""
    return torch.arange(length)[None, :] >= torch.randint(1, length + 1, (batch, 1))


def _cache(batch: int, old: int) -> list[tuple[Tensor, Tensor]]:
    return [(torch.randn(batch, 4, old, 16), torch.randn(batch, 4, old, 16)) for _ in range(2)]


def _attention(batch: int, s: int, t: int) -> tuple[Tensor, ...]:
    q, k, v = torch.randn(batch, 2, s, 16), torch.randn(batch, 2, t, 16), torch.randn(batch, 2, t, 16)
    allowed = (torch.rand(s, t) < 0.5) | (torch.arange(t) == 0)
    return q, k, v, allowed, torch.randn(s, t)


MODELS = {
    "mlp": Model(
        Mlp, lambda b: (torch.randn(b, 64),), ({0: B},), ((5,), (1,), (32,), (77,)), lambda b: 64 + 2 * 256 + 256 + 40
    ),
    "encoder": Model(
        Encoder,
        lambda b, s: (_tokens(b, s), _padding(b, s)),
        ({0: B, 1: S}, {0: B, 1: S}),
        _PAIRS,
        lambda b, s: 128 + 2 * (3 * 64 + 2 * s + 256 + 256 + 80) + 64,
    ),
    "decoder": Model(
        Decoder,
        lambda b, s, t: (_tokens(b, s), _cache(b, t)),
        ({0: B, 1: S}, [({0: B, 2: T}, {0: B, 2: T})] * 2),
        ((2, 5, 7), (1, 1, 20), (3, 8, 33), (4, 16, 2)),
        lambda b, s, t: 2 * (5 * 64 + 2 * (s + t) + 256 + 80) + 192,
    ),
    "resnet18": Model(
        ResNet18,
        lambda b, h, w: (torch.randn(b, 3, h, w),),
        ({0: B, 2: TALL, 3: WIDE},),
        ((2, 64, 64), (1, 96, 64), (3, 33, 47), (2, 128, 80)),
        lambda b, h, w: 147 + 9 * (4 * 64 + 64 + 3 * 128 + 128 + 3 * 256 + 256 + 3 * 512) + 512 + h * w // 1024 + 200,
    ),
    "unet": Model(
        UnetLevel,
        lambda b, h, w: (torch.randn(b, 3, 2 * h, 2 * w),),
        ({0: B, 2: 2 * H, 3: 2 * W},),
        ((2, 8, 8), (1, 5, 12), (3, 16, 9), (4, 20, 3)),
        lambda b, h, w: 27 + 2 * 4 * 4 * h * w + 144 + 32 + 288 + 60,
    ),
    "lstm": Model(
        Lstm,
        lambda b, s: (torch.randn(b, s, 16),),
        ({0: B},),  # torch.export wants the number of steps
        ((2, 12), (1, 12), (5, 12), (16, 12)),
        lambda b, s: (s + 1) * (16 + 32 + 32 + 20) + 32,
    ),
    "mixture": Model(
        Mixture, lambda t: (torch.randn(t, 32),), ({0: T},), ((6,), (1,), (31,), (64,)), lambda t: 32 + 32 + 64 + 4 + 40
    ),
    "deformable": Model(
        DeformableGather,
        lambda b, h, w: (torch.randn(b, 8, h, w),),
        ({0: B, 2: H, 3: W},),
        ((2, 6, 7), (1, 12, 5), (3, 9, 9), (2, 16, 24)),
        lambda b, h, w: (72 + 10) * max(h, w) + 32 + 40,
    ),
    "casts": Model(Casts, lambda b: (torch.randn(b, 64),), ({0: B},), ((3,), (1,), (16,), (50,)), lambda b: 64 + 10),
    "bag": Model(Bag, lambda b, s: (_tokens(b, s, 50),), ({0: B, 1: S},), _PAIRS, lambda b, s: s + 16 + 20),
    "attention": Model(
        Attention,
        _attention,
        ({0: B, 2: S}, {0: B, 2: T}, {0: B, 2: T}, {0: S, 1: T}, {0: S, 1: T}),
        ((2, 5, 7), (1, 8, 8), (3, 16, 9), (4, 1, 31)),
        lambda b, s, t: 16 + 2 * t + 30,
    ),
    "loss": Model(
        Loss,
        lambda b: (torch.randn(b, 20), torch.randint(5, (b,))),
        ({0: B}, {0: B}),
        ((6,), (2,), (33,), (64,)),
        lambda b: 20 + 32 + 5 + 5 + 32 + b + 60,
    ),
}


@dataclass(frozen=True)
class Row:
    """sizes -> (largest difference in units of the largest magnitude, what is allowed), of all results; seconds of one compilation"""

    compile_s: float
    kernels: int
    found: Sequence[tuple[Sizes, float, float]]

    @property
    def is_right(self) -> bool:
        return all(worst <= bound for _, worst, bound in self.found)


def measured(name: str) -> Row:
    """Compiles a model once and runs it at its four sizes."""
    model = MODELS[name]
    torch.manual_seed(0)
    module = model.make().eval()
    started = time.perf_counter()
    program = xe.from_torch(module, *model.arguments(*model.sizes[0]), dynamic_shapes=model.dynamic, record="none")
    seconds = time.perf_counter() - started
    exact = module if name in SAME_TYPES else copy.deepcopy(module).double()
    rows = list[tuple[Sizes, float, float]]()
    for sizes in model.sizes:
        arguments = model.arguments(*sizes)
        found = torch.utils._pytree.tree_leaves(program(*arguments))
        wanted = torch.utils._pytree.tree_leaves(exact(*(arguments if name in SAME_TYPES else _wide(arguments))))
        worst = max(_difference(one, other) for one, other in zip(found, wanted, strict=True))
        rows.append((sizes, worst, model.depth(*sizes) * 2**-24 + (2**-9 if name in SAME_TYPES else 0)))
    return Row(seconds, len(program.kernels), rows)


SAME_TYPES = ("casts",)
"""Models that are compared with eager PyTorch in their own types, because rounding is what they do; a product is rounded to bf16 once."""


def _wide(arguments: Any) -> Any:
    return torch.utils._pytree.tree_map(
        lambda value: value.double() if isinstance(value, Tensor) and value.is_floating_point() else value, arguments
    )


def _difference(one: Tensor, other: Tensor) -> float:
    assert one.shape == other.shape, (one.shape, other.shape)
    if one.itemsize == 1 or not one.is_floating_point():  # eight bits and integers: equal
        return 0.0 if torch.equal(one.float(), other.float()) else math.inf
    a, b = one.double(), other.detach().double()
    return float((a - b).abs().max() / b.abs().max().clamp(min=1e-30))


def main() -> None:
    parser = argparse.ArgumentParser(prog="lab.torch_models", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("models", nargs="*", help=f"of {', '.join(MODELS)}")
    names = parser.parse_args().models or list(MODELS)
    print(f"torch {torch.__version__}; differences from eager PyTorch in float64, in units of the largest magnitude")
    print(f"{'model':<12}{'compile':>9}{'kernels':>9}   differences at four sizes (allowed)")
    wrong = list[str]()
    for name in names:
        row = measured(name)
        wrong += [] if row.is_right else [name]
        said = "  ".join(f"{'x'.join(map(str, sizes))}: {worst:.1e} ({bound:.0e})" for sizes, worst, bound in row.found)
        print(
            f"{name:<12}{row.compile_s:>7.1f} s{row.kernels:>9}   {said}{'' if row.is_right else '   WRONG'}",
            flush=True,
        )
    print(f"{len(names) - len(wrong)} of {len(names)} right at all sizes, one compilation each")
    sys.exit(3 if wrong else 0)


if __name__ == "__main__":
    main()
