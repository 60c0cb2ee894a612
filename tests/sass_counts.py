"""Counts of the instructions in SASS."""

import re


def count_instructions(sass: str, entry: str | None = None) -> int:
    """Number of instructions in the result of `disassemble`, without NOP: of one kernel, or of all.

    Each instruction of the text counts once, even in a loop.

    raises KeyError if there is no kernel called `entry`.
    """
    counts: dict[str, int] = {}
    section = ""
    for line in sass.splitlines():
        if header := re.match(r"\s*\.section\s+\.text\.([\w$]+)", line):
            section = header[1]
            counts[section] = 0
        elif (instruction := re.match(r"\s+/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?(\w+)", line)) and instruction[
            1
        ] != "NOP":
            counts[section] = counts.get(section, 0) + 1
    return sum(counts.values()) if entry is None else counts[entry]
