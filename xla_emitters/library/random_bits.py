"""Random bits from counters: Philox 4x32-10 and ThreeFry 2x32-20, as HLO's rng-bit-generator defines them; random numbers from these bits.

    state  u64[2] or u64[3]: key, counter ...       new state: the same key, the counter advanced by the number used
    Philox     a counter of 128 bits gives four words: state[1], state[2] (low, high), or of u64[2] state[1], state[0]
    ThreeFry   a counter of 64 bits, state[1], gives two words

Philox's words are concatenated in counter order. ThreeFry's first words are the even elements along one dimension, its second words
the odd ones: the first dimension of even size, or else the largest. 64-bit results are two words, the low one first; narrower ones the
low bits of a word.
Ops without a state operand (`rng`, rng-get-and-update-state) take a part of Philox's numbers, or of a counter, that no other op of the
module takes: they return the same values on each run.
Source: Salmon et al., Parallel random numbers: as easy as 1, 2, 3 (SC 2011); XLA, prng.cc and rng_bit_generator_expander.cc.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from xla_emitters.errors import Unsupported
from xla_emitters.library.arguments import Array, LibraryArguments, is_float

ROTATIONS = (13, 15, 26, 6, 17, 29, 16, 24)
KEY_PARITY = 0x1BD11BDA
MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
WEYL = (0x9E3779B9, 0xBB67AE85)
_FIRST_STATE = 0x7012395
"""The initial hidden state of a module, as in XLA; any number works."""
_WORD, _LONG = (1 << 32) - 1, (1 << 64) - 1


def random_bits(arguments: LibraryArguments) -> list[Array]:
    """The new state, and the bits."""
    (state,), xp, (name, shape) = arguments.operands, arguments.xp, arguments.results[1]
    if name[0] not in "su":
        raise Unsupported(f"no random bits of type {name}", stage="library")
    words = _words(arguments.types[0], state)
    if len(words) < 2:
        raise Unsupported("no random bits of a state of one word", stage="library")
    bits = 64 if name in ("s64", "u64") else 32
    if arguments.config["algorithm"] == "threefry":
        found, new = _threefry_bits(words, bits, shape, xp)
    else:
        found, new = _philox_bits(words, bits, shape, xp)
    kept = xp.asarray(np.array(new, np.uint64)) if arguments.types[0] == "u64" else _halves(new, xp)
    return [kept.reshape(state.shape), arguments.result(1, found.view(xp.int64 if bits == 64 else xp.int32))]


def _words(name: str, state: Array) -> list[int]:
    """The state as 64-bit numbers."""
    numbers = [int(number) for number in state.reshape(-1)]
    if name == "u64":
        return numbers
    if name != "u32" or len(numbers) % 2:
        raise Unsupported(f"no random bits of a state {name}[{len(numbers)}]", stage="library")
    return [low | high << 32 for low, high in zip(numbers[::2], numbers[1::2], strict=True)]


def _halves(words: Sequence[int], xp: Any) -> Array:
    return xp.asarray(np.array([half for word in words for half in (word & _WORD, word >> 32)], np.uint32))


def _threefry_bits(words: Sequence[int], bits: int, shape: Sequence[int], xp: Any) -> tuple[Array, list[int]]:
    key, counter = words[:2]
    if bits == 64:
        count = math.prod(shape)
        low, high = threefry(_counters(counter, count, xp), _pair(key), xp)
        found = _joined(low, high, xp).reshape(shape)
    else:
        dims = list(shape) or [1]
        # The dimension along which first and second words alternate.
        along = next((dim for dim, size in enumerate(dims) if size % 2 == 0), int(np.argmax(dims)))
        halves = [*dims[:along], -(-dims[along] // 2), *dims[along + 1 :]]
        count = math.prod(halves)
        pair = [part.reshape(halves) for part in threefry(_counters(counter, count, xp), _pair(key), xp)]
        both = xp.stack(pair, axis=along + 1).reshape([*dims[:along], 2 * halves[along], *dims[along + 1 :]])
        found = both[(*(slice(None),) * along, slice(0, dims[along]))]
    return xp.ascontiguousarray(found).reshape(shape), [key, counter + count & _LONG]


def _counters(counter: int, count: int, xp: Any) -> tuple[Array, Array]:
    numbers = xp.arange(count, dtype=xp.uint64) + xp.uint64(counter)
    return numbers.astype(xp.uint32), (numbers >> xp.uint64(32)).astype(xp.uint32)


def _pair(number: int) -> tuple[int, int]:
    return number & _WORD, number >> 32


def _joined(low: Array, high: Array, xp: Any) -> Array:
    return low.astype(xp.uint64) | high.astype(xp.uint64) << xp.uint64(32)


def threefry(counter: tuple[Array, Array], key: tuple[int, int], xp: Any) -> tuple[Array, Array]:
    """The two words of each counter: 20 rounds, the key added after every fourth."""
    keys = (*key, key[0] ^ key[1] ^ KEY_PARITY)
    x, y = counter[0] + xp.uint32(keys[0]), counter[1] + xp.uint32(keys[1])
    for group in range(5):
        for rotation in ROTATIONS[4 * (group % 2) :][:4]:
            x = x + y
            y = (y << xp.uint32(rotation) | y >> xp.uint32(32 - rotation)) ^ x
        x = x + xp.uint32(keys[(group + 1) % 3])
        y = y + xp.uint32((keys[(group + 2) % 3] + group + 1) & _WORD)
    return x, y


def _philox_bits(words: Sequence[int], bits: int, shape: Sequence[int], xp: Any) -> tuple[Array, list[int]]:
    key = words[0]
    start = words[1] | words[2] << 64 if len(words) > 2 else words[1] | words[0] << 64
    count = math.prod(shape)
    counters = -(-count * (bits // 32) // 4)
    found = xp.stack(philox(start, counters, key, xp), axis=-1).reshape(-1)
    if bits == 64:
        found = _joined(found[::2], found[1::2], xp)
    end = start + counters
    new = [key, end & _LONG, end >> 64 & _LONG][: max(2, min(3, len(words)))]
    return xp.ascontiguousarray(found[:count]).reshape(shape), new + list(words[3:])


def philox(start: int, count: int, key: int, xp: Any) -> list[Array]:
    """The four words of each of `count` counters from `start` on, a number of 128 bits: 10 rounds."""
    low, high = start & _LONG, start >> 64 & _LONG
    lows = xp.arange(count, dtype=xp.uint64) + xp.uint64(low)
    highs = xp.where(lows < xp.uint64(low), xp.uint64(high + 1 & _LONG), xp.uint64(high))
    word, shift = xp.uint64(_WORD), xp.uint64(32)
    state = [lows & word, lows >> shift, highs & word, highs >> shift]
    keys = list(_pair(key))
    for _ in range(10):
        first, second = (state[2 * i] * xp.uint64(MULTIPLIERS[i]) for i in range(2))
        state = [
            second >> shift ^ state[1] ^ xp.uint64(keys[0]),
            second & word,
            first >> shift ^ state[3] ^ xp.uint64(keys[1]),
            first & word,
        ]
        keys = [key + step & _WORD for key, step in zip(keys, WEYL, strict=True)]
    return [part.astype(xp.uint32) for part in state]


def random_numbers(arguments: LibraryArguments) -> list[Array]:
    """HLO's `rng`: uniform between two scalars, or normal of a mean and a deviation."""
    config, xp = arguments.config, arguments.xp
    name, shape = arguments.results[0]
    low, high = arguments.wide(0), arguments.wide(1)
    count = math.prod(shape)
    key = _FIRST_STATE + config.get("seed", 0) & _LONG
    first, second = (_unit_interval(config["start"], part, count, key, xp) for part in range(2))
    if config["distribution"] == "normal":
        value = xp.sqrt(-2 * xp.log(1 - first)) * xp.cos(2 * math.pi * second)
        value = low.astype(xp.float64) + value * high.astype(xp.float64)
        return [arguments.result(0, value.astype(xp.float32) if name not in ("f32", "f64") else value)]
    if is_float(name):
        value = low.astype(xp.float64) + first * (high.astype(xp.float64) - low.astype(xp.float64))
        value = value.astype(xp.float64 if name == "f64" else xp.float32)
        found = arguments.result(0, value)
        # Rounding may give `high`, which is outside the interval.
        return [xp.where(arguments.operands[1] == found, arguments.operands[0], found)]
    if name == "pred":
        return [arguments.result(0, first < 0.5)]
    wide = xp.uint64 if name[0] == "u" else xp.int64
    span = xp.maximum(high.astype(wide) - low.astype(wide), wide(1))
    return [arguments.result(0, low.astype(wide) + (first * span.astype(xp.float64)).astype(wide))]


def _unit_interval(start: int, part: int, count: int, key: int, xp: Any) -> Array:
    """Numbers of 53 bits, at least 0 and below 1."""
    words = philox((start << 64) + (part << 63), -(-count // 2), key, xp)
    numbers = xp.stack([_joined(words[0], words[1], xp), _joined(words[2], words[3], xp)], axis=-1).reshape(-1)[:count]
    return (numbers >> xp.uint64(11)).astype(xp.float64) * 2.0**-53


def random_state(arguments: LibraryArguments) -> list[Array]:
    """The hidden state before this op took its numbers: u64[2], the low word first."""
    state = _FIRST_STATE + arguments.config["start"]
    return [arguments.xp.asarray(np.array([state & _LONG, state >> 64], np.uint64))]
