"""Damages texts as people and disks do: cut, flipped, swapped, with huge numbers.

    damaged(text, seed)   ->  (what was done, the text as bytes)

A seed determines everything. In texts made of words (names, numbers, shapes) the words are damaged, so that many results
get past the lexer and the damage takes effect where it is hardest to see: in shapes that no longer fit, in names that mean something else.
A change of every occurrence (`_everywhere`) usually leaves a valid text with an unexpected meaning.
"""

import random
import re
from collections.abc import Callable

from xla_emitters.dialects.hlo import HLO_OPS
from xla_emitters.dtypes import DTYPES

_WORD = re.compile(r"%?[A-Za-z_][\w.\-]*|-?\d+|[^\w\s]")
_SHAPE = re.compile(r"[a-z]+\d*\w*\[[\d,]*\](?:\{[\d,]*\})?")
_TYPE = re.compile(r"\b[a-z]+\d\w*(?=\[)|\bpred(?=\[)")
_OPCODE = re.compile(r"(?<=[\]})] )[a-z][a-z\-]+(?=\()")
_NUMBER = re.compile(r"(?<![\w.])-?\d+(?![\w.])")
_NAME = re.compile(r"%[\w.\-]+")

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
TYPES = tuple(row.name for row in DTYPES)
OPCODES = tuple(HLO_OPS)


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
    """Replaces one match of `pattern` by what `by` makes of all matches."""
    found = list(pattern.finditer(text))
    if not found:
        return text
    place = rng.choice(found)
    return text[: place.start()] + by([match.group() for match in found]) + text[place.end() :]


def _replace_everywhere(rng: random.Random, text: str, pattern: re.Pattern[str], others: tuple[str, ...]) -> str:
    """Replaces one of the texts that match `pattern` by one of `others`, at every occurrence."""
    found = sorted(set(pattern.findall(text)))
    if not found:
        return text
    old, new = rng.choice(found), rng.choice(others)
    return pattern.sub(lambda match: new if match.group() == old else match.group(), text)


def swap_words(rng: random.Random, text: str) -> str:
    """Replaces a word by another word of the text."""
    return _replace(rng, text, _WORD, rng.choice)


def swap_shapes(rng: random.Random, text: str) -> str:
    return _replace(rng, text, _SHAPE, rng.choice)


def swap_names(rng: random.Random, text: str) -> str:
    return _replace(rng, text, _NAME, rng.choice)


def other_opcode(rng: random.Random, text: str) -> str:
    return _replace(rng, text, _OPCODE, lambda found: rng.choice((*OPCODES, *found)))


def other_type_everywhere(rng: random.Random, text: str) -> str:
    return _replace_everywhere(rng, text, _TYPE, TYPES)


def other_number_everywhere(rng: random.Random, text: str) -> str:
    return _replace_everywhere(rng, text, _NUMBER, NUMBERS)


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
    """Nests brackets deeper than any recursion can go."""
    opening = rng.choice("({[<")
    at = rng.randrange(len(text) + 1)
    return text[:at] + opening * rng.choice((10, 1000, 100_000)) + text[at:]


def other_line_ends(rng: random.Random, text: str) -> str:
    return text.replace("\n", rng.choice(("\r\n", "\r", "\n\n", " ", "\t\n", "\x0c\n")))


def several(rng: random.Random, text: str) -> str:
    for _ in range(rng.randrange(2, 5)):
        text = rng.choice((swap_words, swap_shapes, strange_number, strange_word, drop_word))(rng, text)
    return text


def several_everywhere(rng: random.Random, text: str) -> str:
    for _ in range(rng.randrange(2, 5)):
        text = rng.choice((other_type_everywhere, other_type_everywhere, other_number_everywhere, swap_names))(
            rng, text
        )
    return text


def flip_bytes(rng: random.Random, text: str) -> bytes:
    return flipped(rng, text.encode())


def flipped(rng: random.Random, whole: bytes) -> bytes:
    """Flips some bits of `whole`."""
    data = bytearray(whole)
    for _ in range(rng.choice((1, 1, 1, 3, 30))):
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    return bytes(data)


def noise(rng: random.Random, text: str) -> bytes:
    return rng.randbytes(rng.choice((0, 1, 50, 5000)))


Damage = Callable[[random.Random, str], str | bytes]

# Damages of words and shapes are frequent: they get furthest.
DAMAGES: tuple[Damage, ...] = (
    cut, drop_line, repeat_line, swap_words, swap_words, swap_shapes, swap_shapes, swap_names, swap_names, other_opcode, other_opcode,
    other_type_everywhere, other_type_everywhere, other_number_everywhere, other_number_everywhere, strange_word, strange_number,
    strange_number, insert_word, drop_word, nest, other_line_ends, several, several_everywhere, several_everywhere, flip_bytes, noise,
)  # fmt: skip
# Damages that leave most texts valid, so that the code after the parser sees them.
QUIET: tuple[Damage, ...] = (
    swap_shapes, swap_names, other_opcode, other_type_everywhere, other_number_everywhere, strange_number, several_everywhere,
)  # fmt: skip


def damaged(text: str, seed: int, damages: tuple[Damage, ...] = DAMAGES) -> tuple[str, bytes]:
    """The name of the damage, and the result."""
    rng = random.Random(seed)
    damage = rng.choice(damages)
    result = damage(rng, text)
    return damage.__name__, result if isinstance(result, bytes) else result.encode("utf-8", "surrogatepass")
