"""Damages PTX as people, disks and wrong compilers do: a seed determines everything.

source(file, "ptx")               ->  the text of a kernel of tests/corpus, arrays of zeros, and the launch
damaged(random.Random(3), text)   ->  (what was done, the text)
how_it_ends(text, arrays, launch) ->  Ending("ran"), or the class of the message that refuses it or names its fault
survives(text, arrays, launch)    ->  the same, and fails unless the text ends soon and its message has a place
"""

import random
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from xla_emitters.dtypes import Array, dtype
from xla_emitters.errors import XlaEmittersError
from xla_emitters.explore.check.any_ptx import PtxKernel
from xla_emitters.pipelines.compiler import compile
from xla_emitters.program import LaunchDimensions
from xla_emitters.support.limits import limited_iterations

CORPUS = Path(__file__).parents[3] / "corpus"
FILES = (
    "reduction/red_row_float32.b87f7b91.hlo",
    "transpose/attn_float32.2063fe71.hlo",
    "loop/act_silu_bfloat16.14f74e0d.hlo",
    "scatter/scatter_add_bfloat16.a7bab153.hlo",
)
SECONDS = 20.0
"""A text is read and run in less, on a machine that is busy."""

_TOKEN = re.compile(r"[%$.\w]+|\S")
_NUMBER = re.compile(r"(?<![\w.%$])(?:0[xXfFdD][0-9a-fA-F]+|\d+)\b")
_REGISTER = re.compile(r"%[a-z]+\d+\b")
_PART = re.compile(r"\.[a-z]\w*")
_LABEL = re.compile(r"\$\w+")
NUMBERS = (
    *("0", "1", "-1", "2", "3", "31", "32", "33", "64", "255", "65536", "2147483647", "2147483648", "4294967295", "4294967296"),
    *("9223372036854775807", "9223372036854775808", "18446744073709551616", "9" * 70, "9" * 5000, "0x", "0f7F800000", "0f7FC00000"),
    *("0f00000001", "0d7FF0000000000000", "1.5", "1e400", "1e-400", "08", "0b102", "-" * 200 + "1"),
)  # fmt: skip
WORDS = (
    *("%r1", "%rd1", "%p1", "%f1", "%tid.x", "%clock", ";", ",", "{", "}", "[", "]", "(", ")", "@", "@!", ":", "|", "_", "-", "+", "!"),
    *("bra", "ret", "exit", "bar.sync", "ld.shared.v4.b32", "st.global.b8", "call", "trap", "add.s32", "é", "\0", '"', "/*", "//", "\\"),
    *(".reg", ".shared", ".func", ".entry", ".v4", ".f32", ".b8", ".pred", ".loc", ".pragma", ".align", ".param", ".const"),
)  # fmt: skip
TYPES = (
    *(".b8", ".b16", ".b32", ".b64", ".s32", ".u32", ".s64", ".u64", ".f16", ".bf16", ".f32", ".f64", ".pred"),
    *(".f16x2", ".b128"),
)
STATEMENTS = (
    "$again: bra $again;",
    "bar.sync 0;",
    "@%p1 bar.sync 0;",
    "@%p1 bra $nowhere;",
    "ret;",
    "trap;",
    "{" * 3000,
    "{" * 50 + "}" * 50,
    "call (%r1), g, (%r1);",
    ".shared .align 16 .b8 huge[1073741823];",
    ".shared .b8 more[262144];",
    ".local .b8 own[268435456];",
    ".reg .b32 %many<2000000000>;",
    "st.shared.b32 [%r1], %r1;",
    "ld.local.b32 %r1, [%r1];",
    "atom.global.add.u32 %r1, [%rd1], 1;",
    "shfl.sync.bfly.b32 %r1, %r1, 1, 31, 1;",
    "mov.b32 %r1, 2147483647;",
    "add.s64 %rd1, %rd1, 9223372036854775807;",
    "div.u32 %r1, %r1, 0;",
    ".loc 1 2 3",
    ".pragma \"used_bytes_mask 0xffffffffffffffff\";",
)  # fmt: skip
FUNCTIONS = (
    "\n.func (.reg .b32 %x) g (.reg .b32 %y) { call (%x), g, (%y); ret; }\n",
    "\n.func h() { call h, (); ret; }\n",
    "\n.func h(); .func g() { call h, (); ret; } .func h() { call g, (); ret; }\n",
    "\n.global .b8 huge[1073741824];\n",
    "\n.const .b32 table[4] = {1, 2, 3, 4, 5};\n",
    "\n.extern .shared .align 16 .b8 dynamic[];\n",
    "\n.extern .func outside();\n",
)


