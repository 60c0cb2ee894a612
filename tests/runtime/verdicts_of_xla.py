"""Which damaged texts do we and the real XLA judge differently? A command to run after changing what is read or verified.

    PYTHONPATH=tests python -m runtime.verdicts_of_xla --cases 2000 --first 0

    we accept, XLA refuses     17  Expected instruction to have shape equal to S, actual shape is S
        seed 812  layouts.hlo  swap_shapes
    we refuse, XLA accepts      3  a computation has no attribute 'N'

One row for each message, numbers and names taken out of it. XLA is its parser, and then the verifier that its GPU compiler runs first; what
goes wrong in it later is no verdict on the text. It needs the extra [xla]. A check that fails inside XLA ends the process, so XLA runs in
a child, which is started anew then; that is a refusal when the parser does it.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path

from runtime.damage import DAMAGES, QUIET, damaged

from xla_emitters.errors import DataError, XlaEmittersError
from xla_emitters.explore.real_xla import XlaGpu
from xla_emitters.text.hlo import parse_hlo

ROOT = Path(__file__).parents[2]
FOLDERS = ("tests/corpus/loop", "tests/corpus/hlo_text", "examples")
SECONDS = 60
"""What a text may take XLA, for either verdict."""
REFUSALS = ("cannot parse", "hlo verifier", "minor_to_major", "overflow")
"""What XLA's messages say when it is the text that is wrong; all others come after the verifier."""
UNDECIDED = "undecided: XLA's process ends behind the parser"


def texts() -> list[tuple[str, str]]:
    """The name and text of every file that is damaged, in a fixed order."""
    return [(path.name, path.read_text()) for folder in FOLDERS for path in sorted((ROOT / folder).glob("*.hlo"))]


def our_verdict(text: str) -> str | None:
    """None, or why we refuse the text."""
    try:
        parse_hlo(text)
    except XlaEmittersError as error:
        return error.message
    return None


class RealXla:
    """XLA in a child process."""

    def __init__(self) -> None:
        self._child: tuple[BaseProcess, Connection] | None = None

    def verdict(self, text: str) -> str | None:
        """None, or why XLA refuses the text; UNDECIDED where it ends without an answer."""
        self._child = child, pipe = self._child or self._start()
        on_death = "XLA's parser ends the process"
        try:
            pipe.send(text)
            # First the parser's verdict, then the verifier's.
            for _ in range(2):
                if not pipe.poll(SECONDS):
                    child.kill()
                    raise EOFError
                if verdict := pipe.recv():
                    return verdict
                on_death = UNDECIDED
        except (EOFError, OSError):
            self._child = None
            return on_death
        return None

    def _start(self) -> tuple[BaseProcess, Connection]:
        here, there = multiprocessing.Pipe()
        child = multiprocessing.get_context("spawn").Process(target=_serve, args=(there,), daemon=True)
        child.start()
        there.close()
        return child, here


def _serve(pipe: Connection) -> None:
    # XLA writes what it does to stderr, past Python.
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    xla = XlaGpu()
    while True:
        text = pipe.recv()
        try:
            xla.parse(text)
            pipe.send(None)
            xla.compile(text)
            pipe.send(None)
        except DataError as error:
            pipe.send(error.message if any(words in error.message for words in REFUSALS) else None)


def disagreements(seeds: range, xla: RealXla) -> Iterator[tuple[int, str, str | None, str | None]]:
    """(seed, file and damage, our verdict, XLA's verdict) where one refuses and the other does not."""
    files = texts()
    for seed in seeds:
        name, text = files[seed % len(files)]
        kind, data = damaged(text, seed, QUIET if seed % 2 else DAMAGES)
        try:
            text = data.decode()
        except UnicodeDecodeError:
            continue
        ours, theirs = our_verdict(text), xla.verdict(text)
        if (ours is None) != (theirs is None) and theirs != UNDECIDED:
            yield seed, f"{name}  {kind}", ours, theirs


def _rule(message: str) -> str:
    """The message without what is particular to one text."""
    found = re.search(r"was parsing .*? error: (.*)", message)
    message = found[1] if found else message.partition("\n")[0]
    message = re.sub(r"[a-z]\w*\[[\d,<=?]*\](\{[^}]*\})?", "S", message)
    message = re.sub(r"'[^']*'|%[\w.\-]+|\"[^\"]*\"", "N", message)
    return re.sub(r"-?\d+", "0", message)


def main() -> int:
    parser = argparse.ArgumentParser(description="lists damaged texts that we and XLA judge differently")
    parser.add_argument("--cases", type=int, default=2000)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    options = parser.parse_args()
    found: dict[tuple[str, str], list[str]] = defaultdict(list)
    for seed, what, ours, theirs in disagreements(range(options.first, options.first + options.cases), RealXla()):
        who = "we accept, XLA refuses" if ours is None else "we refuse, XLA accepts"
        found[who, _rule(ours or theirs or "")].append(f"seed {seed}  {what}")
    for (who, rule), where in sorted(found.items(), key=lambda item: (item[0][0], -len(item[1]))):
        print(f"{who}  {len(where):5}  {rule}")
        for line in where[:3]:
            print(f"    {line}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
