"""Texts made wrong in the ways that people and disks make them wrong: cut, flipped, swapped, out of proportion.

    damaged(text, seed)   ->  (what was done, the text as bytes)

A seed says everything. Where a text is made of words (names, numbers, shapes) the words are what is damaged, so that most results
get past the lexer and the damage shows where it is hardest to see: in shapes that no longer fit, in names that mean something else.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable

_WORD = re.compile(r"%?[A-Za-z_][\w.\-]*|-?\d+|[^\w\s]")
_SHAPE = re.compile(r"[a-z]+\d*\w*\[[\d,]*\](?:\{[\d,]*\})?")
_NUMBER = re.compile(r"(?<![\w.])-?\d+(?![\w.])")

NUMBERS = (
    "0", "1", "-1", "2", "3", "7", "128", "40961", "2147483647", "2147483648", "4294967296", "9223372036854775807",
    "9223372036854775808", "-9223372036854775809", "99999999999999999999999999", "1e400", "nan", "0x7F", "1.5", "",
)  # fmt: skip
WORDS = (
    "%", "é", "变量", "\u202e", "\x00", "ROOT", "ENTRY", "HloModule", "parameter", "tuple", "fusion", "constant({...})",
    "f32[2147483647,2147483647]", "f32[]", "f32[0]", "s4[3]", "c64[2]", "token[]", "(f32[2], s32[])", "f32[<=8]", "f32[?]",
    "bf16[1,1,1,1,1,1,1,1]", "{", "}", "(", ")", "[", "]", ",", "=", '"', "/*", "//", "->", "...", "kLoop", "calls=%nothing",
    "dimensions={0,0}", "dimensions={-1}", "direction=XX", "metadata={}", "sharding={replicated}", "\r\n", "\t", "\ufeff",
)  # fmt: skip


def cut(rng: random.Random, text: str) -> str:
    return text[: rng.randrange(len(text))]


def drop_line(rng: random.Random, text: str) -> str:
    lines = text.splitlines(keepends=True)
    del lines[rng.randrange(len(lines))]
    return "".join(lines)


def repeat_line(rng: random.Random, text: str) -> str:
    lines = text.splitlines(keepends=True)
    lines.insert(rng.randrange(len(lines)), rng.choice(lines))
    return "".join(lines)


def _replace(rng: random.Random, text: str, pattern: re.Pattern[str], by: Callable[[list[str]], str]) -> str:
    found = list(pattern.finditer(text))
    if not found:
        return text
    place = rng.choice(found)
    return text[: place.start()] + by([match.group() for match in found]) + text[place.end() :]


def swap_words(rng: random.Random, text: str) -> str:
    """A word that stands somewhere else in the text."""
    return _replace(rng, text, _WORD, rng.choice)


def swap_shapes(rng: random.Random, text: str) -> str:
    return _replace(rng, text, _SHAPE, rng.choice)


def strange_word(rng: random.Random, text: str) -> str:
    return _replace(rng, text, _WORD, lambda _: rng.choice(WORDS))


def strange_number(rng: random.Random, text: str) -> str:
    return _replace(rng, text, _NUMBER, lambda _: rng.choice(NUMBERS))


def insert_word(rng: random.Random, text: str) -> str:
    at = rng.randrange(len(text) + 1)
    return text[:at] + rng.choice(WORDS) + text[at:]


def drop_word(rng: random.Random, text: str) -> str:
    return _replace(rng, text, _WORD, lambda _: "")


def nest(rng: random.Random, text: str) -> str:
    """Brackets inside brackets, deeper than any recursion goes."""
    opening = rng.choice("({[<")
    at = rng.randrange(len(text) + 1)
    return text[:at] + opening * rng.choice((10, 1000, 100_000)) + text[at:]


def other_lines(rng: random.Random, text: str) -> str:
    return text.replace("\n", rng.choice(("\r\n", "\r", "\n\n", " ", "\t\n", "\x0c\n")))


def several(rng: random.Random, text: str) -> str:
    for _ in range(rng.randrange(2, 5)):
        text = rng.choice((swap_words, swap_shapes, strange_number, strange_word, drop_word))(rng, text)
    return text


def flip_bytes(rng: random.Random, text: str) -> bytes:
    data = bytearray(text.encode())
    for _ in range(rng.choice((1, 1, 1, 3, 30))):
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    return bytes(data)


def noise(rng: random.Random, text: str) -> bytes:
    return rng.randbytes(rng.choice((0, 1, 50, 5000)))


KINDS: tuple[Callable[[random.Random, str], str | bytes], ...] = (
    cut, cut, drop_line, repeat_line, swap_words, swap_words, swap_words, swap_shapes, swap_shapes, strange_word, strange_word,
    strange_number, strange_number, insert_word, drop_word, drop_word, nest, other_lines, several, several, flip_bytes,
    flip_bytes, noise,
)  # fmt: skip


def damaged(text: str, seed: int) -> tuple[str, bytes]:
    """The name of what was done, and the result."""
    rng = random.Random(seed)
    kind = rng.choice(KINDS)
    result = kind(rng, text)
    return kind.__name__, result if isinstance(result, bytes) else result.encode("utf-8", "surrogatepass")