@cache
def source(file: str, stage: str) -> tuple[str, tuple[Array, ...], LaunchDimensions]:
    """The text of the kernel of one of `FILES` at the stage "llvm" or "ptx", arrays of zeros, and the launch."""
    program = compile(CORPUS / file, target="h100", stage=stage)
    (kernel,) = program.kernels
    arrays = tuple(np.zeros(each.array.elements, dtype(each.array.dtype).numpy) for each in kernel.arguments)
    return program.code if stage == "llvm" else kernel.ptx, arrays, kernel.launch


def replaced_at(pattern: re.Pattern[str], dice: random.Random, text: str, new: Sequence[str] = ()) -> str:
    """Replaces one match of the pattern by one of `new`, or by another match."""
    spans = [match.span() for match in pattern.finditer(text)]
    if not spans:
        return text
    start, end = dice.choice(spans)
    first, last = dice.choice(spans)
    return text[:start] + (dice.choice(new) if new else text[first:last]) + text[end:]


def with_other_lines(dice: random.Random, text: str) -> str:
    """Leaves out, doubles, exchanges or moves a line."""
    lines = text.splitlines()
    one, other = dice.randrange(len(lines)), dice.randrange(len(lines))
    match dice.randrange(4):
        case 0:
            del lines[one]
        case 1:
            lines.insert(other, lines[one])
        case 2:
            lines[one], lines[other] = lines[other], lines[one]
        case _:
            lines.insert(other, lines.pop(one))
    return "\n".join(lines)


DAMAGES = {
    "cut": lambda dice, text: text[: dice.randrange(len(text))],
    "token": lambda dice, text: replaced_at(_TOKEN, dice, text, ("", *(f" {word} " for word in WORDS))),
    "line": with_other_lines,
    "number": lambda dice, text: replaced_at(_NUMBER, dice, text, NUMBERS),
    "other number": lambda dice, text: replaced_at(_NUMBER, dice, text),
    "register": lambda dice, text: replaced_at(_REGISTER, dice, text),
    "type": lambda dice, text: replaced_at(_PART, dice, text, TYPES),
    "part": lambda dice, text: replaced_at(_PART, dice, text),
    "label": lambda dice, text: replaced_at(_LABEL, dice, text),
    "brace": lambda dice, text: replaced_at(re.compile(r"[{}\[\];,]"), dice, text, ("", "{", "}", "[", "]", ";", ",")),
    "statement": lambda dice, text: replaced_at(
        re.compile(r"(?<=;\n)"), dice, text, [f"{each}\n" for each in STATEMENTS]
    ),
    "function": lambda dice, text: replaced_at(re.compile(r"(?=\.visible)"), dice, text, FUNCTIONS),
}


def damaged(
    dice: random.Random, text: str, damages: Mapping[str, Callable[[random.Random, str], str]] = DAMAGES
) -> tuple[str, str]:
    """What was done, and the text: one damage mostly, sometimes several."""
    done = list[str]()
    for _ in range(dice.choice((1, 1, 1, 2, 4))):
        name = dice.choice(list(damages))
        text = damages[name](dice, text) or "."
        done.append(name)
    return " and ".join(done), text


@dataclass(frozen=True)
class Ending:
    """outcome: "ran" or the class of the error. is_located: whether the message has a place, or names what is wrong outside the text"""

    outcome: str
    message: str
    is_located: bool
    seconds: float


def how_it_ends(
    text: str,
    arrays: Sequence[Array],
    launch: LaunchDimensions,
    most_iterations: int = 100,
    read: Callable[[str, str], Any] = PtxKernel.read,
    **more: Any,
) -> Ending:
    """Reads and runs a text's kernel, one block or cluster of it. Any other exception than a message goes through: it is a bug.

    more   for the `run` of what `read` returns
    """
    start = time.process_time()
    outcome, message, is_located = "ran", "", True
    try:
        with limited_iterations(most_iterations):
            read(text, "hostile").run(arrays, launch, blocks=[0], **more)
    except XlaEmittersError as error:
        outcome, message = type(error).__name__, error.message
        # Arguments that do not fit, and a text without a kernel, have no place in the text.
        is_located = error.place is not None or outcome == "DataError"
    return Ending(outcome, message, is_located, time.process_time() - start)


def survives(text: str, arrays: Sequence[Array], launch: LaunchDimensions, **more: Any) -> Ending:
    found = how_it_ends(text, arrays, launch, **more)
    assert found.is_located, found
    assert found.seconds < SECONDS, found
    return found
